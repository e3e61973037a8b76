"""Since when a run trains, as its events tell: before that there is little to hurt. Pure: times are handed in."""

from __future__ import annotations

from phalanx.states import RunPhase, RunState
from phalanx.taskstate import TaskPhase

#: Seconds for which the first step is awaited of a group that listens: its steps may not be known.
STEPLESS = 15.0


class Training:
    """A group trains once all of it runs, listens where it must, and has made a step where any are known."""

    def __init__(self, *, steps: bool | None = None) -> None:
        """`steps`: whether the same job has told of any when it ran before; None: nobody knows."""
        self._steps = steps
        #: When the run first trained; since when the group that runs now does.
        self.began: float | None = None
        self.since: float | None = None
        self._listens: float | None = None

    def see(self, state: RunState, now: float) -> None:
        """The state now. To be called again as time passes."""
        if not all_run(state) or not _all_listen(state):
            self.since = self._listens = None
            return
        self._listens = now if self._listens is None else self._listens
        if self.since is None and self._trains(state, now - self._listens):
            self.since = now
            self.began = now if self.began is None else self.began

    def _trains(self, state: RunState, listened: float) -> bool:
        if any(task.first_step is not None for task in state.tasks.values()):
            return True
        if self._steps is not None:
            return not self._steps
        return not state.must_listen or listened >= STEPLESS


def all_run(state: RunState) -> bool:
    """Also those that had not listened or made a step when the run was first complete are then as before."""
    return state.phase is RunPhase.RUNNING and all(
        task.phase is TaskPhase.RUNNING or name in state.given_up for name, task in state.tasks.items()
    )


def _all_listen(state: RunState) -> bool:
    return not state.must_listen or all(
        task.listening is not None or not task.address or name in state.given_up for name, task in state.tasks.items()
    )
