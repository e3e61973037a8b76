"""Tasks that come back alone, at their old addresses: which of their attempts no agent has heard of yet."""

from __future__ import annotations

from collections.abc import Container

from phalanx.names import TaskId
from phalanx.states import RunState
from phalanx.taskstate import TaskPhase, TaskState


class Attempts:
    """Each is ordered once by a lead; agents know by themselves what an earlier lead has ordered."""

    def __init__(self) -> None:
        """None is ordered yet."""
        self._ordered: set[tuple[int, TaskId, int]] = set()

    def unordered(self, state: RunState) -> list[TaskState]:
        """Attempts after the first that this lead has not ordered."""
        return [
            task
            for task in state.tasks.values()
            if task.due is not None
            and task.phase is TaskPhase.WAITING
            and (task.generation, task.id, task.attempt) not in self._ordered
        ]

    def take_due(self, state: RunState, now: float, hosts: Container[int | None]) -> dict[TaskId, int]:
        """Those to be ordered now, with the number of their attempt, whose host is one of `hosts`."""
        due = [task for task in self.unordered(state) if task.due is not None and task.due <= now]
        taken = [task for task in due if task.host in hosts]
        self._ordered |= {(task.generation, task.id, task.attempt) for task in taken}
        return {task.id: task.attempt for task in taken}
