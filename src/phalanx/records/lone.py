"""Tasks that were to train together and never met."""

from __future__ import annotations

from phalanx.names import TRAINING_TYPES
from phalanx.states import RunPhase, RunState

#: How a note begins that qualifies a success.
WARNING = "warning: "


def lone(state: RunState) -> list[str]:
    """Tasks that were to train together and never met: each has trained a model of its own, and that is no success."""
    trained = [task for task in state.tasks.values() if task.address and task.id.type in TRAINING_TYPES]
    met = any(task.listening is not None for task in trained)
    if state.phase is not RunPhase.SUCCEEDED or met or len(trained) <= 1:
        return []
    what = f"no task ever listened on its address: each of the {len(trained)} has trained alone, or not at all"
    return [f"{WARNING}{what}; make the strategy in the script, or say --strategy none where that is meant"]
