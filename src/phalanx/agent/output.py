"""What a task says, one stream at a time: kept to the byte, with the time of each piece, at next to no cost."""

from __future__ import annotations

import asyncio
import fcntl
import functools
import os
import re
import time
from collections.abc import Callable
from pathlib import Path

from phalanx.agent.disk import Disk
from phalanx.agent.logfile import LogFile, Trouble
from phalanx.redact import Masker

#: Wanted room in a task's pipe: what it may say while our loop is busy elsewhere.
_PIPE = 1 << 20
#: Bytes read at once, and in one turn of the loop.
_CHUNK, _TURN = 1 << 18, 1 << 20
#: Seconds between two reads of a stream that goes on. A task that writes line by line would else wake us for each.
_SHORTEST, _LONGEST = 0.001, 0.010
#: Bytes of one stream that may wait for the disk: 40,000 lines, which a talkative task writes within a minute.
WAITING = 1 << 22
#: What is remembered of the end, for error messages and the live table.
_TAIL = 1 << 15
#: Seconds for which `last_line` may be old while the stream goes on.
_FRESH = 0.2
#: Why something is missing that the disk was never given.
_HUNG = "the disk took nothing for too long"
#: The most that `close` still takes from a stream that never ends.
_LAST_DRAIN = 1 << 24


class Capture:
    """Copies one stream to a file and notes when each piece came, in `<file>.idx` (see records.timeindex).

    Reads inside the running event loop until every writer has closed the stream; the disk's own thread writes. A disk
    that is slow holds the task up once `WAITING` bytes wait, as a terminal would, and nothing is lost. One that takes
    nothing at all (full, broken, hanging for seconds) holds up nobody: what has no room is dropped and counted. Once
    it takes the log again, a line of ours stands where something is missing, and the index knows the gap.
    """

    def __init__(
        self,
        fd: int,
        path: Path,
        disk: Disk,
        *,
        masker: Masker | None = None,
        on_trouble: Callable[[Trouble], None] | None = None,
        echo: Callable[[bytes], None] | None = None,
        clock: Callable[[], int] = time.time_ns,
    ) -> None:
        """Owns `fd`, the read end of a pipe or pty, from now on. Needs a running loop, and the folder of `path`.

        `echo` is told all that is kept, whatever becomes of it on the disk, and nothing (b"") at the end.
        """
        self.path = path
        self.done = asyncio.Event()  # the stream has ended, and the disk has taken or refused all of it
        self.dropped = 0
        self.last_output: float | None = None  # Unix time in seconds of the newest byte
        self._fd, self._masker, self._disk = fd, masker, disk
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = None
        self._pause = _LONGEST
        self._room = _enlarged(fd)
        self._on_trouble, self._echo = on_trouble, echo
        self._log = LogFile(path, lambda trouble: disk.back(self._tell, trouble))
        self._put = self._took = 0  # bytes; the second is the thread's
        self._skipped = 0
        self._ended = False
        self._clock, self._now = clock, 0
        self._tail = b""
        self._line, self._line_due, self._line_of = "", 0.0, b""
        os.set_blocking(fd, False)
        disk.put(self._log.open)
        self._loop.add_reader(fd, self._wake)

    @property
    def size(self) -> int:
        """Bytes in the file."""
        return self._log.offset

    @property
    def last_line(self) -> str:
        """The newest line that is not blank, as a terminal would show it; looked for a few times a second at most."""
        if self._tail is not self._line_of and (self._ended or self._loop.time() >= self._line_due):
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
        """Take what has come, and let the stream go, ended or not. Idempotent. What is taken is the disk's to write."""
        left = _LAST_DRAIN
        while not self._ended and left > 0:
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
        if self._full and not self._disk.hangs:
            self._timer = self._loop.call_later(_LONGEST, self._turn)
            return
        got = self._read()
        if self._ended:
            return
        if got == 0:
            self._loop.add_reader(self._fd, self._wake)
            return
        half_full = got * 2 >= self._room
        self._pause = max(self._pause / 2, _SHORTEST) if half_full else min(self._pause * 1.5, _LONGEST)
        self._timer = self._loop.call_later(self._pause, self._turn)

    def _read(self) -> int:
        """Bytes read, at most _TURN; none at the end of the stream."""
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
        if not data:
            return
        if self._echo is not None:
            self._echo(data)
        self._tail = data[-_TAIL:] if len(data) >= _TAIL else (self._tail + data)[-_TAIL:]
        if self._full and self._disk.hangs:
            self._skipped += len(data)
            self.dropped += len(data)
            return
        self._put += len(data)
        self._disk.put(functools.partial(self._write, data, self._now, self._skip()))

    @property
    def _full(self) -> bool:
        return self._put - self._took >= WAITING

    def _skip(self) -> int:
        """Bytes that are missing before what is put next."""
        skipped, self._skipped = self._skipped, 0
        return skipped

    def _write(self, data: bytes, now: int, skipped: int) -> None:
        """In the disk's thread."""
        if skipped:
            self._log.skip(skipped, _HUNG)
        lost = self._log.write(data, now)
        self._took += len(data)
        if lost:
            self._disk.back(self._lose, lost)

    def _finish(self, skipped: int) -> None:
        """In the disk's thread."""
        if skipped:
            self._log.skip(skipped, _HUNG)
        self._log.close()
        self._disk.back(self.done.set)

    def _lose(self, count: int) -> None:
        self.dropped += count

    def _tell(self, trouble: Trouble) -> None:
        if self._on_trouble is not None:
            self._on_trouble(trouble)

    def _end(self) -> None:
        if self._ended:
            return
        self._ended = True
        self._loop.remove_reader(self._fd)
        if self._timer is not None:
            self._timer.cancel()
        os.close(self._fd)
        if self._masker is not None:
            self._keep(self._masker.flush())
        if self._echo is not None:
            self._echo(b"")
        self._disk.put(functools.partial(self._finish, self._skip()))


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
