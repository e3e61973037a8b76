"""The file that a task's stream goes to, and its time index, on a disk that may be full, broken or slow for a while."""

from __future__ import annotations

import contextlib
import dataclasses
import os
from collections.abc import Callable
from pathlib import Path

from phalanx.records.timeindex import gap, record

#: A record in the index at most this often, in ns or bytes.
_INDEX_TIME, _INDEX_BYTES = 10_000_000, 1 << 16
#: Times that wait for a full disk; gaps always do.
_INDEX_WAITING = 1 << 16


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Trouble:
    """The disk takes no more of a log (`over` False), or takes it again. The task went on all the while."""

    path: Path
    #: What is wrong with the disk.
    why: str
    message: str
    #: Bytes lost since it began.
    dropped: int
    over: bool


class LogFile:
    """Appends, and never raises: what the disk does not take is counted, and said at its place once it takes more.

    For one thread, which waits as long as the disk does.
    """

    def __init__(self, path: Path, on_trouble: Callable[[Trouble], None]) -> None:
        """Nothing is opened yet. `on_trouble` is called in that thread."""
        #: Bytes in the file.
        self.offset = 0
        self._path, self._on_trouble = path, on_trouble
        self._file: int | None = None
        self._index: int | None = None
        self._waiting = bytearray()  # records that are not in the index yet
        self._noted: tuple[int, int] | None = None  # the newest of them: offset, time
        self._missing = 0
        self._whole = True  # the file ends with a whole line
        self._troubled = False
        self._why = ""

    def open(self) -> None:
        """So that the file is there before anything is written."""
        self._opened()

    def write(self, data: bytes, now: int) -> int:
        """Append; the number of bytes that had to be dropped."""
        if self._troubled:
            self._resume(now)
        written = 0
        if not self._troubled:
            self._note(now)  # before the data: a reader never finds bytes without a time
            written = self._append(data)
        self.offset += written
        if written:
            self._whole = data[written - 1 : written] == b"\n"
        lost = len(data) - written
        if lost:
            self._missing += lost
            self._report()
        return lost

    def skip(self, count: int, why: str) -> None:
        """So many bytes are missing at this place, since nobody could wait for the disk any longer."""
        self._missing += count
        self._why = why
        self._report()

    def close(self) -> None:
        """What is missing at the end is told as well, if the disk takes that."""
        if self._missing:
            self._opened()
            self._waiting += gap(self.offset, self._missing)
            self._flush_index()
            self._mark()
        self._flush_index()
        self._let_go()

    def _append(self, data: bytes) -> int:
        view = memoryview(data)
        written = 0
        while written < len(data):
            if not self._opened() or self._file is None:
                break
            try:
                written += os.write(self._file, view[written:])
            except OSError as wrong:
                self._why = _said(wrong)
                self._let_go()  # a fresh handle next time: this one may be stale for good
                break
        return written

    def _opened(self) -> bool:
        if self._file is not None:
            return True
        try:
            flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
            self._file = os.open(self._path, flags, 0o666)
            self._index = os.open(self._path.with_name(self._path.name + ".idx"), flags, 0o666)
            size = os.fstat(self._file).st_size
            if size < self.offset:  # emptied to make room: what the index says is of no file any more
                os.ftruncate(self._index, 0)
            self.offset = size
        except OSError as wrong:
            self._why = _said(wrong)
            self._let_go()
            self._report()
            return False
        return True

    def _let_go(self) -> None:
        for fd in (self._file, self._index):
            if fd is not None:
                with contextlib.suppress(OSError):  # a late word about writes that have failed before
                    os.close(fd)
        self._file = self._index = None

    def _resume(self, now: int) -> None:
        """Go on where the disk takes the log again: the gap first, then a line that tells of it, then what comes."""
        begun = len(self._waiting)
        self._opened()
        self._waiting += gap(self.offset, self._missing) + record(self.offset, now)
        if not self._mark():
            del self._waiting[begun:]
            return
        self._noted = None
        self._report(over=True)
        self._missing = 0

    def _mark(self) -> bool:
        """Say in the log what is missing at this place, on a line of its own or not at all."""
        if not self._opened():
            return False
        start = self.offset
        line = f"[phalanx: {self._missing:,} bytes of output are missing here: {self._why}]\n".encode()
        line = line if self._whole or not start else b"\n" + line
        written = self._append(line)
        if written < len(line):
            with contextlib.suppress(OSError):
                os.truncate(self._path, start)
            return False
        self.offset, self._whole = start + written, True
        return True

    def _note(self, now: int) -> None:
        if self._noted is not None:
            offset, then = self._noted
            if now - then < _INDEX_TIME and self.offset - offset < _INDEX_BYTES:
                return
        if len(self._waiting) < _INDEX_WAITING:
            self._noted = self.offset, now
            self._waiting += record(self.offset, now)
        self._flush_index()

    def _flush_index(self) -> None:
        while self._waiting and self._index is not None:
            try:
                del self._waiting[: os.write(self._index, self._waiting)]
            except OSError:
                return  # they wait; the log itself will say what is wrong with the disk

    def _report(self, *, over: bool = False) -> None:
        """Once when it begins, once when it is over."""
        if self._troubled is not over:
            return
        self._troubled = not over
        message = (
            f"{self._path} is written again; {self._missing:,} bytes of output are missing ({self._why})"
            if over
            else f"{self._path} cannot be written ({self._why}): the task goes on, its output is lost until it can"
        )
        self._on_trouble(Trouble(path=self._path, why=self._why, message=message, dropped=self._missing, over=over))


def _said(wrong: OSError) -> str:
    return wrong.strerror or str(wrong)
