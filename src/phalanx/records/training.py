"""How the training went, as the report tells it: from the samples that were kept."""

from __future__ import annotations

import dataclasses
import statistics
from collections.abc import Mapping, Sequence

from phalanx.names import TaskId, training_order
from phalanx.records.folder import RunFolder
from phalanx.records.samples import plain, read_samples
from phalanx.sample import TaskSample
from phalanx.speed import seconds_left, speed_between, speeds

#: Points of one attempt's curves; of all attempts together; and of each at least.
_POINTS, _ALL, _LEAST = 200, 20_000, 8

#: By task, generation and attempt.
Samples = Mapping[tuple[TaskId, int, int], Sequence[TaskSample]]

#: Six digits, which is what two computers agree on; a string where JSON has no such number: `NaN`, `Infinity`.
Loss = float | str | None


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class TrainingReport:
    """One attempt. None: not known."""

    #: The median of what was done between two samples; pauses in which no step was done do not count.
    steps_per_second: float | None
    #: Of the time from its first sample to its last step.
    collective_share: float | None
    first_loss: Loss
    last_loss: Loss
    epoch: int | None
    epochs: int | None
    steps_per_epoch: int | None
    epoch_step: int | None
    #: Seconds until its `fit` is through, while it goes on.
    left: float | None


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class CurveReport:
    """One attempt over time, for plots: lists of the same length, a value for the time up to each moment in `at`."""

    task: str
    generation: int
    attempt: int
    #: Unix seconds.
    at: tuple[float, ...]
    steps_per_second: tuple[float | None, ...]
    collective_share: tuple[float | None, ...]
    loss: tuple[Loss, ...]


def samples_of(folder: RunFolder) -> Samples:
    """All that were kept, each attempt's in the order of time."""
    found: dict[tuple[TaskId, int, int], list[TaskSample]] = {}
    for one in read_samples(folder.task_samples, TaskSample):
        mine = found.setdefault(one.about, [])
        if not mine or one.at > mine[-1].at:
            mine.append(one)
    return found


def training(samples: Sequence[TaskSample], *, over: bool) -> TrainingReport | None:
    """What the samples of one attempt add up to; None where there is none. `over`: it does not go on."""
    if not samples:
        return None
    first, last = samples[0], samples[-1]
    trained = next(one for one in samples if one.steps == last.steps)  # what comes after it is the end of the program
    rates = [one.steps_per_second for _, one in speeds(samples) if one.steps_per_second]
    losses = [one.loss for one in samples if one.loss is not None]
    left = None if over else seconds_left(first, last)
    return TrainingReport(
        steps_per_second=_digits(statistics.median(rates)) if rates else None,
        collective_share=_share(speed_between(first, trained).collective_share),
        first_loss=_loss(losses[0]) if losses else None,
        last_loss=_loss(losses[-1]) if losses else None,
        epoch=last.epoch,
        epochs=last.epochs,
        steps_per_epoch=last.steps_per_epoch,
        epoch_step=last.epoch_step,
        left=None if left is None else round(left, 1),
    )


def curves(samples: Samples) -> tuple[CurveReport, ...]:
    """Of all attempts, in training order."""
    most = max(_LEAST, min(_POINTS, _ALL // max(len(samples), 1)))
    order = sorted(samples, key=lambda key: (training_order(key[0]), key[1:]))
    return tuple(_curve(key, _evenly(samples[key], most)) for key in order if len(samples[key]) > 1)


def _curve(key: tuple[TaskId, int, int], samples: Sequence[TaskSample]) -> CurveReport:
    task, generation, attempt = key
    found = speeds(samples)
    return CurveReport(
        task=str(task),
        generation=generation,
        attempt=attempt,
        at=tuple(at for at, _ in found),
        steps_per_second=tuple(_digits(one.steps_per_second) for _, one in found),
        collective_share=tuple(_share(one.collective_share) for _, one in found),
        loss=tuple(_loss(one.loss) for one in samples[1:]),
    )


def _evenly(samples: Sequence[TaskSample], most: int) -> Sequence[TaskSample]:
    """The first, the last, and of those between as many as are wanted, evenly by time."""
    if len(samples) <= most:
        return samples
    gap = (samples[-1].at - samples[0].at) / (most - 1)
    kept = [samples[0]]
    for one in samples[1:-1]:
        if one.at - kept[-1].at >= gap:
            kept.append(one)
    return [*kept, samples[-1]]


def _digits(value: float | None) -> float | None:
    return None if value is None else float(f"{value:.4g}")


def _share(value: float | None) -> float | None:
    return None if value is None else round(value, 4)


def _loss(value: float | None) -> Loss:
    found = plain(value)
    return float(f"{found:.6g}") if isinstance(found, float) else found
