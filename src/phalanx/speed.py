"""How fast a task trains and how long it will take, from samples of one attempt, oldest first."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Sequence

from phalanx.sample import TaskSample

#: Seconds that are looked at together; where nothing was done in them (a long step, a validation), this many.
WINDOW, WIDER = 15.0, 60.0


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Speed:
    """Over some seconds. None: not known."""

    steps_per_second: float | None = None
    #: The part of the time that passes in collectives, from 0 to 1.
    collective_share: float | None = None


def speed_now(samples: Sequence[TaskSample]) -> Speed:
    """As of the newest of them."""
    if not samples:
        return Speed()
    last = samples[-1]
    for window in (WINDOW, WIDER):
        first = next(one for one in samples if last.at - one.at <= window)
        if last.steps > first.steps:
            break
    return speed_between(first, last)


def speed_between(first: TaskSample, last: TaskSample) -> Speed:
    """From one to the other."""
    seconds = last.at - first.at
    if seconds <= 0:
        return Speed()
    share = None
    if first.collective is not None and last.collective is not None:
        share = min(max((last.collective - first.collective) / seconds, 0.0), 1.0)
    return Speed(steps_per_second=max(last.steps - first.steps, 0) / seconds, collective_share=share)


def speeds(samples: Sequence[TaskSample]) -> list[tuple[float, Speed]]:
    """Between each two that follow each other, by the time of the later one."""
    return [(last.at, speed_between(first, last)) for first, last in itertools.pairwise(samples) if last.at > first.at]


def seconds_left(first: TaskSample, last: TaskSample) -> float | None:
    """Until `fit` is through its epochs, if it goes on as it went from `first` to `last`, pauses and all.

    None where nobody can tell: there is no `fit`, or the length of an epoch is not known, or it does not move.
    """
    if last.epoch is None or last.epochs is None or last.steps_per_epoch is None or last.epoch_step is None:
        return None
    steps = (last.epochs - last.epoch + 1) * last.steps_per_epoch - last.epoch_step
    rate = speed_between(first, last).steps_per_second
    return max(steps, 0) / rate if rate else None
