"""Readings of one task from outside its process: pure looks at /proc, nothing remembered, nothing decided."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterable
from pathlib import Path

from phalanx.agent.peers import Connection

_TICKS = os.sysconf("SC_CLK_TCK")
#: Kernel functions and system calls in which a thread waits for another one, as TensorFlow's main thread does while
#: a collective is under way. 202 and 98 are futex(2) on x86-64 and on arm64.
_WAITS = ("futex",)
_FUTEX = ("202", "98")


@dataclasses.dataclass(frozen=True, slots=True)
class Process:
    """One process at one moment."""

    #: As in /proc/PID/stat: R, S, D, T…
    state: str
    #: CPU seconds of all its threads, and of the children that it has waited for.
    cpu: float
    #: Nanoseconds that its main thread has run, and how often it was given a core; zeros where the kernel keeps none.
    ran: tuple[int, int] = (0, 0)


def process(pid: int, proc: Path = Path("/proc")) -> Process | None:
    """What /proc says of a process; None where it has gone."""
    try:
        # `pid (name) state …`: a name may hold blanks and brackets, so what counts follows the last `)`.
        field = (proc / str(pid) / "stat").read_bytes().rpartition(b")")[2].split()
    except OSError:
        return None
    cpu = sum(int(one) for one in field[11:15]) / _TICKS
    try:
        ran, _, times = (proc / str(pid) / "schedstat").read_text().split()
    except (OSError, ValueError):
        ran, times = "0", "0"
    return Process(field[0].decode(), cpu, (int(ran), int(times)))


def waits_inside(pid: int, proc: Path = Path("/proc")) -> bool | None:
    """Whether its main thread waits for another thread of the process; None where the kernel does not tell.

    A worker inside a collective does. One that sleeps, reads, or computes does not.
    """
    try:
        state = (proc / str(pid) / "stat").read_bytes().rpartition(b")")[2].split()[0]
        if state == b"R":
            return False
        call = (proc / str(pid) / "syscall").read_text().split()
        if call[:1] not in ([], ["running"], ["0"], ["-1"]):
            return call[0] in _FUTEX
        where = (proc / str(pid) / "wchan").read_text()
    except OSError:
        return None
    return None if where in ("", "0") else any(word in where for word in _WAITS)


def sockets(pid: int, proc: Path = Path("/proc")) -> set[int]:
    """The inodes of the sockets that the process has open; empty where it has gone."""
    found = set()
    try:
        with os.scandir(proc / str(pid) / "fd") as entries:
            for entry in entries:
                try:
                    target = os.readlink(entry.path)  # noqa: PTH115 - hundreds of them, each second
                except OSError:
                    continue
                if target.startswith("socket:["):
                    found.add(int(target[8:-1]))
    except OSError:
        return found
    return found


def of_task(connections: Iterable[Connection], *, port: int | None, inodes: set[int]) -> list[Connection]:
    """Those of one task: made to its own `port`, and by itself, with one of its sockets."""
    return [one for one in connections if one.local == port or one.inode in inodes]
