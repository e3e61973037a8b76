"""The logs of several tasks as one story: each line at the time it came, read as a stream, also while they grow."""

from __future__ import annotations

import collections
import dataclasses
import heapq
from collections.abc import Iterable, Iterator, Sequence
from operator import attrgetter

from phalanx.observe.logtail import GrowingFile
from phalanx.records.folder import LogFile
from phalanx.records.timeindex import TimeIndex

#: While following, a line waits this long for an earlier one of another task, in nanoseconds.
HOLD = 200_000_000
#: How much of each of many logs is in memory at once.
_STEP = 1 << 16


@dataclasses.dataclass(frozen=True, slots=True)
class Line:
    """One line of output, without its newline, and when it was complete (Unix nanoseconds)."""

    ns: int
    log: LogFile
    data: bytes

    @property
    def text(self) -> str:
        """As text; bytes that are no UTF-8 are replaced."""
        return self.data.decode(errors="replace")


def merged(logs: Iterable[LogFile], *, since: int = 0) -> Iterator[Line]:
    """Every line of these logs that came at `since` or later, in the order in which they came.

    A stream: memory holds a piece of each log, and no file stays open between two pieces.
    """
    return heapq.merge(*(_all(log, since) for log in logs), key=attrgetter("ns"))


def _all(log: LogFile, since: int) -> Iterator[Line]:
    reader = _Timed(log, since, step=_STEP)
    while reader.read(last=True):
        reader.close()
        while reader.lines:
            yield reader.lines.popleft()
    reader.close()


class Growing:
    """The same for logs that are being written: what has come since the last look, in order across tasks."""

    def __init__(self, *, since: int = 0) -> None:
        """Lines before `since` are left out."""
        self._since = since
        self._readers: dict[LogFile, _Timed] = {}

    def new(self, logs: Sequence[LogFile], *, now: int, last: bool = False) -> Iterator[Line]:
        """New lines of these logs, which may be more than last time; with `last` all there are, unended ones too.

        `now` is the time before the look in Unix nanoseconds: what is younger than `HOLD` waits for the next look,
        since an earlier line of another task may still be on its way.
        """
        for log in logs:
            if log not in self._readers:
                self._readers[log] = _Timed(log, self._since)
        for reader in self._readers.values():
            while reader.read(last=last) and last:
                continue
        until = None if last else now - HOLD
        yield from heapq.merge(*(reader.upto(until) for reader in self._readers.values()), key=attrgetter("ns"))

    def close(self) -> None:
        """Give the files back."""
        for reader in self._readers.values():
            reader.close()


class _Timed:
    """One log with its time index: whole lines as they come, each with its time."""

    def __init__(self, log: LogFile, since: int, *, step: int | None = None) -> None:
        self.lines: collections.deque[Line] = collections.deque()
        self._log, self._since = log, since
        self._times = TimeIndex(log.index)
        self._skipping = False
        self._file = GrowingFile(log.path, step=step)

    def read(self, *, last: bool) -> bool:
        """Take in what is new, at most a step of it; whether there was anything."""
        raise NotImplementedError

    def upto(self, until: int | None) -> Iterator[Line]:
        """Take out the lines that came at `until` or before; all of them for None."""
        while self.lines and (until is None or self.lines[0].ns <= until):
            yield self.lines.popleft()

    def close(self) -> None:
        self._file.close()
