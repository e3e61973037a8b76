"""Steps that have stopped while peers wait, and programs that do not come to their end: who is it?"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from phalanx.decide.culprit import blame, left_early, place, waits_alone, where
from phalanx.decide.exits import Kind
from phalanx.events import CulpritNamed, Noted
from phalanx.names import TRAINING_TYPES, TaskId
from phalanx.plan.outline import Strategy
from phalanx.plan.policies import Health
from phalanx.spans import span
from phalanx.states import RunState
from phalanx.taskstate import TaskPhase, TaskState

#: A gap between two steps is a hang only from this many times the longest one before.
LONG_GAPS = 10.0
#: How much longer a pause may take that the runtime knows of: tracing, validation, saving.
LONG_PAUSES = 10.0
#: The shortest finishing window before success, in seconds: exits of one group are never quite at once.
_SHORTEST_FINISH = 5.0
#: Seconds that a dump of stacks may take; what has not come by then is not waited for.
STACKS = 2.0
#: How long before the end of a task's patience its stacks are asked for: they tell who waits and who does not.
AHEAD = 1.0


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Dump:
    """Have these tasks write what their threads do."""

    tasks: tuple[TaskId, ...]


#: What a look finds: somebody to blame, stacks to ask for, a time to look again, or nothing.
Finding = CulpritNamed | Dump | float | None


#: How sure it is that a task is the one the others wait for; the lowest is blamed.
_OVER, _ELSEWHERE, _BUSY, _BUSY_INSIDE, _WAITS = range(5)


def dump(state: RunState) -> Dump:
    """The stacks of every task that runs."""
    return Dump(tasks=tuple(task.id for task in state.tasks.values() if task.phase is TaskPhase.RUNNING))


def start_deadline(state: RunState, health: Health, tasks: Sequence[TaskState]) -> float:
    """Until when these must have come up: counted from their generation's start, or from that of their own attempt."""
    return max(state.bound or state.started, *(task.due or 0.0 for task in tasks)) + health.start


def must_listen(state: RunState) -> bool:
    """Whether who does not listen by the start deadline holds the others up.

    The script names a strategy; or a task listens where only TensorFlow does, has not done a step, and waits.
    """
    return state.must_listen or any(
        task.id.type not in state.outside
        and task.address
        and task.listening is not None
        and task.first_step is None
        and task.stalled
        and task.stalled.waits
        for task in state.tasks.values()
    )


def group(state: RunState) -> list[TaskState]:
    """The tasks whose steps are one: all that train under a synchronous strategy, the chief alone under a ps."""
    kinds = ("chief",) if state.strategy == Strategy.PS.value else TRAINING_TYPES
    return [task for task in state.tasks.values() if task.id.type in kinds]


def others(state: RunState, task: TaskState) -> tuple[TaskId, ...]:
    """Whom it holds up."""
    if state.strategy == Strategy.PS.value:
        return tuple(one for one in (state.leader,) if one is not None and one != task.id)
    return tuple(one.id for one in group(state) if one.id != task.id and not one.phase.over)


def hung(state: RunState, health: Health, now: float) -> Finding:
    """A hang: no task of the group does a step, some wait for others, and that for too long.

    Stacks are asked for shortly before, since they tell best who waits: the culprit is the one that does not. Before
    the first step only the start deadline counts, but a gap is never shorter than `hang` where steps are not counted.
    """
    if health.hang <= 0 or state.strategy == Strategy.NONE.value:
        return None
    members = group(state)
    running = [task for task in members if task.phase is TaskPhase.RUNNING]
    stalls = [task.stalled for task in running if task.stalled is not None]
    alive = any(task.stalled is None and task.done is None for task in running)
    if alive or not stalls:
        return None
    since = max(one.since for one in stalls)
    deadline = _deadline(state, health, running, since)
    return stacks_before(state, deadline, now, since=since) or _blamed(state, members, since, now)


def stacks_before(state: RunState, deadline: float, now: float, *, since: float) -> Finding:
    """What comes before somebody is blamed at `deadline`: stacks newer than `since`; None once it is time."""
    if now < deadline - AHEAD:
        return deadline - AHEAD
    if state.stacks is None or state.stacks.time < since:
        return dump(state)
    if now < deadline:
        return deadline
    return stacks_due(state, now)


def stacks_due(state: RunState, now: float) -> float | None:
    """Until when the stacks that were asked for are worth waiting for; None where all are there, or time is up."""
    asked = state.stacks
    if asked is None or now >= asked.time + STACKS:
        return None
    running = [t for t in state.tasks.values() if t.id in asked.tasks and t.phase is TaskPhase.RUNNING]
    late = any(task.stacks is None or task.stacks.time < asked.time for task in running)
    return asked.time + STACKS if late else None


def _deadline(state: RunState, health: Health, running: list[TaskState], since: float) -> float:
    start = start_deadline(state, health, running)
    stalls = [task.stalled for task in running if task.stalled is not None]
    limit = max(health.hang, LONG_GAPS * max(one.longest for one in stalls))
    if any(one.doing not in ("", "finished") for one in stalls):
        limit *= LONG_PAUSES
    limit += since
    stepped = [task for task in running if task.first_step is not None]
    if not stepped:
        return max(start, limit)
    return limit if len(stepped) == len(running) else max(start, since)


def _blamed(state: RunState, members: list[TaskState], since: float, now: float) -> Finding:
    suspects = members
    if state.strategy == Strategy.PS.value:
        suspects = [task for task in state.tasks.values() if task.address and task.id.type not in state.outside]
    running = [task for task in suspects if task.phase is TaskPhase.RUNNING]
    ranks = {task.id: _rank(task, since) for task in running}
    if not any(ranks[task.id] == _WAITS for task in running):
        return None  # each does something of its own: nobody waits for anybody
    first = min(running, key=lambda task: (ranks[task.id], task.stalled.since if task.stalled else now, task.id))
    gone = [task for task in members if task.phase is TaskPhase.SUCCEEDED]
    if ranks[first.id] == _WAITS and gone:
        return left_early(state, gone, now)
    between = [task for task in running if ranks[task.id] == _WAITS and task.stalled and task.stalled.inside is False]
    if found := waits_alone(state, between, [task for task in (*running, *gone) if task not in between], now):
        return found
    if ranks[first.id] == _WAITS and state.strategy == Strategy.PS.value:
        first = next((task for task in running if task.id == state.leader), first)
    waiting = tuple(task.id for task in running if task is not first and ranks[task.id] == _WAITS)
    after = f", after step {first.stalled.step}" if first.stalled and first.stalled.step else ""
    return blame(
        state,
        first,
        now,
        kind=Kind.USER,
        cause=f"{first.id}{where(state, first)} {_how(first, ranks[first.id])}: no step for {now - since:.0f} s{after}",
        victims=waiting,
        sign="hang",
        hint=f"its stacks are in {first.stacks.path}" if first.stacks else f"phalanx logs {state.run} {first.id}",
    )


def _rank(task: TaskState, since: float) -> int:
    if task.done is not None:
        return _OVER
    inside = task.stacks.waits if task.stacks is not None and task.stacks.time >= since else None
    if inside is False:
        return _ELSEWHERE
    if task.stalled is not None and not task.stalled.waits:
        return _BUSY if inside is None else _BUSY_INSIDE
    return _WAITS


def _how(task: TaskState, rank: int) -> str:
    at = place(task)
    if rank == _OVER:
        return f"has come to the end of its program while the others wait for it{at}"
    if rank == _WAITS:
        return f"hangs, and so do the others: all wait{at}"
    return f"does not take part while the others wait for it{at}"


def unfinished(state: RunState, health: Health, now: float) -> Finding:
    """Who still runs long after the first of the group has ended well, or after its own program has ended.

    One that waits for its peers, as its stacks tell, is not late: the one that left early is the suspect (R60).
    """
    members = [t for t in group(state) if t.listening is not None or (t.done is not None and t.quiet is not None)]
    running = [task for task in members if task.phase is TaskPhase.RUNNING]
    window = max(health.finish, _SHORTEST_FINISH)
    leader = state.leading
    over = [at for task in members if (at := _over_at(task)) is not None]
    if not over or not running or leader is None or leader.phase is not TaskPhase.RUNNING:
        return None
    since = min(over)
    if (look := stacks_before(state, since + window, now, since=since + window - AHEAD)) is not None:
        return look
    last = leader if leader in running else running[0]
    gone = [task for task in members if task.phase is TaskPhase.SUCCEEDED]
    if gone and all(_waits(task, since) for task in running):
        return left_early(state, gone, now)
    if last.done is not None:
        said = f"came to the end of its program {now - last.done:.0f} s ago, and its process is still there"
        hint = "a thread that is no daemon, a child or an exit handler keeps it: end it, or leave by os._exit"
    else:
        first = min((task for task in members if _over_at(task) is not None), key=lambda task: _over_at(task) or now)
        said = f"still ran {now - since:.0f} s after {first.id} had finished"
        hint = "give every worker the same number of batches, or raise --finish"
    return blame(
        state,
        last,
        now,
        kind=Kind.USER,
        cause=f"{last.id}{where(state, last)} {said}",
        victims=others(state, last),
        sign="finish",
        hint=hint,
    )


def _waits(task: TaskState, since: float) -> bool:
    """Whether it surely waits for its peers: it does no step for that long, and nothing of its own."""
    return task.stalled is not None and _rank(task, since) == _WAITS


def early(state: RunState, health: Health, now: float) -> Noted | float | None:
    """A word, once, that one of the group has ended well and how long the others may go on; or when it is due."""
    members = group(state)
    gone = [task for task in members if task.phase is TaskPhase.SUCCEEDED and task.ended is not None]
    running = [task for task in members if task.phase is TaskPhase.RUNNING and task.done is None]
    if not gone or not running or health.finish <= _SHORTEST_FINISH:
        return None
    first = min(gone, key=lambda task: (task.ended or now, task.id))
    begins = f"{first.id} has finished (exit 0)"
    if state.has_noted(begins, since=state.bound or 0.0):
        return None
    due = (first.ended or now) + _SHORTEST_FINISH
    if now < due:
        return due
    names = ", ".join(str(task.id) for task in running[:3]) + (", …" if running[3:] else "")
    return Noted(time=now, message=f"{begins}; {names} may go on for {span(health.finish)} (--finish)")


def _over_at(task: TaskState) -> float | None:
    return task.ended if task.phase is TaskPhase.SUCCEEDED else task.done
