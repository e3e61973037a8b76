"""Whether the kernel ended a task for want of memory: its own counters tell, since SIGKILL alone does not."""

from __future__ import annotations

import collections
import re
from collections.abc import Iterable
from pathlib import Path

#: Seconds between the kernel's count and the end of the process, at most: a large one takes a while to die.
_DYING = 5.0
#: Looks that are remembered of each counter; with one a second these are more than `_DYING`.
_LOOKS = 12
#: The same word in memory.events (cgroup 2), memory.oom_control (cgroup 1, Linux 4.13) and /proc/vmstat.
_COUNT = re.compile(r"^oom_kill (\d+)$", re.MULTILINE)


class OomKills:
    """Follows the counters of the control groups that processes are in. What cannot be read counts nothing."""

    def __init__(self, *, proc: Path = Path("/proc"), cgroups: Path = Path("/sys/fs/cgroup")) -> None:
        """Other folders are for tests."""
        self._proc, self._cgroups = proc, cgroups
        self._counter: dict[int, Path] = {}
        self._seen: dict[Path, collections.deque[tuple[float, int]]] = {}

    def look(self, pids: Iterable[int], now: float) -> None:
        """Read the counters of these processes, the first time while they live; `forget` alone forgets one.

        A process stays with the group in which it was first seen: a dying one is shown at the root already.
        """
        found: dict[Path, int] = {}
        for pid in pids:
            for path in [self._counter[pid]] if pid in self._counter else self._places(pid):
                count = found.get(path, _count(path))
                if count is not None:
                    found[path], self._counter[pid] = count, path
                    break
        for path, count in found.items():
            self._seen.setdefault(path, collections.deque(maxlen=_LOOKS)).append((now, count))

    def killed(self, pid: int, when: float) -> bool:
        """Whether the counter of its group has grown shortly before `when`, the end of the process."""
        path = self._counter.get(pid)
        seen = self._seen.get(path) if path is not None else None
        now = _count(path) if path is not None else None
        if not seen or now is None:
            return False
        before = [count for time, count in seen if time <= when - _DYING]
        return now > (before[-1] if before else seen[0][1])

    def forget(self, pid: int) -> None:
        """It has ended, and was asked about."""
        path = self._counter.pop(pid, None)
        if path is not None and path not in self._counter.values():
            self._seen.pop(path, None)

    def _places(self, pid: int) -> Iterable[Path]:
        """Where the kernel may count for this process, the closest first.

        A container sees its own group at the root, whatever its path is called outside.
        """
        try:
            lines = (self._proc / str(pid) / "cgroup").read_text().splitlines()
        except OSError:
            return  # it is gone
        for _, controllers, path in (line.split(":", 2) for line in lines):
            if "memory" in controllers.split(","):
                yield self._cgroups / "memory" / path.lstrip("/") / "memory.oom_control"
                yield self._cgroups / "memory" / "memory.oom_control"
            elif not controllers:
                yield self._cgroups / path.lstrip("/") / "memory.events"
                yield self._cgroups / "memory.events"
        yield self._proc / "vmstat"


def _count(path: Path) -> int | None:
    try:
        found = _COUNT.search(path.read_text())
    except OSError:
        return None
    return int(found[1]) if found else None
