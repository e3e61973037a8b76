"""What a task says, one stream at a time: kept to the byte, with the time of each piece, at next to no cost."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import errno
import fcntl
import os
import re
import time
from collections.abc import Callable
from pathlib import Path

from phalanx.records.timeindex import gap, record
from phalanx.redact import Masker

#: Wanted room in a task's pipe: what it may say while our loop is busy elsewhere.
_PIPE = 1 << 20
#: Bytes read at once, and in one turn of the loop.
_CHUNK, _TURN = 1 << 18, 1 << 20
#: Seconds between two reads of a stream that goes on. A task that writes line by line would else wake us for each.
_SHORTEST, _LONGEST = 0.001, 0.010
#: A record in the index at most this often, in ns or bytes.
_INDEX_TIME, _INDEX_BYTES = 10_000_000, 1 << 16
#: Times that wait for a full disk; gaps always do.
_INDEX_WAITING = 1 << 16
#: What is remembered of the end, for error messages and the live table.
_TAIL = 1 << 15
#: Seconds for which `last_line` may be old while the stream goes on.
_FRESH = 0.2
#: The most that `close` still takes from a stream that never ends.
_LAST_DRAIN = 1 << 24


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Trouble:
    """The disk takes no more of a log (`over` False), or takes it again. The task went on all the while."""

    path: Path
    errno: int
    message: str
    #: Bytes lost since it began.
    dropped: int
    over: bool


class Capture:
    """Copies one stream to a file and notes when each piece came, in `<file>.idx` (see records.timeindex).

    Reads inside the running event loop until every writer has closed the stream. Nothing is lost while the disk takes
    it; when it does not, what comes is dropped and counted, and the task is not held up. Once the disk takes the log
    again, a line of ours stands where something is missing, and the index knows the gap.
    """

    def __init__(
        self,
        fd: int,
        path: Path,
        *,
        masker: Masker | None = None,
        on_trouble: Callable[[Trouble], None] | None = None,
        clock: Callable[[], int] = time.time_ns,
    ) -> None:
        """Owns `fd`, the read end of a pipe or pty, from now on. Needs a running loop, and the folder of `path`."""
        self.path = path
        self.done = asyncio.Event()  # the stream has ended, and all of it is in the file
        self.dropped = 0
        self.last_output: float | None = None  # Unix time in seconds of the newest byte
        self._fd, self._masker = fd, masker
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = None
        self._pause = _LONGEST
        self._room = _enlarged(fd)
        self._log = _Log(path, on_trouble)
        self._clock, self._now = clock, 0
        self._tail = b""
        self._line, self._line_due, self._line_of = "", 0.0, b""
        os.set_blocking(fd, False)
        self._loop.add_reader(fd, self._wake)

    @property
    def size(self) -> int:
        """Bytes in the file."""
        return self._log.offset

    @property
    def last_line(self) -> str:
        """The newest line that is not blank, as a terminal would show it; looked for a few times a second at most."""
        if self._tail is not self._line_of and (self.done.is_set() or self._loop.time() >= self._line_due):
            self._line_of, self._line_due = self._tail, self._loop.time() + _FRESH
            self._line = next(iter(self.last_lines(1)), "")
        return self._line

    def last_lines(self, count: int) -> tuple[str, ...]:
        """The last `count` lines as a terminal would show them, blank ones at the end left out."""
        tail = self._tail
        if len(tail) == _TAIL:
            tail = tail.partition(b"\n")[2] or tail  # the first line is cut
        lines = shown(tail.decode(errors="replace"))
        while lines and not lines[-1].strip():
            lines.pop()
        return tuple(lines[-count:]) if count > 0 else ()

    def close(self) -> None:
        """Take what has come, and let the stream go, ended or not. Idempotent."""
        left = _LAST_DRAIN
        while not self.done.is_set() and left > 0:
            got = self._read()
            if got == 0:
                break
            left -= got
        self._end()

    def _wake(self) -> None:
        self._loop.remove_reader(self._fd)
        self._turn()

    def _turn(self) -> None:
        """Read what has gathered, then let more gather: often enough that the pipe never fills, and no oftener."""
        self._timer = None
        got = self._read()
        if self.done.is_set():
            return
        if got == 0:
            self._loop.add_reader(self._fd, self._wake)
            return
        half_full = got * 2 >= self._room
        self._pause = max(self._pause / 2, _SHORTEST) if half_full else min(self._pause * 1.5, _LONGEST)
        self._timer = self._loop.call_later(self._pause, self._turn)

    def _read(self) -> int:
        """Bytes read, at most _TURN; at the end of the stream `done` is set."""
        got = 0
        while got < _TURN:
            try:
                data = os.read(self._fd, _CHUNK)
            except BlockingIOError:
                break
            except OSError:  # EIO: the other side of a pty has closed
                data = b""
            if not data:
                self._end()
                break
            got += len(data)
            self._take(data)
            if len(data) < _CHUNK:
                break
        return got

    def _take(self, data: bytes) -> None:
        self._now = max(self._clock(), self._now)  # a clock set back must not muddle the index
        self.last_output = self._now / 1e9
        self._keep(self._masker.feed(data) if self._masker is not None else data)

    def _keep(self, data: bytes) -> None:
        if data:
            self.dropped += self._log.write(data, self._now)
            self._tail = data[-_TAIL:] if len(data) >= _TAIL else (self._tail + data)[-_TAIL:]

    def _end(self) -> None:
        if self.done.is_set():
            return
        self._loop.remove_reader(self._fd)
        if self._timer is not None:
            self._timer.cancel()
        os.close(self._fd)
        if self._masker is not None:
            self._keep(self._masker.flush())
        self._log.close()
        self.done.set()


class _Log:
    """The file and its index, on a disk that may be full or broken for a while."""

    def __init__(self, path: Path, on_trouble: Callable[[Trouble], None] | None) -> None:
        self.offset = 0
        self._path, self._on_trouble = path, on_trouble
        self._file: int | None = None
        self._index: int | None = None
        self._waiting = bytearray()  # records that are not in the index yet
        self._noted: tuple[int, int] | None = None  # the newest of them: offset, time
        self._missing = 0
        self._whole = True  # the file ends with a whole line
        self._troubled = False
        self._last_errno = 0
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

    def close(self) -> None:
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
                self._last_errno = wrong.errno or errno.EIO
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
            self._last_errno = wrong.errno or errno.EIO
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
        start, wrong = self.offset, os.strerror(self._last_errno)
        line = f"[phalanx: {self._missing:,} bytes of output are missing here: {wrong}]\n".encode()
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
        if self._on_trouble is not None:
            wrong = os.strerror(self._last_errno)
            message = (
                f"{self._path} is written again; {self._missing:,} bytes of output are missing ({wrong})"
                if over
                else f"{self._path} cannot be written ({wrong}): the task goes on, its output is lost until it can"
            )
            self._on_trouble(
                Trouble(path=self._path, errno=self._last_errno, message=message, dropped=self._missing, over=over)
            )


#: Colours, cursor moves, window titles.
_ANSI = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[ -/]*[0-~])")
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")


def shown(text: str) -> list[str]:
    r"""The lines of `text` as a terminal ends up showing them: no escape codes, `\r` progress in its last state."""
    return [_last_state(line) for line in _ANSI.sub("", text).split("\n")]


def _last_state(line: str) -> str:
    states = [state for state in line.split("\r") if state.strip()]
    return _CONTROL.sub("", states[-1]) if states else ""


def _enlarged(fd: int) -> int:
    """Give the pipe as much room as this user may have; how much it has now."""
    room = _PIPE
    while room > 1 << 16:
        try:
            return fcntl.fcntl(fd, fcntl.F_SETPIPE_SZ, room)
        except OSError:  # EPERM: above pipe-max-size, or this user's pipes have all they may have
            room //= 2
    try:
        return fcntl.fcntl(fd, fcntl.F_GETPIPE_SZ)
    except OSError:
        return 1 << 16  # no pipe, but a pty or a socket
