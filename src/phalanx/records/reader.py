"""Reading the records, also while they are being written, and also where a line is torn or of a newer version."""

from __future__ import annotations

import dataclasses
import errno
import json
import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from phalanx.events import Noted, Record, RunEnded
from phalanx.plan.plan import Plan
from phalanx.plan.wire import WireError, from_wire
from phalanx.records.folder import RunFolder
from phalanx.states import RunState, fold

_CHUNK = 1 << 20
#: `RunEnded` is short and last; its line lies within this many bytes of the end.
_LAST = 1 << 16
#: What every record has.
_HEAD = (("seq", int), ("epoch", int), ("event", str))

#: What a disk says that may be there again: its device or its server fails.
_LATER = (errno.EIO, errno.ESTALE, errno.ETIMEDOUT, errno.ENOTCONN)


class Tail:
    """What is new in `events.jsonl`. A poll without news is one system call; the file may come into being later."""

    def __init__(self, path: Path) -> None:
        """Starts at the beginning."""
        self._path, self._fd, self._at = path, -1, 0
        #: How often another file has taken its place: then what was read before is no longer the run's story.
        self.anew = 0
        #: Lines that were whole but no record of this version.
        self.skipped = 0

    def poll(self) -> list[Record]:
        """The records that have come since. A line without its newline is not there yet."""
        return list(self._new())

    def close(self) -> None:
        """Give the file back. Idempotent; a later poll opens it again."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def _new(self) -> Iterator[Record]:
        try:
            yield from self._read()
        except FileNotFoundError:
            return
        except OSError as wrong:
            if wrong.errno not in _LATER:
                raise
            self.close()

    def _read(self) -> Iterator[Record]:
        if self._fd < 0:
            self._fd = os.open(self._path, os.O_RDONLY | os.O_CLOEXEC)
        size = _CHUNK
        while data := os.pread(self._fd, size, self._at):
            whole = data.rfind(b"\n") + 1
            self._at += whole
            for line in data[:whole].split(b"\n"):
                if line and (record := self._record(line)):
                    yield record
            if len(data) < size:
                break
            if not whole:
                size *= 2
        if os.fstat(self._fd).st_ino != self._path.stat().st_ino:
            self.close()
            self._at = 0
            self.anew += 1

    def _record(self, line: bytes) -> Record | None:
        record = _parse(line)
        if record is None:
            self.skipped += 1
        return record


def read_records(path: Path) -> Iterator[Record]:
    """Every whole record of the file, in order; none where there is no file. Use `Tail` to know what was skipped."""
    tail = Tail(path)
    try:
        yield from tail._new()  # noqa: SLF001 - the same module: streams, where poll() would make a list
    finally:
        tail.close()


def read_state(folder: RunFolder) -> RunState:
    """The run as its records tell it now. Lines that could not be read are told in a note."""
    tail = Tail(folder.events)
    try:
        return with_skipped(fold_on(RunState(), tail.poll()), tail.skipped, folder.events.name)
    finally:
        tail.close()


def fold_on(state: RunState, records: Iterable[Record]) -> RunState:
    """The state after these records too."""
    for record in records:
        state = fold(state, record)
    return state


def with_skipped(state: RunState, skipped: int, name: str) -> RunState:
    """Adds the note that some lines could not be read, where that is so."""
    if not skipped:
        return state
    lines = "1 line" if skipped == 1 else f"{skipped} lines"
    note = Noted(
        time=state.ended or state.started, message=f"{lines} of {name} could not be read: torn, or of a newer phalanx"
    )
    return dataclasses.replace(state, notes=(*state.notes, note))


def read_lines(path: Path, after: int, most: int) -> tuple[bytes, int]:
    """Whole lines from that byte on, about `most` bytes of them, at least one line; and how many bytes follow."""
    try:
        with path.open("rb") as events:
            size = events.seek(0, os.SEEK_END)
            events.seek(after)
            text = events.read(most)
            text += b"" if text.endswith(b"\n") else events.readline()
    except FileNotFoundError:
        return b"", 0
    whole = text[: text.rfind(b"\n") + 1]
    return whole, max(0, size - after - len(whole))


def read_end(folder: RunFolder) -> RunEnded | None:
    """How the run ended, None while it has not; looks at the end of the file only."""
    try:
        with folder.events.open("rb") as events:
            events.seek(max(0, events.seek(0, os.SEEK_END) - _LAST))
            lines = events.read().split(b"\n")[:-1]
    except FileNotFoundError:
        return None
    for line in reversed(lines):
        record = _parse(line) if line else None
        if record is not None and isinstance(record.event, RunEnded):
            return record.event
    return None


def read_plan(folder: RunFolder) -> Plan | None:
    """The plan of the newest generation; None where there is none, or none that this version can read."""
    try:
        return from_wire(Plan, json.loads(folder.plan.read_bytes()))
    except (OSError, ValueError):  # a WireError is a ValueError
        return None


def _parse(line: bytes) -> Record | None:
    try:
        data = json.loads(line)
        if not isinstance(data, dict) or not all(isinstance(data.get(key), kind) for key, kind in _HEAD):
            return None
        return Record.from_json(data)
    except (ValueError, RecursionError, WireError):
        return None
