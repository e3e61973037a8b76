"""Tasks that fall at once are one event of the world, however many restarts bring them back."""

from __future__ import annotations

from phalanx.decide.culprit import is_own
from phalanx.decide.unit import failing_unit, fallen, purse
from phalanx.names import TaskId
from phalanx.states import PastFailure, RunState
from phalanx.taskstate import TaskPhase, TaskState

#: Seconds after a restart's order within which what still falls is part of what it answers: a hand or a script kills
#: one process after the other, and TensorFlow takes half a second to blame a peer (facts §6).
TOGETHER = 2.0


def answered(state: RunState) -> PastFailure | None:
    """The failure that the tasks which have now fallen are a part of, and which has its restart; None where they are
    an event of their own.

    Only tasks that ran through that failure and have not been started again since, so that each is part of it once;
    and only what began to fall by the time of that restart's order, or soon after. The same kind of failure, or any
    that blames a peer. Who does not train has a budget of its own, and no part in what befalls the training.
    """
    culprit, blamed = state.culprit, state.blamed
    if culprit is None or blamed is None:
        return None
    down = {task.id: task for task in fallen(state) if task.phase is TaskPhase.FAILED} | {blamed.id: blamed}
    payer, kind, renewed = purse(state, failing_unit(state)), culprit.kind, set[TaskId]()
    for past in reversed(state.past):
        if past.number != state.generation or past.culprit is None:
            return None
        renewed.update(past.restart.tasks)
        if renewed & down.keys():
            return None
        same = past.culprit.kind == kind or not is_own(blamed)
        if past.restart.along or not same or purse(state, frozenset(past.restart.tasks)) != payer:
            continue
        began = max(_began(task, culprit.sign, past.ended) for task in down.values())
        return past if began <= past.ended + TOGETHER else None
    return None


def _began(task: TaskState, sign: str, now: float) -> float:
    """When it began to fall: a frozen or silent task is ended long after, and one that never listened never ran."""
    if sign == "start":
        return task.started or now
    return min((at for at in (task.frozen, task.quiet, task.ended) if at is not None), default=now)
