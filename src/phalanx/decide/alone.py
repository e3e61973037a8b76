"""A collective that some tasks are in and the others never enter: `if chief: strategy.reduce(...)`.

Data that is uneven leaves a task inside a training step that its peers do not do. Here it waits between two steps,
after as many as the others have done.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from phalanx.names import TRAINING_TYPES, TaskId
from phalanx.plan.outline import Strategy
from phalanx.states import RunState
from phalanx.taskstate import TaskPhase, TaskState

#: What `CulpritNamed.sign` says of it.
SIGN = "alone"


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Alone:
    """Who waits, at which line of its program where that is known, and after how many steps."""

    task: TaskState
    at: str
    steps: int
    absent: tuple[TaskId, ...]


def trains(state: RunState, task: TaskState) -> bool:
    """Whether it takes part in the collectives."""
    return state.strategy != Strategy.PS.value and task.id.type in TRAINING_TYPES


def alone(waiting: Sequence[TaskState], absent: Sequence[TaskState]) -> Alone | None:
    """Those that are known to wait in a collective, and those that are known not to be in that one; None where it may
    be another's doing: steps that nobody counts, or not as many, or a wait inside a step.

    One that is `absent` has ended, is at the end of its program, or is inside its next step; any other may be late.
    """
    steps = {_steps(task) for task in (*waiting, *absent)}
    if not waiting or not absent or len(steps) > 1 or None in steps:
        return None
    if any(_inside(task) is not False for task in waiting) or not all(map(_elsewhere, absent)):
        return None
    first = min(waiting, key=lambda task: (not at(task), task.id))
    return Alone(task=first, at=at(first), steps=steps.pop() or 0, absent=tuple(sorted(task.id for task in absent)))


def certain(state: RunState) -> bool:
    """Whether the program will do so again: where it waits is known, and the others came to its end by themselves.

    One that was asked to leave, or has not ended, may have been on its way there.
    """
    task = state.blamed
    group = [one for one in state.tasks.values() if trains(state, one)]
    ended = [one for one in group if one.phase is TaskPhase.SUCCEEDED]
    return (
        task is not None
        and bool(at(task) and ended)
        and all(one in ended or _inside(one) is False for one in group)
        and all(one.asked is None and one.leaves is None for one in group)
    )


def at(task: TaskState) -> str:
    """Its own line: `train.py:37 in main`; empty where nobody knows it."""
    if task.exit is not None and task.exit.raised_at:
        return short(task.exit.raised_at)
    return task.stacks.at if task.stacks is not None else ""


def short(place: str) -> str:
    """`train.py:37 in step`: the file is the one that the user has open."""
    file, colon, rest = place.rpartition(":")
    return f"{file.rpartition('/')[2]}{colon}{rest}"


def _steps(task: TaskState) -> int | None:
    """Steps that it has surely done; None where nobody counts."""
    if task.phase is TaskPhase.RUNNING and task.stalled is not None:
        return task.stalled.step or None
    over = task.phase.over or task.done is not None
    return task.step if over and task.first_step is not None else None


def _inside(task: TaskState) -> bool | None:
    if task.exit is not None and task.exit.inside is not None:
        return task.exit.inside
    return task.stalled.inside if task.stalled is not None else None


def _elsewhere(task: TaskState) -> bool:
    return task.phase is TaskPhase.SUCCEEDED or task.done is not None or _inside(task) is True
