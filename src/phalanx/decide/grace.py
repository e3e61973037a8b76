"""How long those have that must end since another task has failed."""

from __future__ import annotations

import math
from collections.abc import Sequence

from phalanx.decide.culprit import is_own, was_preempted
from phalanx.decide.unit import fallen
from phalanx.names import TRAINING_TYPES
from phalanx.plan.outline import Strategy
from phalanx.plan.policies import Grace, Policies
from phalanx.states import RunState
from phalanx.taskstate import TaskState

#: Seconds for which the peers of a preempted task are left alone: they are saving the same step, and a TERM that meets
#: them in their last moment, when Python has let go of its handlers, would spoil their exit.
LEAVING = 3.0


def left_alone(state: RunState) -> float | None:
    """Until when nobody else need be told to end; None where that is at once."""
    first = _first(state)
    if first is None or not was_preempted(first) or first.ended is None:
        return None
    return first.ended + LEAVING


def graces(state: RunState, told: Sequence[TaskState], policies: Policies) -> tuple[tuple[list[TaskState], float], ...]:
    """The tasks in groups, each with its seconds between TERM and KILL.

    An MWMS worker ignores TERM, and takes 0.5-0.7 s to blame its peer (facts §3, §5). Where a signal has killed the
    first of them, its exit says all, and the next generation does not wait for such words. Where it ended with a code
    they are heard: all may have failed alike. A longer grace than the usual one was asked for, and is kept. Where the
    first was preempted the others are saving the same step, and get the time that a stop gives them.
    """
    usual = policies.grace.failure
    first = _first(state)
    if first is not None and was_preempted(first):
        return ((list(told), policies.grace.stop),)
    certain = first is not None and first.exit is not None and first.exit.signal is not None and is_own(first)
    if not (certain and policies.restart.max and state.strategy == Strategy.MWMS.value and usual <= Grace().failure):
        return ((list(told), usual),)
    trains = [task for task in told if task.id.type in TRAINING_TYPES]
    rest = [task for task in told if task.id.type not in TRAINING_TYPES]
    return tuple((some, grace) for some, grace in ((trains, 0.0), (rest, usual)) if some)


def _first(state: RunState) -> TaskState | None:
    trained = [task for task in fallen(state) if task.id.type in TRAINING_TYPES]
    return min(trained, key=lambda task: (task.ended or math.inf, task.id), default=None)
