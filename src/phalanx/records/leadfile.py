"""`lead.json`: who leads the run now. Who has written it last may write the records, and nobody else."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import secrets
import stat
from pathlib import Path

from phalanx.errors import PlaceError
from phalanx.plan.wire import from_wire, to_wire
from phalanx.records.folder import RunFolder
from phalanx.records.writer import FencedError, write_atomic

#: Seconds between two signs of life that a lead gives by touching its file.
BEAT = 1.0

#: Bytes of a file that lies ready for the next lead: a claim fits, and takes no new block.
_SPARE = 512


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Rule:
    """One lead: its epoch, where it answers (`host:port`), and its pid on its own host."""

    epoch: int
    address: str
    pid: int


def read_rule(folder: RunFolder) -> Rule | None:
    """Who leads, or led last; None where nobody has yet, or the folder is not to be seen from here.

    A file that another user has written, or could have, is not believed: a run's token would be sent to its address.
    """
    try:
        with folder.lead.open("rb") as file:
            facts = os.fstat(file.fileno())
            if facts.st_uid != os.geteuid() or facts.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
                return None
            return from_wire(Rule, json.loads(file.read()))
    except (OSError, ValueError):  # a WireError is a ValueError
        return None


def last_beat(folder: RunFolder) -> float | None:
    """When the file was last touched, by the clock of its disk: only a change of it says anything."""
    try:
        return folder.lead.stat().st_mtime
    except OSError:
        return None


class LeadFile:
    """A lead's own claim. Kept open, so that no other file can ever look like it.

    Beside it lies a spare for the next lead, which may have to claim the run on a disk that is full.
    """

    def __init__(self, folder: RunFolder, rule: Rule) -> None:
        """Claims the run; every earlier lead finds out before it writes again. Raises PlaceError for a full disk."""
        self._path = folder.lead
        self._spare = self._path.with_name(f".{self._path.name}.next")
        self._claim(json.dumps(to_wire(rule)) + "\n")
        with contextlib.suppress(PlaceError):
            write_atomic(self._spare, " " * _SPARE, 0o644)
        self._fd = os.open(self._path, os.O_RDWR | os.O_CLOEXEC)
        ours = os.fstat(self._fd)
        self._ours = (ours.st_dev, ours.st_ino)

    def _claim(self, text: str) -> None:
        try:
            write_atomic(self._path, text, 0o644)
        except PlaceError:
            if not self._claim_with_spare(text):
                raise

    def _claim_with_spare(self, text: str) -> bool:
        """Its blocks are there already. Whoever renames it has it: two leads never write into one file."""
        mine = self._spare.with_name(f".{self._path.name}.{secrets.token_hex(4)}")
        try:
            self._spare.rename(mine)
            _overwrite(mine, text.encode().ljust(_SPARE))
            mine.replace(self._path)
        except OSError:
            with contextlib.suppress(OSError):
                mine.unlink()
            return False
        return True

    def holds(self) -> bool:
        """Whether nobody has claimed the run since. A file that was deleted says nothing against us."""
        if self._fd < 0:
            return True
        try:
            there = self._path.stat()
        except OSError:
            return True
        return (there.st_dev, there.st_ino) == self._ours

    def check(self) -> None:
        """Raises FencedError where somebody has claimed the run since."""
        if not self.holds():
            raise FencedError(f"{self._path} is another lead's now")

    def beat(self) -> None:
        """A sign of life; a disk that takes none is no reason to end."""
        with contextlib.suppress(OSError):
            os.utime(self._fd)

    def close(self) -> None:
        """Give the file back; it stays. Idempotent."""
        if self._fd >= 0:
            if self.holds():
                with contextlib.suppress(OSError):
                    self._spare.unlink(missing_ok=True)
            os.close(self._fd)
            self._fd = -1


def _overwrite(path: Path, data: bytes) -> None:
    fd = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    try:
        os.pwrite(fd, data, 0)
        os.fsync(fd)
    finally:
        os.close(fd)
