"""What the operating system allows this host's tasks, against what they need (facts §3, §6)."""

from __future__ import annotations

import os
import resource
import shutil
from collections.abc import Iterator
from pathlib import Path

from phalanx.agent.machine import Machine
from phalanx.agent.preflight.asked import Answer, Asked

#: Threads of one task, its memory in bytes, and the files it has open besides two for each peer.
THREADS, MEMORY, FILES = 120, 600 << 20, 64

#: Docker's default of 64 MiB is too little for NCCL.
_SHM = 128 << 20

_PROC, _CGROUP = Path("/proc"), Path("/sys/fs/cgroup")


def check(asked: Asked, answer: Answer, proc: Path = _PROC, cgroup: Path = _CGROUP) -> None:
    """Files, threads and memory for the tasks of the cluster; the others need next to nothing."""
    if not asked.tasks:
        return
    answer.look("open-files", "processes", "memory")
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    need = FILES + 2 * asked.list.tasks
    if 0 <= soft < need:
        answer.fault("open-files", f"a task may open {soft} files and needs {need}")
    threads = asked.tasks * THREADS
    for what, free in threads_left(proc, cgroup):
        if free < threads:
            answer.fault("processes", f"{what} leaves {max(free, 0)} threads, and {asked.tasks} tasks need {threads}")
    memory = asked.tasks * MEMORY
    left = memory_left(proc, cgroup)
    if left is not None and left < memory:
        answer.fault("memory", f"{left >> 20} MiB are free, and {asked.tasks} tasks need some {memory >> 20}")


def shared_memory(answer: Answer, folder: Path = Path("/dev/shm")) -> None:  # noqa: S108 - the mount, no file of ours
    """Where two tasks with GPUs share this host."""
    answer.look("shm")
    try:
        room = shutil.disk_usage(folder).free
    except OSError:
        answer.fault("shm", f"there is no {folder}")
        return
    if room < _SHM:
        answer.fault("shm", f"{folder} has {room >> 20} MiB free, and NCCL needs {_SHM >> 20}")


def threads_left(proc: Path = _PROC, cgroup: Path = _CGROUP) -> Iterator[tuple[str, int]]:
    """How many more threads each limit lets this user start."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NPROC)
    if soft != resource.RLIM_INFINITY and os.geteuid() != 0:  # root is above it
        yield f"ulimit -u {soft}", soft - _threads_of(os.geteuid(), proc)
    for group in Machine(proc=proc, cgroups=cgroup).groups():
        most, now = _number(group / "pids.max"), _number(group / "pids.current")
        if most is not None and now is not None:
            yield f"{group / 'pids.max'} ({most})", most - now


def memory_left(proc: Path = _PROC, cgroup: Path = _CGROUP) -> int | None:
    """Bytes that may still be had: the machine's, or the tightest control group's; None where nothing tells."""
    memory = Machine(proc=proc, cgroups=cgroup).memory()
    return memory.available if memory.total else None


def _threads_of(user: int, proc: Path) -> int:
    count = 0
    for process in proc.iterdir():
        if not process.name.isdecimal():
            continue
        try:
            if process.stat().st_uid == user:
                count += int((process / "stat").read_text().rpartition(")")[2].split()[17])
        except (OSError, IndexError, ValueError):
            continue  # it has just ended
    return count


def _number(path: Path) -> int | None:
    """None for `max`, and where there is no such limit."""
    try:
        return int(path.read_text())
    except (OSError, ValueError):
        return None
