"""Who failed first, and who only followed."""

from __future__ import annotations

from collections.abc import Sequence

from phalanx.decide.alone import SIGN, alone, short, trains
from phalanx.decide.exits import Kind, evidence, gist, kind_of, known_error, says_victim, words_for, words_of
from phalanx.decide.strayed import strayed
from phalanx.decide.unit import fallen
from phalanx.events import CulpritNamed, RunEnded, TaskExited
from phalanx.hoststate import HostState
from phalanx.names import TaskId, many
from phalanx.spans import span
from phalanx.states import RunState
from phalanx.taskstate import TaskPhase, TaskState

#: A task that blames a peer may be gone before the culprit is: TensorFlow's teardown takes 0.4–0.6 s (facts §6).
#: A failure of its own within this many seconds after a victim's is the earlier one in truth.
TEARDOWN = 2.0

#: How many tasks a sentence names, and how many letters of a task's own words it has.
_NAMED, _WORDS = 8, 300


def name_culprit(state: RunState, now: float) -> CulpritNamed | None:
    """The first failure of the generation, by the time its process ended; None while nothing has failed.

    A task whose last lines blame a peer is passed over for one that failed by itself within `TEARDOWN`. Where only
    victims failed and a task had left early with exit 0, that one is the suspect: its peers waited for it in a
    collective (facts §3, R60).
    """
    lost = lost_now(state)
    failed = sorted(
        (task for task in fallen(state) if task.phase is not TaskPhase.LOST),
        key=lambda task: (task.ended or now, task.id),
    )
    if lost and not any(is_own(task) and (task.ended or now) < _lost_at(state, lost[0].id, now) for task in failed):
        return _host_lost(state, lost[0].id, now)
    if not failed:
        return None
    first = failed[0]
    if not is_own(first):
        first = next((t for t in failed if is_own(t) and (t.ended or now) - (first.ended or now) <= TEARDOWN), first)
    if not is_own(first):
        early = [
            t
            for t in state.tasks.values()
            if t.phase is TaskPhase.SUCCEEDED and (t.ended or now) <= (first.ended or now)
        ]
        if early and state.succeeded is None:
            return left_early(state, early, now)
    return _left_on_request(state, first, now) if was_preempted(first) else _named(state, first, now)


def lost_now(state: RunState) -> list[HostState]:
    """The hosts that were lost while this generation ran on them, by id."""
    since = state.bound or 0.0
    lost = [host for host in state.hosts.values() if host.lost_at is not None and host.lost_at >= since]
    used = {task.host for task in state.tasks.values()} if lost else set()
    return sorted((host for host in lost if host.id in used), key=lambda host: host.id)


def is_own(task: TaskState) -> bool:
    """Whether it failed by itself: it could not start, was asked to leave, or its last lines blame nobody."""
    return task.exit is None or was_preempted(task) or not says_victim(evidence(task.exit))


def was_preempted(task: TaskState) -> bool:
    """Whether it has left by itself, as who is preempted does: whatever it says of its peers, they are not why."""
    return task.exit is not None and bool(task.exit.code) and kind_of(task.exit) is Kind.PREEMPTION


def _left_on_request(state: RunState, first: TaskState, now: float) -> CulpritNamed:
    """All leave at one step where one is asked to: who came to its end first says nothing, who was asked does."""
    asked = [task for task in state.tasks.values() if task.asked is not None and task.asked <= (first.ended or now)]
    if not asked:
        return _named(state, first, now)
    task = min(asked, key=lambda task: (task.asked or now, task.id))
    others = tuple(other.id for other in state.tasks.values() if other.id != task.id and _fell(other))
    both = [state.tasks[name] for name in others] + [task]
    agreed = bool(others) and all(one.leaves is not None and one.leaves.agreed for one in both)
    return blame(
        state,
        task,
        now,
        kind=Kind.PREEMPTION,
        cause=f"{task.id}{where(state, task)} was asked to leave (SIGTERM)"
        + (", and all left at the agreed step" if agreed else ""),
        victims=others,
        hint="find out who sent SIGTERM: a batch system that wants the place back, an administrator, a script",
    )


def _named(state: RunState, task: TaskState, now: float) -> CulpritNamed:
    others = [other for other in state.tasks.values() if other.id != task.id and _fell(other)]
    alike = [other for other in others if _alike(other, task)]
    same = {other.id for other in alike}
    too = f"; {_some(alike)} failed alike" if alike else ""
    kind, fell, hint = _how(task, state.run)
    return blame(
        state,
        task,
        now,
        kind=kind,
        cause=f"{task.id}{where(state, task)} {fell}{too}",
        victims=tuple(other.id for other in others if other.id not in same),
        alike=tuple(other.id for other in alike),
        hint=hint,
    )


def _how(task: TaskState, run: str) -> tuple[Kind, str, str]:
    """Whose failure it is, how it fell, and what to do next."""
    if task.exit is None:
        return Kind.USER, f"could not start: {task.refused}", "`phalanx plan` shows the command and the interpreter"
    known = known_error(evidence(task.exit))
    advice = f"{known.advice} ({known.source})" if known else f"phalanx logs {run} {task.id}"
    ran = f" {task.exit.time - task.started:.1f} s after its start" if task.started else ""
    tail = "" if task.exit.signal is not None or was_preempted(task) else _said(task.exit)
    since = f": {known.since}" if known and known.since else ""
    return kind_of(task.exit), f"{words_for(task.exit)}{ran}{tail}{since}", strayed(task.exit.last_lines) or advice


def _said(event: TaskExited) -> str:
    """Its own words, or that it has none, and how far it had come."""
    if said := words_of(event):
        at = f" ({short(event.raised_at)})" if event.raised_at else ""
        return f": {said[:_WORDS]}{at}"
    last = f"; last line: {event.last_output.strip()[:_WORDS]}" if event.last_output.strip() else ""
    return f", without a word of its own{last}"


def _some(tasks: Sequence[TaskState]) -> str:
    """Their names, of thousands the first few."""
    names = ", ".join(str(task.id) for task in tasks[:_NAMED])
    return f"{names} and {len(tasks) - _NAMED:,} more" if len(tasks) > _NAMED else names


def _alike(task: TaskState, culprit: TaskState) -> bool:
    """Failed by itself in the same way, if only after it was told to end: the same fault, and nobody's victim.

    One that our signal met has failed alike where it had said the same before.
    """
    if not is_own(task) or task.phase is TaskPhase.LOST:
        return False
    if task.exit is None or culprit.exit is None:
        return task.phase is TaskPhase.FAILED and task.exit is culprit.exit
    words = gist(words_of(task.exit))
    same = words == gist(words_of(culprit.exit))
    if task.phase is TaskPhase.ENDED and task.exit.code is None:
        return same and bool(words)
    return same and (task.exit.code, task.exit.signal) == (culprit.exit.code, culprit.exit.signal)


def never_listened(state: RunState, silent: list[TaskState], limit: float, now: float) -> CulpritNamed:
    """The start deadline has passed, and these tasks run but do not listen: their peers would wait for ever."""
    first = min(silent, key=lambda task: (task.started or now, task.id))
    others = [task for task in silent if task is not first]
    more = f" (nor did {_some(others)})" if others else ""
    named = {task.id for task in silent}
    said = f"{first.id}{where(state, first)} never listened on {first.address} within {span(limit)}"
    stacks = f"its stacks are in {first.stacks.path}; " if first.stacks else ""
    return blame(
        state,
        first,
        now,
        kind=Kind.USER,
        cause=f"{said}{place(first)}{more}",
        victims=tuple(t.id for t in state.tasks.values() if t.id not in named and not t.phase.over),
        alike=tuple(task.id for task in others),
        hint=f"{stacks}raise --start-timeout, or say --strategy none if the script needs no cluster",
        sign="start",
    )


def left_early(state: RunState, gone: Sequence[TaskState], now: float) -> CulpritNamed:
    """The first of these had ended well before the others were done: they wait for it in a collective (R60).

    Where they wait in one that it never enters, who calls that is the culprit.
    """
    left = [task for task in state.tasks.values() if task.phase is not TaskPhase.SUCCEEDED]
    if found := waits_alone(state, left, gone, now):
        return found
    task = min(gone, key=lambda task: task.ended or now)
    return blame(
        state,
        task,
        now,
        kind=Kind.USER,
        cause=f"{task.id}{where(state, task)} finished early (exit 0) while others still waited for it: uneven data?",
        victims=tuple(t.id for t in state.tasks.values() if t.id != task.id and (_fell(t) or not t.phase.over)),
        hint="give every worker the same number of batches, or shard by DATA instead of FILE (R59, R60)",
    )


def waits_alone(
    state: RunState, waiting: Sequence[TaskState], absent: Sequence[TaskState], now: float
) -> CulpritNamed | None:
    """A collective that only some call; None where that is not known."""
    waiting, absent = ([task for task in some if trains(state, task)] for some in (waiting, absent))
    found = alone(waiting, absent)
    if found is None:
        return None
    task, missing = found.task, [state.tasks[name] for name in found.absent]
    over = all(one.phase is TaskPhase.SUCCEEDED or one.done is not None for one in missing)
    others = "they are" if len(missing) > 1 else "it is"
    why = f"after the same {many(found.steps, 'step')} " + (
        f"{'they have' if len(missing) > 1 else 'it has'} come to the end of the program"
        if over
        else f"{others} at another place{place(missing[0])}"
    )
    line = f" at {found.at}" if found.at else ""
    return blame(
        state,
        task,
        now,
        kind=Kind.USER,
        cause=f"{task.id}{where(state, task)} waits{line}, outside of any training step, "
        f"in a collective that {_some(missing)} {'do' if len(missing) > 1 else 'does'} not enter: {why}",
        victims=tuple(one.id for one in missing if not one.phase.over),
        alike=tuple(one.id for one in waiting if one is not task),
        hint="every worker must do what that line does (strategy.reduce, evaluate, predict, save), and as often: "
        "take it out of `if chief`, and let one print or keep what comes of it (R60)",
        sign=SIGN,
    )


def blame(
    state: RunState,
    task: TaskState,
    now: float,
    *,
    kind: Kind,
    cause: str,
    hint: str,
    victims: tuple[TaskId, ...] = (),
    alike: tuple[TaskId, ...] = (),
    sign: str = "",
) -> CulpritNamed:
    """The event that names one task."""
    return CulpritNamed(
        time=now,
        generation=state.generation,
        task=task.id,
        host=task.host,
        kind=kind.value,
        cause=cause,
        victims=victims,
        alike=alike,
        hint=hint,
        sign=sign,
    )


def nobody_to_blame(
    generation: int, now: float, *, kind: Kind, cause: str, code: int, host: int | None = None, hint: str = ""
) -> tuple[CulpritNamed, RunEnded]:
    """The end of a run that cannot go on, where no task is the reason."""
    culprit = CulpritNamed(
        time=now, generation=generation, task=None, host=host, kind=kind.value, cause=cause, hint=hint
    )
    return culprit, RunEnded(time=now, outcome="failed", exit_code=code, cause=cause)


def _host_lost(state: RunState, host: int, now: float) -> CulpritNamed:
    known = state.hosts[host]
    return CulpritNamed(
        time=now,
        generation=state.generation,
        task=None,
        host=host,
        kind=known.lost_kind or Kind.INFRASTRUCTURE.value,
        sign="host",
        cause=f"host {known.joined.name} (agent {host}) was lost: {known.lost_why}",
        victims=tuple(task.id for task in state.tasks.values() if _fell(task) or task.phase is TaskPhase.LOST),
        hint=known.lost_hint or "look at that host: its memory, its disk, whether it still runs",
    )


def _lost_at(state: RunState, host: int, now: float) -> float:
    ends = [task.ended for task in state.tasks.values() if task.host == host and task.phase is TaskPhase.LOST]
    return min((end for end in ends if end is not None), default=now)


def _fell(task: TaskState) -> bool:
    return task.phase in (TaskPhase.FAILED, TaskPhase.ENDED, TaskPhase.VICTIM)


def place(task: TaskState) -> str:
    """` (it is at train.py:14 in step)`, by its stacks; empty where they tell nothing."""
    return f" (it is at {task.stacks.at})" if task.stacks is not None and task.stacks.at else ""


def where(state: RunState, task: TaskState) -> str:
    """` on n7`, where there is more than one host to be on."""
    host = state.hosts.get(task.host) if task.host is not None else None
    return f" on {host.joined.name}" if host and len(state.hosts) > 1 else ""
