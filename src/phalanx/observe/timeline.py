"""The logs of several tasks as one story: each line at the time it came, read as a stream, also while they grow."""

from __future__ import annotations

import dataclasses
import heapq
import itertools
from collections.abc import Iterable, Iterator
from operator import attrgetter
from pathlib import Path

from phalanx.records.folder import LogFile
from phalanx.records.timeindex import TimeIndex

#: While following, a line waits this long for an earlier one of another task, in nanoseconds.
HOLD = 200_000_000
#: How many lines of each of many logs are in memory at once; their files are closed meanwhile.
_BATCH = 100


@dataclasses.dataclass(frozen=True, slots=True)
class Line:
    """One line of output, without its newline, and when it came (Unix nanoseconds)."""

    ns: int
    log: LogFile
    data: bytes

    @property
    def text(self) -> str:
        """As text; bytes that are no UTF-8 are replaced."""
        return self.data.decode(errors="replace")


def merged(logs: Iterable[LogFile], *, since: int | None = None) -> Iterator[Line]:
    """Every line of these logs that came at `since` (Unix nanoseconds) or later, in the order in which they came.

    A stream for any number and any size of logs. Where a log has no index, its lines have the time of its last write.
    """
    return heapq.merge(*(_all(log, since) for log in logs), key=attrgetter("ns"))


def _all(log: LogFile, since: int | None) -> Iterator[Line]:
    at = 0
    while True:
        try:
            index = TimeIndex(log.path)
        except FileNotFoundError:
            return
        with index:
            batch = list(itertools.islice(index.lines(at, since=since, final=True), _BATCH))
        for line in batch:
            yield _line(log, line.time, line.data)
        if len(batch) < _BATCH:
            return
        at, since = batch[-1].end, None


class Growing:
    """The same for logs that are being written: what has come since the last look, in order across tasks."""

    def __init__(self, *, since: int | None = None) -> None:
        """Lines before `since` are left out."""
        self._since = since
        self._logs: dict[LogFile, _Place] = {}

    def new(self, logs: Iterable[LogFile], *, now: int, last: bool = False) -> Iterator[Line]:
        """New lines of these logs, which may be more than last time; with `last` all there are, unended ones too.

        `now` is the time before the look in Unix nanoseconds: what is younger than `HOLD` waits for the next look,
        since an earlier line of another task may still be on its way. A line that took long to be complete comes late.
        """
        for log in logs:
            self._logs.setdefault(log, _Place(log, self._since))
        until = None if last else now - HOLD
        return heapq.merge(*(place.upto(until) for place in self._logs.values()), key=attrgetter("ns"))

    def close(self) -> None:
        """Give the files back."""
        for place in self._logs.values():
            place.close()


class _Place:
    """How far one log has been read."""

    def __init__(self, log: LogFile, since: int | None) -> None:
        self._log, self._since = log, since
        self._index: TimeIndex | None = None
        self._at = 0

    def upto(self, until: int | None) -> Iterator[Line]:
        """The next lines that came at `until` or before; with None every line, and the unended last one."""
        if self._index is None:
            try:
                self._index = TimeIndex(self._log.path)
            except FileNotFoundError:
                return
        if self._index.size <= self._at:
            return  # one system call where nothing is new
        for line in self._index.lines(self._at, since=self._since, final=until is None):
            if until is not None and line.time > until:
                return
            self._at, self._since = line.end, None
            yield _line(self._log, line.time, line.data)

    def close(self) -> None:
        if self._index is not None:
            self._index.close()


def _line(log: LogFile, time: int, data: bytes) -> Line:
    return Line(time or _written(log.path), log, data.removesuffix(b"\n"))


def _written(path: Path) -> int:
    try:
        return path.stat().st_mtime_ns
    except FileNotFoundError:
        return 0
