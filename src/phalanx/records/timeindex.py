"""Which byte of a log came when: the records beside it, and a reader that gives lines their time.

The index is a row of 16-byte records, little endian: u64 offset, u64 Unix time in ns. Every byte from `offset` up to
the next record's was read at that time, to about 10 ms. A record whose offset has the top bit set is a gap: at that
offset of the log so many bytes (the second number) are missing, since the disk took none.
"""

from __future__ import annotations

import dataclasses
import os
import struct
from collections.abc import Callable, Iterator
from pathlib import Path
from types import TracebackType
from typing import Self

RECORD = struct.Struct("<QQ")
GAP = 1 << 63

#: The longest piece of a line that is handed out at once.
LONGEST = 1 << 20
_BLOCK = 1 << 16


def record(offset: int, time_ns: int) -> bytes:
    """The bytes from `offset` on came at `time_ns`."""
    return RECORD.pack(offset, time_ns)


def gap(offset: int, missing: int) -> bytes:
    """`missing` bytes were lost at `offset`."""
    return RECORD.pack(GAP | offset, missing)


@dataclasses.dataclass(frozen=True, slots=True)
class Line:
    """One line as it was written, with its newline; without one where it is unfinished or longer than LONGEST."""

    offset: int
    #: Unix time in ns at which its first byte was read; 0 where no index tells.
    time: int
    data: bytes

    @property
    def end(self) -> int:
        """Where the next one begins: give it to `lines` to go on."""
        return self.offset + len(self.data)


class TimeIndex:
    """Reads one log and its index, also while both grow. Close it, or use it in a `with`.

    Raises FileNotFoundError where there is no log; without an index everything has time 0.
    """

    def __init__(self, log: Path) -> None:
        """Nothing is read ahead: any size costs the same."""
        self._log = os.open(log, os.O_RDONLY | os.O_CLOEXEC)
        self._path = log.with_name(log.name + ".idx")
        self._index: int | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, wrong: BaseException | None, where: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Idempotent."""
        for fd in (self._log, self._index):
            if fd is not None and fd >= 0:
                os.close(fd)
        self._log, self._index = -1, None

    @property
    def size(self) -> int:
        """Bytes in the log now."""
        return os.fstat(self._log).st_size

    def time_at(self, offset: int) -> int:
        """When the byte at `offset` was read: Unix time in ns. 0 where no record tells."""
        return self._time(self._first(lambda at, _: at > offset) - 1)

    def offset_at(self, time_ns: int) -> int:
        """The first byte that was read at `time_ns` or later; the log's size where none was yet."""
        number = self._first(lambda _, when: when >= time_ns)
        return min(self._record(number)[0] & ~GAP, self.size) if number < self._count() else self.size

    def gaps(self) -> tuple[tuple[int, int], ...]:
        """(offset, bytes missing there) of each time that the disk took nothing."""
        records = (self._record(number) for number in range(self._count()))
        return tuple((offset & ~GAP, missing) for offset, missing in records if offset & GAP)

    def lines(self, offset: int = 0, *, since: int | None = None, final: bool = False) -> Iterator[Line]:
        """The lines from `offset` on, or from the first one read in part at `since` (Unix ns) or later, to the end now.

        `offset` is the start of a line, such as `Line.end`. An unfinished last line is kept for the next call, unless
        `final`. To follow a growing log, call again with the `end` of the last line.
        """
        if since is not None:
            offset = self._line_start(max(offset, self.offset_at(since)))
        number = max(self._first(lambda at, _: at > offset) - 1, 0)
        count, time, next_at = self._count(), self._time(number), 0
        for start, data in self._pieces(offset, final=final):
            while start >= next_at:  # walk along: a search for every line would cost more than reading it
                while number + 1 < count and self._record(number + 1)[0] & ~GAP <= start:
                    number += 1
                time = self._time(number)
                if number + 1 >= count:
                    count = self._count()
                next_at = self._record(number + 1)[0] & ~GAP if number + 1 < count else GAP
            yield Line(start, time, data)

    def _pieces(self, offset: int, *, final: bool) -> Iterator[tuple[int, bytes]]:
        held = b""  # the line that begins at `offset`, as far as it is read
        while block := os.pread(self._log, _BLOCK, offset + len(held)):
            *whole, rest = block.split(b"\n")
            for part in whole:
                data = held + part + b"\n"
                held = b""
                yield offset, data
                offset += len(data)
            held += rest
            while len(held) >= LONGEST:
                yield offset, held[:LONGEST]
                offset += LONGEST
                held = held[LONGEST:]
        if held and final:
            yield offset, held

    def _line_start(self, offset: int) -> int:
        """Where the line begins that the byte at `offset` belongs to; looks back LONGEST at most."""
        low = max(offset - LONGEST, 0)
        end = offset
        while end > low:
            start = max(end - _BLOCK, low)
            found = os.pread(self._log, end - start, start).rfind(b"\n")
            if found >= 0:
                return start + found + 1
            end = start
        return offset if low else 0

    # The index -----------------------------------------------------------------------------------------------------

    def _count(self) -> int:
        if self._index is None:
            try:
                self._index = os.open(self._path, os.O_RDONLY | os.O_CLOEXEC)
            except FileNotFoundError:
                return 0
        return os.fstat(self._index).st_size // RECORD.size

    def _record(self, number: int) -> tuple[int, int]:
        if self._index is None:
            raise IndexError(number)
        found: tuple[int, int] = RECORD.unpack(os.pread(self._index, RECORD.size, number * RECORD.size))
        return found

    def _time(self, number: int) -> int:
        """Of the last record, not after `number`, that is no gap."""
        while number >= 0 and self._count():
            offset, time = self._record(number)
            if not offset & GAP:
                return time
            number -= 1
        return 0

    def _first(self, wanted: Callable[[int, int], bool]) -> int:
        """The number of the first record for which `wanted(offset, time)` is true and stays so; how many where none."""
        low, high = 0, self._count()
        while low < high:
            middle = (low + high) // 2
            if wanted(self._record(middle)[0] & ~GAP, self._time(middle)):
                high = middle
            else:
                low = middle + 1
        return low
