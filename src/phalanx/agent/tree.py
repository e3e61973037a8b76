"""Who descends from whom, by `/proc`: which processes belong to a task, and how to end them all."""

from __future__ import annotations

import dataclasses
import os
import signal
from collections.abc import Callable, Collection, Iterable, Mapping

#: The variables that name a task for good, with its folder: runs in two places may bear one name. A daemon that has
#: left its session and its parents still carries them.
MARKS = ("PHALANX_RUN", "PHALANX_TASK", "PHALANX_GENERATION", "PHALANX_ATTEMPT", "PHALANX_TASK_DIR")
#: Without these two there is no telling whose it is.
_NEEDED = MARKS[:2]

#: How often new processes are looked for while the known ones are frozen: an honest tree needs one look more.
_LOOKS = 8

Marker = Mapping[str, str]


@dataclasses.dataclass(frozen=True, slots=True)
class Process:
    """One living process. A zombie counts as dead, unless it has threads that live on."""

    pid: int
    parent: int
    group: int
    session: int
    #: Clock ticks since boot: with the pid it names a process for good.
    start: int


def processes() -> dict[int, Process]:
    """Every living process of this machine that can be seen, by pid."""
    return table(pids())


def pids() -> set[int]:
    """The numbers of all of them, zombies included."""
    return {int(name) for name in os.listdir("/proc") if name.isdecimal()}  # noqa: PTH208 - the reaper does without pathlib


def table(these: Iterable[int]) -> dict[int, Process]:
    """Those of these that live, by pid."""
    return {pid: process for pid in these if (process := _read(pid)) is not None}


def below(table: Mapping[int, Process], root: int) -> list[Process]:
    """All descendants of `root`, parents before their children; without `root`."""
    children: dict[int, list[Process]] = {}
    for process in table.values():
        children.setdefault(process.parent, []).append(process)
    found = list(children.get(root, ()))
    for process in found:  # grows while it is walked
        found += children.get(process.pid, ())
    return found


def state(pid: int) -> str:
    """The letter of its state, `T` where it is stopped; empty where it is gone."""
    return _content(f"/proc/{pid}/stat").rpartition(b")")[2].lstrip()[:1].decode()


def children() -> list[int]:
    """Our own children, at once; empty where the kernel keeps no such list."""
    return [int(pid) for pid in _content("/proc/thread-self/children").split()]


def marker_of(env: Mapping[str, str]) -> dict[str, str]:
    """What of `env` names the task; empty where run or task are missing."""
    return {name: env[name] for name in MARKS if name in env} if all(name in env for name in _NEEDED) else {}


def carries(pid: int, marker: Marker) -> bool:
    """Whether the process was started with these variables. False where its environment cannot be read."""
    if not marker:
        return False
    wanted = {os.fsencode(f"{name}={value}") for name, value in marker.items()}
    return wanted <= set(_content(f"/proc/{pid}/environ").split(b"\0"))


def holds(pid: int, pipes: Collection[tuple[int, int]]) -> bool:
    """Whether the process has one of these pipes open, each given as (device, inode)."""
    if not pipes:
        return False
    folder = f"/proc/{pid}/fd"
    try:
        names = os.listdir(folder)  # noqa: PTH208 - the reaper does without pathlib
    except OSError:
        return False  # gone, or another user's
    return any(identity(f"{folder}/{name}") in pipes for name in names)


def identity(file: int | str) -> tuple[int, int] | None:
    """Device and inode of an open file; None where it cannot be asked."""
    try:
        found = os.stat(file)  # noqa: PTH116 - the reaper does without pathlib
    except OSError:
        return None
    return found.st_dev, found.st_ino


def end(find: Callable[[], Iterable[Process]]) -> bool:
    """SIGKILL whatever `find` finds, frozen first so that nothing is born meanwhile. True if all could be signalled.

    Call it until `find` finds nothing: a process may be born between a look and the stop, and one that was killed may
    take a while to go.
    """
    frozen: set[int] = set()
    for _ in range(_LOOKS):
        fresh = [process.pid for process in find() if process.pid not in frozen]
        if not fresh:
            break
        for pid in fresh:
            send(pid, signal.SIGSTOP)
        frozen.update(fresh)
    # A list, not a generator: every one of them is to be signalled, whatever became of the first.
    return all([send(pid, signal.SIGKILL) for pid in frozen])  # noqa: C419 - see above


def send(pid: int, number: int) -> bool:
    """Signal one process. True unless it is not ours to signal; one that has gone is no matter."""
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return True
    except PermissionError:
        return False
    return True


def _read(pid: int) -> Process | None:
    # `pid (name) state ppid pgrp session …`: a name may hold blanks and brackets, so what counts follows the last `)`.
    _, bracket, rest = _content(f"/proc/{pid}/stat").rpartition(b")")
    if not bracket:
        return None
    field = rest.split()
    state, threads = field[0], int(field[17])
    if state in b"ZX" and threads <= 1:
        return None
    return Process(pid, int(field[1]), int(field[2]), int(field[3]), int(field[19]))


def _content(path: str) -> bytes:
    try:
        with open(path, "rb", buffering=0) as file:  # noqa: PTH123 - the reaper does without pathlib
            return file.readall() or b""
    except OSError:
        return b""  # it has gone meanwhile, or is another user's
