"""Whether those that have an address can be reached at it: TensorFlow would wait an hour, without a word (facts §3)."""

from __future__ import annotations

from phalanx.decide.culprit import never_listened
from phalanx.decide.hang import AHEAD, Finding, must_listen, stacks_before, start_deadline
from phalanx.events import Noted
from phalanx.plan.policies import Health
from phalanx.spans import span
from phalanx.states import RunState
from phalanx.taskstate import TaskPhase, TaskState

#: How the note begins that a program which may do without a server has not opened one.
_SILENT = "not listening"

#: What a look comes to: as any finding, or something to be said that changes nothing.
Remark = Finding | Noted


def not_listening(state: RunState, health: Health, now: float) -> Remark:
    """Who does not listen by the deadline: blamed where the others need it, else noted once.

    What a role outside the cluster does at its address, and when, is its own affair: it is never blamed for it.
    """
    silent = [task for task in state.tasks.values() if task.address and not task.phase.over and task.listening is None]
    sure = must_listen(state)
    needed = [task for task in silent if sure and task.id.type not in state.outside]
    if needed and (found := _late(state, needed, health, now)) is not None:
        return found
    rest = [task for task in silent if task not in needed]
    if not rest or state.has_noted(_SILENT):
        return None
    deadlines = {task.id: start_deadline(state, health, (task,)) for task in rest}
    late = [task for task in rest if deadlines[task.id] <= now]
    if not late:
        return min(deadlines.values())
    names = ", ".join(f"{task.id} ({task.address})" for task in late)
    return Noted(time=now, message=f"{_SILENT} {span(health.start)} after the start: {names}")


def _late(state: RunState, needed: list[TaskState], health: Health, now: float) -> Finding:
    """The start deadline for tasks that the others need."""
    deadlines = {task.id: start_deadline(state, health, (task,)) for task in needed}
    first = min(deadlines.values())
    if (look := stacks_before(state, first, now, since=first - AHEAD)) is not None:
        return look
    late = [task for task in needed if deadlines[task.id] <= now]
    return never_listened(state, late, health.start, now) if late else first


def deserted(state: RunState, now: float) -> Noted | None:
    """A word, once in a generation, that a task others are told the address of has ended well, and answers no more."""
    gone = [
        task
        for task in state.tasks.values()
        if task.address and task.id.type in state.outside and task.phase is TaskPhase.SUCCEEDED
    ]
    for task in gone:
        begins = f"{task.id} has ended (exit 0)"
        if not state.has_noted(begins, since=state.bound or 0.0):
            words = f"nobody answers at {task.address} any more; a server has to stay, as join() does"
            return Noted(time=now, task=task.id, message=f"{begins}: {words}")
    return None
