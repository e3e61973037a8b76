"""How far the tasks of a run are, how fast and how good: from its samples, in a few words each."""

from __future__ import annotations

import collections
import math
from collections.abc import Iterable, Sequence

from phalanx.names import TaskId
from phalanx.observe.words import uptime
from phalanx.records.folder import RunFolder
from phalanx.records.samples import SampleReader
from phalanx.sample import TaskSample
from phalanx.speed import WIDER, Speed, seconds_left, speed_now
from phalanx.states import RunState
from phalanx.taskstate import TaskState, total_steps

#: What `cells` are about. `comm`: the part of the time that passes in collectives, waiting for peers included.
HEADINGS = ("step", "step/s", "loss", "comm")
#: Which of them go first where there is little room.
_FIRST = (1, 0, 3, 2)

_BARS = "▁▂▃▄▅▆▇█"
#: Above it whole numbers are enough.
_MANY = 100.0


class Progress:
    """The samples of one run: of each attempt the first, and those of its last minute."""

    def __init__(self, folder: RunFolder, *, recent: bool = False) -> None:
        """`recent`: what was long ago is not read; how long it still takes is then told by what is left."""
        self._reader = SampleReader(folder.task_samples, TaskSample, recent=recent)
        self._known: dict[tuple[TaskId, int, int], tuple[TaskSample, collections.deque[TaskSample]]] = {}

    def look(self) -> None:
        """Take up what has come since."""
        self.take(self._reader.poll())

    def take(self, samples: Iterable[TaskSample]) -> None:
        """These too. What is older than what is known is known already."""
        for one in samples:
            _, newest = self._known.setdefault(one.about, (one, collections.deque()))
            if newest and one.at <= newest[-1].at:
                continue
            newest.append(one)
            while one.at - newest[0].at > WIDER:
                newest.popleft()

    def newest(self, task: TaskState) -> TaskSample | None:
        """Of the attempt that runs now."""
        found = self._found(task)
        return found[1][-1] if found else None

    def speed(self, task: TaskState) -> Speed:
        """Of that attempt, now; nothing where it is over."""
        found = self._found(task)
        return Speed() if found is None or task.phase.over else speed_now(found[1])

    def cells(self, task: TaskState) -> tuple[str, ...]:
        """One word under each of `HEADINGS`; empty where it is not known."""
        sample, speed = self.newest(task), self.speed(task)
        if sample is None:
            return ("",) * len(HEADINGS)
        return (
            step_words(task, sample),
            rate_words(speed.steps_per_second),
            loss_words(sample.loss),
            share_words(speed.collective_share),
        )

    def headline(self, state: RunState) -> str:
        """` · epoch 3/10 · 4:10 left`, by the task that leads; empty where no `fit` tells."""
        task = state.leading if state.leader else next(iter(state.tasks.values()), None)
        found = self._found(task) if task else None
        if task is None or found is None or found[1][-1].epoch is None:
            return ""
        first, last = found[0], found[1][-1]
        left = None if task.phase.over else seconds_left(first, last)
        return f" · epoch {epoch_words(last)}" + ("" if left is None else f" · {uptime(left)} left")

    def _found(self, task: TaskState) -> tuple[TaskSample, collections.deque[TaskSample]] | None:
        return self._known.get((task.id, task.generation, task.attempt))


def chosen(rows: Sequence[Sequence[str]], room: int) -> tuple[int, ...]:
    """Which of the columns have something to say and fit into so many characters, each with two before it."""
    taken: list[int] = []
    for column in _FIRST:
        wide = max((len(row[column]) for row in rows), default=0)
        wide = max(wide, len(HEADINGS[column])) + 2 if wide else 0
        if 0 < wide <= room:
            taken.append(column)
            room -= wide
    return tuple(sorted(taken))


def step_words(task: TaskState, sample: TaskSample) -> str:
    """`120/938` of an epoch; else the steps of the run; `+120` where nobody knows how many came before."""
    if sample.epoch is not None and sample.epoch_step is not None:
        of = sample.steps_per_epoch
        return f"{sample.epoch_step}/{of}" if of and sample.epoch_step <= of else str(sample.epoch_step)
    total = total_steps(task, sample.steps)
    return f"+{sample.steps}" if total is None else str(total)


def epoch_words(sample: TaskSample) -> str:
    """`3/10`."""
    return f"{sample.epoch}/{sample.epochs}" if sample.epochs else str(sample.epoch)


def rate_words(rate: float | None) -> str:
    """Three digits: `0.12`, `4.2`, `58`, `312`."""
    if rate is None:
        return ""
    return f"{rate:.0f}" if rate >= _MANY else f"{rate:.3g}"


def loss_words(loss: float | str | None) -> str:
    """Four digits; `nan` and `inf` as they are."""
    if loss is None:
        return ""
    value = float(loss)
    return f"{value:.4g}" if math.isfinite(value) else str(value)


def share_words(share: float | None) -> str:
    """`68%`."""
    return "" if share is None else f"{share:.0%}"


def sparkline(values: Sequence[float | None], width: int) -> str:
    """A curve in one line of `width` characters at most; a blank where there is no value, or none that is finite."""
    if len(values) > width:
        part = len(values) / width
        values = [_mean(values[int(n * part) : int((n + 1) * part)]) for n in range(width)]
    finite = [value for value in values if value is not None and math.isfinite(value)]
    if not finite:
        return ""
    low, high = min(finite), max(finite)
    scale = (len(_BARS) - 1) / (high - low) if high > low else 0.0
    level = len(_BARS) // 2 if high == low else 0
    return "".join(
        " " if value is None or not math.isfinite(value) else _BARS[level + round((value - low) * scale)]
        for value in values
    )


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None and math.isfinite(value)]
    return sum(known) / len(known) if known else None
