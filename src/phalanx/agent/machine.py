"""What this machine says of memory, and how a process that is in no hurry is kept out of the others' way."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import os
import re
import threading
from collections.abc import Collection, Iterator
from pathlib import Path

#: A tenth of what a thread of a task gets: at 19, on a host whose cores all train, an import takes minutes.
_PATIENT = 10
#: The kernel ends a process that nobody waits for before it ends one that trains.
_EXPENDABLE = 800


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Memory:
    """Bytes: what there is, and what can be had without swapping; within the limit of our cgroup, where it has one."""

    total: int
    available: int


class Machine:
    """Reads `/proc`. Whatever cannot be read counts as nothing there; a process may go at any time."""

    def __init__(self, *, proc: Path = Path("/proc"), cgroups: Path = Path("/sys/fs/cgroup")) -> None:
        """Other folders are for tests."""
        self._proc, self._cgroups = proc, cgroups

    def memory(self) -> Memory:
        """The tightest of the machine and the cgroups (of version 2 or 1) that we are in."""
        text = _read(self._proc / "meminfo")
        known = Memory(total=_kilobytes(text, "MemTotal"), available=_kilobytes(text, "MemAvailable"))
        limits = [_limit(group, "max", "current", "inactive_file") for group in self.groups()]
        limits += [
            _limit(group, "limit_in_bytes", "usage_in_bytes", "total_inactive_file")
            for group in self.groups(":memory:", self._cgroups / "memory")
        ]
        for limit, used in filter(None, limits):
            known = Memory(total=min(known.total, limit), available=min(known.available, max(limit - used, 0)))
        return known

    def groups(self, hierarchy: str = "0::", root: Path | None = None) -> Iterator[Path]:
        """The folders of the cgroup (of version 2) that we are in and of those above it; none where there is no such.

        In a container that has no cgroup namespace the folder is not to be seen, and the root is the container's own.
        """
        root = self._cgroups if root is None else root
        lines = [line.partition(hierarchy) for line in _read(self._proc / "self/cgroup").splitlines()]
        name = next((rest for _, found, rest in lines if found), None)
        if name is not None:
            folder = root / name.lstrip("/")
            yield from (group for group in (folder, *folder.parents) if group.is_relative_to(root))

    def unique(self, pid: int) -> int:
        """Bytes that would be free without this process (USS)."""
        text = _read(self._proc / str(pid) / "smaps_rollup")
        return _kilobytes(text, "Private_Clean") + _kilobytes(text, "Private_Dirty")

    def resident(self, pid: int) -> int:
        """Bytes that it has in memory, shared ones among them (RSS)."""
        fields = _read(self._proc / str(pid) / "statm").split()
        return int(fields[1]) * os.sysconf("SC_PAGESIZE") if fields else 0

    def step_back(self, pid: int) -> None:
        """Let everybody else go first: low priority where that can be taken back, else it only never interrupts."""
        for thread in self._threads(pid):
            with contextlib.suppress(OSError):
                if _may_come_back():
                    os.setpriority(os.PRIO_PROCESS, thread, _PATIENT)
                else:
                    os.sched_setscheduler(thread, os.SCHED_BATCH, os.sched_param(0))
        self._expendable(pid, _EXPENDABLE)

    def step_up(self, pid: int) -> None:
        """As it would be had it not stepped back: every thread of it with our own priority."""
        own, done = os.getpriority(os.PRIO_PROCESS, 0), set[int]()
        while fresh := [thread for thread in self._threads(pid) if thread not in done]:
            for thread in fresh:  # one that is born meanwhile has the priority of its parent: look again
                done.add(thread)
                with contextlib.suppress(OSError):
                    os.sched_setscheduler(thread, os.SCHED_OTHER, os.sched_param(0))
                    os.setpriority(os.PRIO_PROCESS, thread, own)
        own_score = _read(self._proc / "self/oom_score_adj").strip()
        self._expendable(pid, int(own_score or 0))

    def bind(self, pid: int, cpus: Collection[int]) -> None:
        """Every thread of it runs on these CPUs from now on, and so does every thread and process that they start."""
        done = set[int]()
        while fresh := [thread for thread in self._threads(pid) if thread not in done]:
            for thread in fresh:  # as above
                done.add(thread)
                with contextlib.suppress(OSError):
                    os.sched_setaffinity(thread, cpus)

    def _threads(self, pid: int) -> list[int]:
        try:
            return [int(name) for name in os.listdir(self._proc / str(pid) / "task")]  # noqa: PTH208 - names only
        except OSError:
            return []

    def _expendable(self, pid: int, score: int) -> None:
        with contextlib.suppress(OSError):
            (self._proc / str(pid) / "oom_score_adj").write_text(str(score))


@functools.cache
def _may_come_back() -> bool:
    """Whether a lowered priority can be raised again: tried by a thread that ends then, since it may keep the low one.

    RLIMIT_NICE and a capability decide; the latter shows in containers where it does not hold.
    """
    allowed = False

    def attempt() -> None:
        nonlocal allowed
        own = os.getpriority(os.PRIO_PROCESS, 0)  # in Linux the calling thread's
        with contextlib.suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, 0, _PATIENT)
            os.setpriority(os.PRIO_PROCESS, 0, own)
            allowed = True

    thread = threading.Thread(target=attempt)
    thread.start()
    thread.join()
    return allowed


def _read(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""


def _kilobytes(text: str, name: str) -> int:
    found = re.search(rf"^{name}:\s+(\d+) kB", text, re.MULTILINE)
    return int(found[1]) * 1024 if found else 0


def _limit(group: Path, limit: str, used: str, kept: str) -> tuple[int, int] | None:
    """The limit of a cgroup and what of it is used, but for files that are kept only while nobody needs the memory."""
    most = _read(group / f"memory.{limit}").strip()
    if not most.isdecimal():
        return None
    found = re.search(rf"^{kept} (\d+)$", _read(group / "memory.stat"), re.MULTILINE)
    return int(most), int(_read(group / f"memory.{used}").strip() or 0) - (int(found[1]) if found else 0)
