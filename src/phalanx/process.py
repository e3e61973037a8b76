"""Processes as /proc shows them, each known by its number and its start: a number alone may be used again."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterator
from pathlib import Path

_PROC = Path("/proc")


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Process:
    """One process. Two with the same number and another start are two."""

    pid: int
    started: str

    @property
    def alive(self) -> bool:
        """Whether it is still the same, and no zombie."""
        return _start_of(self.pid) == self.started

    def signal(self, number: int) -> bool:
        """Send it a signal; False where it is gone. Raises PermissionError."""
        try:
            handle = os.pidfd_open(self.pid)
        except ProcessLookupError:
            return False
        try:
            if not self.alive:
                return False
            os.kill(self.pid, number)
        except ProcessLookupError:
            return False
        finally:
            os.close(handle)
        return True

    def words(self) -> tuple[str, ...]:
        """Its command line; empty where it is gone."""
        try:
            return tuple((_PROC / str(self.pid) / "cmdline").read_bytes().decode(errors="replace").split("\0"))
        except OSError:
            return ()

    def variable(self, name: str) -> str | None:
        """A variable of the environment that it was started with."""
        try:
            block = (_PROC / str(self.pid) / "environ").read_bytes()
        except OSError:
            return None
        head = f"{name}=".encode()
        found = next((part for part in block.split(b"\0") if part.startswith(head)), None)
        return None if found is None else found[len(head) :].decode(errors="replace")

    def catches(self, number: int) -> bool:
        """Whether it has a handler of its own for that signal."""
        try:
            status = (_PROC / str(self.pid) / "status").read_text()
        except OSError:
            return False
        caught = next((line.split()[1] for line in status.splitlines() if line.startswith("SigCgt:")), "0")
        return bool(int(caught, 16) >> (number - 1) & 1)


def process(pid: int) -> Process | None:
    """The living process of that number."""
    started = _start_of(pid)
    return Process(pid=pid, started=started) if started else None


def children(pid: int) -> Iterator[Process]:
    """Whom it has started and who still lives: those of its first thread, which is where ours are started."""
    try:
        found = (_PROC / str(pid) / "task" / str(pid) / "children").read_text().split()
    except OSError:
        return
    for child in found:
        if (known := process(int(child))) is not None:
            yield known


def _start_of(pid: int) -> str:
    """Field 22 of /proc/PID/stat; empty for a process that is gone or a zombie."""
    try:
        fields = (_PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()
    except OSError:
        return ""
    return "" if fields[0] in "ZX" else fields[19]
