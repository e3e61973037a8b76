"""Who falls with whom: the tasks that have to start again together, by how TensorFlow takes a loss (facts §3, §4)."""

from __future__ import annotations

from phalanx.names import TaskId
from phalanx.plan.outline import Failure, Strategy
from phalanx.states import RunState
from phalanx.taskstate import TaskPhase, TaskState

#: Only looks on: it reads checkpoints, and nobody waits for it.
_ONLOOKER = "evaluator"


def fallen(state: RunState) -> list[TaskState]:
    """The tasks that have failed and have not been given up."""
    down = (TaskPhase.FAILED, TaskPhase.VICTIM, TaskPhase.LOST)
    return [task for task in state.tasks.values() if task.phase in down and task.id not in state.given_up]


def failing_unit(state: RunState) -> frozenset[TaskId]:
    """Every task that cannot go on, now that some have failed or are to blame.

    An evaluator falls alone, and so does a role outside the cluster unless it says otherwise. Under
    ParameterServerStrategy a worker does, and so does the chief, whose workers and servers wait for the next one; a
    lost ps takes the chief with it, which holds the variables' handles. Everything else takes everybody:
    MultiWorkerMirroredStrategy is one unit (R75), and a lost host has no address to return to.
    """
    everybody = frozenset(state.tasks)
    culprit = state.culprit
    if culprit is not None and culprit.task is None:
        return everybody
    down = {task.id: task for task in fallen(state)}
    if (blamed := state.blamed) is not None:
        down[blamed.id] = blamed
    if not down or any(task.phase is TaskPhase.LOST for task in down.values()):
        return everybody
    unit: set[TaskId] = set()
    for name in down:
        falls = _with(name, state)
        if falls is None:
            return everybody
        unit |= falls
    return frozenset(unit)


def only_looks_on(state: RunState, unit: frozenset[TaskId]) -> bool:
    """Whether the training does not miss these tasks."""
    return bool(unit) and all(
        task.type == _ONLOOKER or state.outside.get(task.type) == Failure.IGNORE.value for task in unit
    )


def purse(state: RunState, unit: frozenset[TaskId]) -> frozenset[str]:
    """Who pays for a restart of these tasks: their own types where none of them trains, else the group, which is empty.

    A data service that falls again and again leaves the training its restarts, and the other way round.
    """
    types = frozenset(task.type for task in unit)
    return types if all(kind == _ONLOOKER or kind in state.outside for kind in types) else frozenset()


def _with(task: TaskId, state: RunState) -> set[TaskId] | None:
    """The task and those it takes down; None: everybody."""
    if task.type == _ONLOOKER or state.outside.get(task.type) in (Failure.ALONE.value, Failure.IGNORE.value):
        return {task}
    if state.strategy != Strategy.PS.value:
        return None
    match task.type:
        case "worker" | "chief":
            return {task}
        case "ps":
            return {task} | ({state.leader} if state.leader else set())
    return None
