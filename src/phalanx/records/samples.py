"""Samples in files: a line each, the values alone, under a line that names them. Read while they are written.

`metrics/tasks.jsonl` holds `TaskSample`s, `metrics/links.jsonl` `LinkSample`s, `metrics/loads.jsonl` `LoadSample`s. A
file is replaced by a thinner one when it has grown: the older a sample, the farther it may be from the next.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import json
import math
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Generic, TypeVar

from phalanx.names import TaskId
from phalanx.sample import LinkSample, LoadSample, TaskSample

Sample = TaskSample | LinkSample | LoadSample
S = TypeVar("S", TaskSample, LinkSample, LoadSample)

#: Two samples of an age are kept where they lie this part of it apart: 64 of an hour's first half, 64 of the second's.
_APART = 1 / 64

#: What a look at the newest samples reads of a file.
_RECENT = 1 << 18

#: No moment, count or amount is so large; a file may be damaged.
_LARGEST = 1 << 63


def to_line(sample: Sample) -> str:
    """One sample, without its newline. Numbers that JSON lacks are strings: `"NaN"`, `"Infinity"`."""
    return json.dumps([plain(getattr(sample, name)) for name in _names(type(sample))], separators=(",", ":"))


def head(kind: type[Sample]) -> str:
    """The line that names the values of those after it."""
    return json.dumps(_names(kind), separators=(",", ":"))


class SampleReader(Generic[S]):
    """What is new in a file of samples. It may come into being later, and be replaced by a thinner one."""

    def __init__(self, path: Path, kind: type[S], *, recent: bool = False) -> None:
        """From the beginning; with `recent` from some place near the end."""
        self._path, self._recent = path, recent
        self._kind: type[S] = kind
        self._names: Sequence[str] = _names(kind)
        self._file = (0, 0)
        self._at = 0

    def poll(self) -> list[S]:
        """Samples that have come since, in the order they were written. Some of them again, after a replacement."""
        try:
            with self._path.open("rb") as file:
                facts = os.fstat(file.fileno())
                if (facts.st_dev, facts.st_ino) != self._file or facts.st_size < self._at:
                    self._file, self._at = (facts.st_dev, facts.st_ino), 0
                    if self._recent and facts.st_size > _RECENT:
                        self._at = facts.st_size - _RECENT
                file.seek(self._at)
                data = file.read()
        except OSError:
            return []
        whole = data.rfind(b"\n") + 1
        self._at += whole
        return list(self._samples(data[:whole]))

    def _samples(self, data: bytes) -> Iterator[S]:
        for line in data.split(b"\n"):
            with contextlib.suppress(ValueError, TypeError, RecursionError):  # torn, cut, or of a newer phalanx
                row = json.loads(line)
                if not isinstance(row, list):
                    continue
                if row and row[0] in _names(self._kind):
                    self._names = row
                else:
                    yield _sample(self._kind, dict(zip(self._names, row, strict=True)))


def read_samples(path: Path, kind: type[S]) -> list[S]:
    """All samples of the file; none where there is none."""
    return SampleReader(path, kind).poll()


def thinned(samples: Iterable[S], now: float) -> list[S]:
    """Fewer of them, in their order: of each attempt or link the first, the last, and between them by their age."""
    found = list(samples)
    last = {sample.about: number for number, sample in enumerate(found)}
    kept: dict[Any, float] = {}
    result = []
    for number, sample in enumerate(found):
        key = sample.about
        if last[key] == number or sample.at - kept.get(key, -math.inf) >= (now - sample.at) * _APART:
            kept[key] = sample.at
            result.append(sample)
    return result


def plain(value: Any) -> Any:
    """As strict JSON has it."""
    if isinstance(value, TaskId):
        return str(value)
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    return value


def _sample(kind: type[S], values: dict[str, Any]) -> S:
    """Raises ValueError or TypeError where it is none."""
    return kind(**{name: read(values[name]) for name, read in _READERS[kind].items() if name in values})


@functools.lru_cache(20_000)
def _task(text: str) -> TaskId:
    return TaskId.parse(text)


def _whole(value: Any) -> int:
    if type(value) is int and abs(value) < _LARGEST:
        return value
    message = f"{value!r} is no count"
    raise ValueError(message)


def _finite(value: Any) -> float:
    if type(value) in (int, float) and abs(value) < _LARGEST:  # nor is NaN
        return float(value)
    message = f"{value!r} is no amount"
    raise ValueError(message)


def _number(value: Any) -> float:
    """Of any size, or none at all: what a loss may be."""
    if type(value) in (int, float) or value in ("NaN", "Infinity", "-Infinity"):
        with contextlib.suppress(OverflowError):
            return float(value)
    message = f"{value!r} is no number"
    raise ValueError(message)


def _reader(name: str, kind: str) -> Callable[[Any], Any]:
    if kind == "TaskId":
        return _task
    read = _number if name == "loss" else _whole if kind.startswith("int") else _finite
    return (lambda value: None if value is None else read(value)) if kind.endswith("None") else read


_KINDS: tuple[type[Sample], ...] = (TaskSample, LinkSample, LoadSample)
_NAMES = {kind: [field.name for field in dataclasses.fields(kind)] for kind in _KINDS}
#: How each value is read. Its type stands there as text, as annotations do.
_READERS = {kind: {one.name: _reader(one.name, str(one.type)) for one in dataclasses.fields(kind)} for kind in _KINDS}


def _names(kind: type[Sample]) -> list[str]:
    return _NAMES[kind]
