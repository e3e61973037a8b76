"""The logs of several tasks as one story: each line at the time it came, read as a stream, also while they grow."""

from __future__ import annotations

import dataclasses
import heapq
import itertools
from collections.abc import Iterable, Iterator
from operator import attrgetter
from pathlib import Path

from phalanx.observe.logtail import size_of
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
    return heapq.merge(*(_Place(log, since).upto(None) for log in logs), key=attrgetter("ns"))


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


class _Place:
    """How far one log has been read."""

    def __init__(self, log: LogFile, since: int | None) -> None:
        self._log, self._since = log, since
        self._at = 0
        self._seen = 0  # the size at which there was nothing more to give

    def upto(self, until: int | None) -> Iterator[Line]:
        """The next lines that came at `until` or before; with None every line, and the unended last one.

        Goes no further than the log reaches now: one that is flooded would never end.
        """
        size = size_of(self._log.path)
        if size <= (self._at if until is None else self._seen):
            return
        while self._at < size:
            lines = self._batch(until, size)
            yield from lines
            if len(lines) < _BATCH:
                return

    def _batch(self, until: int | None, size: int) -> list[Line]:
        """The next lines; fewer than `_BATCH` where there are no more, or where they are too young."""
        try:
            with TimeIndex(self._log.path) as index:
                found = index.lines(self._at, since=self._since, final=until is None)
                batch = list(itertools.islice(found, _BATCH))
        except FileNotFoundError:
            return []  # the run's folder was taken away in this moment
        ripe = list(itertools.takewhile(lambda line: until is None or line.time <= until, batch))
        if ripe:
            self._at, self._since = ripe[-1].end, None
        if len(ripe) == len(batch) < _BATCH:
            self._seen = size
        return [Line(line.time or _written(self._log.path), self._log, line.data.removesuffix(b"\n")) for line in ripe]


def _written(path: Path) -> int:
    try:
        return path.stat().st_mtime_ns
    except FileNotFoundError:
        return 0
