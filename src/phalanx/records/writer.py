"""Writing the records: each event is one whole line or none, whatever happens to the writer or the disk."""

from __future__ import annotations

import collections
import contextlib
import dataclasses
import errno
import fcntl
import itertools
import json
import os
import secrets
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from phalanx.errors import PlaceError
from phalanx.events import Noted, Record, RunEnded
from phalanx.records.reserve import LAST, Reserve
from phalanx.redact import redact

#: How many unwritten records are kept while the disk takes none; the oldest go first, and are counted.
BACKLOG = 100_000

#: As many of them go into one write.
_BATCH = 100

_BLOCK = 1 << 16

#: File systems that know no locks: the log works there, a second lead is not noticed.
_NO_LOCKS = (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP, errno.EINVAL)

#: Fields of events in which the words of tasks and people stand.
_FREE_TEXT = frozenset({"by", "cause", "hint", "last_lines", "message", "raised", "reason"})


class HeldError(PlaceError):
    """Another writer has the lock of the records."""


class FencedError(PlaceError):
    """Another writer has claimed the records: this one writes nothing any more."""


@dataclasses.dataclass(slots=True)
class _Trouble:
    """A time in which the disk took nothing."""

    since: float
    reason: str
    late: int = 0
    lost: int = 0


class EventLog:
    """`events.jsonl` of one run, opened for appending. One writer at a time; not for several threads.

    Whole lines are written at the end of the file; one that kill -9 cuts is taken away by the next writer. A disk that
    takes nothing never raises: the records wait in memory and are tried again at each `append` and `flush`; a note then
    tells of the gap. Blocks are reserved ahead, so that this is seldom so, and the last of them are for the end of the
    run alone. What writes raises FencedError as the `fence` does.
    """

    def __init__(self, path: Path, *, clock: Callable[[], float] = time.time, alone: bool = True) -> None:
        """Opens or continues the file. Raises PlaceError where that cannot be, or another writer holds it.

        With `alone` false a writer that holds it and cannot let go (it is frozen) is written past: the caller has
        seen to it that it writes no more.
        """
        self._path, self._clock = path, clock
        #: Called right before each write; where it raises FencedError nothing is written.
        self.fence: Callable[[], None] = _free
        self._backlog: collections.deque[Record] = collections.deque()
        self._trouble: _Trouble | None = None
        self._last = (0, 0)  # seq and epoch of what was written last
        try:
            self._fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
        except OSError as wrong:
            raise PlaceError(f"the records {path} cannot be written: {wrong.strerror}") from wrong
        if alone:
            self._lock()
        self._reserve = Reserve(self._fd)
        self._ended = False  # the end of the run is written: nothing follows
        #: Bytes of a record that a writer before this one was killed in: taken away.
        self.dropped = self._mend()
        #: A torn last line ends where the next record begins.
        self._torn = not _ends_whole(self._fd)
        #: Bytes in the file; other threads may look.
        self.size = os.fstat(self._fd).st_size

    def _lock(self) -> None:
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as wrong:
            if wrong.errno in _NO_LOCKS:
                return
            os.close(self._fd)
            raise HeldError(
                f"the records {self._path} are being written by another lead",
                hint="`phalanx ps` shows whether it lives",
            ) from wrong

    def _mend(self) -> int:
        """Take away half a line at the end, so that the file is whole again. A disk that refuses leaves it torn."""
        size = os.fstat(self._fd).st_size
        start = _line_start(self._fd, size)
        with contextlib.suppress(OSError):
            if start < size and _is_json(os.pread(self._fd, size - start, start)):
                os.write(self._fd, b"\n")
            elif start < size:
                os.ftruncate(self._fd, start)
                return size - start
        return 0

    @property
    def waiting(self) -> int:
        """How many records the disk has not taken yet."""
        return len(self._backlog)

    def append(self, record: Record) -> None:
        """Write one record. On return it survives kill -9 of this process, and the last one a power cut."""
        self.extend((record,))

    def extend(self, records: Iterable[Record], *, lost: int = 0) -> None:
        """Write these, as `append` does. `lost`: how many before them the caller could not keep."""
        self._backlog.extend(records)
        over = max(len(self._backlog) - BACKLOG, 0)
        for _ in range(over):
            self._backlog.popleft()
        if lost and self._trouble is None:
            self._trouble = _Trouble(since=self._clock(), reason="too slow")
        if self._trouble is not None:
            self._trouble.lost += over + lost
        self.flush()

    def flush(self) -> bool:
        """Try again what the disk refused. True where nothing waits any more."""
        size = _BATCH
        while self._backlog:
            batch = list(itertools.islice(self._backlog, size))
            done, wrong = self._write(batch)
            for record in batch[:done]:
                self._backlog.popleft()
                self._last = (record.seq, record.epoch)
            if self._trouble is not None:
                self._trouble.late += done
            if wrong is not None:
                if self._trouble is None:
                    self._trouble = _Trouble(since=self._clock(), reason=wrong.strerror or str(wrong))
                if done or len(batch) == 1:
                    return False
                size = len(batch) // 2  # there may be room for the first of them
        if self._trouble is not None:
            self._tell(self._trouble)
        return True

    def cut_short(self) -> bool:
        """Write the end of the run, where it waits, into the room that is kept for it; whether that worked.

        The records that wait before it are given up, and counted in a note.
        """
        end = next((record for record in self._backlog if isinstance(record.event, RunEnded)), None)
        if end is None:
            return False
        now = self._clock()
        trouble = self._trouble or _Trouble(since=now, reason=os.strerror(errno.ENOSPC))
        gap = dataclasses.replace(trouble, lost=trouble.lost + len(self._backlog) - 1)
        if self._write([self._gap(gap, now), end])[1] is not None:
            return False
        self._backlog.clear()
        self._trouble = None
        self._last = (end.seq, end.epoch)
        return True

    def abandon(self) -> None:
        """Close without a further word: somebody else writes now."""
        self._backlog.clear()
        self._trouble = None
        self.close()

    def close(self, *, patience: float = 0.0) -> None:
        """Write what still waits, trying for `patience` seconds, and give the lock back. Idempotent."""
        if self._fd < 0:
            return
        until = time.monotonic() + patience
        while not self.flush() and time.monotonic() < until:
            time.sleep(min(0.2, patience))
        if self._ended:
            self._reserve.give_back()
        fd, self._fd = self._fd, -1
        os.close(fd)

    def _tell(self, trouble: _Trouble) -> None:
        if self._write([self._gap(trouble, self._clock())])[1] is None:
            self._trouble = None

    def _gap(self, trouble: _Trouble, now: float) -> Record:
        """The note is the log's own: it repeats the number of the record before it."""
        message = (
            f"the disk of the records took nothing for {now - trouble.since:.1f} s ({trouble.reason}): "
            f"{trouble.late} records were written late, {trouble.lost} are lost"
        )
        seq, epoch = self._last
        return Record(seq=seq, epoch=epoch, event=Noted(time=now, message=message))

    def _write(self, records: list[Record]) -> tuple[int, OSError | None]:
        """How many of them are in the file now, and why not all."""
        ends = any(isinstance(record.event, RunEnded) for record in records)
        lines = [json.dumps(guarded(record.to_json()), separators=(",", ":")).encode() + b"\n" for record in records]
        data = (b"\n" if self._torn else b"") + b"".join(lines)
        self.fence()
        try:
            self._reserve.admit(len(data), keep=0 if ends or self._ended else LAST)
            written = os.write(self._fd, data)
            if written < len(data):
                whole = data.rfind(b"\n", 0, written) + 1
                self._torn = self._torn and not written
                self._take_back(written - whole)
                done = data.count(b"\n", 0, whole) - (len(data) - sum(map(len, lines)))
                return max(done, 0), OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            self._torn = False
            if ends:
                self._ended = True
                os.fsync(self._fd)
        except OSError as wrong:
            return 0, wrong
        finally:
            self.size = os.fstat(self._fd).st_size
        return len(records), None

    def _take_back(self, half: int) -> None:
        """Remove the half of a line that fitted; where that fails the line stays torn, and readers skip it."""
        if half:
            self._torn = True
            with contextlib.suppress(OSError):
                os.ftruncate(self._fd, os.lseek(self._fd, 0, os.SEEK_CUR) - half)
                self._reserve.is_cut()
                self._torn = not _ends_whole(self._fd)


def _free() -> None:
    """Nobody else is there."""


def guarded(data: dict[str, Any]) -> dict[str, Any]:
    """Takes what looks like a credential out of what people and programs have written; names and numbers stay."""
    for field in _FREE_TEXT & data.keys():
        value = data[field]
        data[field] = [redact(line) for line in value] if isinstance(value, list) else redact(value)
    return data


def _ends_whole(fd: int) -> bool:
    size = os.fstat(fd).st_size
    return size == 0 or os.pread(fd, 1, size - 1) == b"\n"


def _line_start(fd: int, end: int) -> int:
    """Where the line that is unfinished at `end` begins; `end` where none is."""
    at = end
    while at > 0:
        block = os.pread(fd, min(at, _BLOCK), max(at - _BLOCK, 0))
        newline = block.rfind(b"\n")
        if newline >= 0:
            return at - len(block) + newline + 1
        at -= len(block)
    return 0


def _is_json(line: bytes) -> bool:
    """Whether only its newline is missing."""
    try:
        return isinstance(json.loads(line), dict)
    except ValueError:
        return False


def write_atomic(path: Path, text: str, mode: int = 0o644) -> None:
    """Put `text` at `path`, whole or not at all; readers see the old or the new. `mode` is subject to the umask.

    Raises PlaceError where the disk does not take it; the old file is then as it was.
    """
    scratch = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    try:
        fd = os.open(scratch, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
        with os.fdopen(fd, "wb") as out:
            out.write(text.encode())
            out.flush()
            os.fsync(out.fileno())
        scratch.replace(path)
    except OSError as wrong:
        with contextlib.suppress(OSError):
            scratch.unlink(missing_ok=True)
        raise PlaceError(f"{path} cannot be written: {wrong.strerror}") from wrong
