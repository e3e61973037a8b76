"""Whether others run on the cores that tasks are pinned to: a pinned thread cannot go elsewhere, and waits its turn.

Two workers that wait for each other at every step then wait for both turns: ten times slower than unpinned was
measured (facts §6), though alone they are faster by half.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path

#: Seconds between two looks.
LOOK = 2.0
#: The part of the cores that others use when it is time to give way: at one look, for little is lost by it and much by
#: waiting. And the part below which the cores are free again, for so many seconds, twice as many after each time.
BUSY, FREE, CALM = 0.2, 0.1, 30.0

_TICKS = os.sysconf("SC_CLK_TCK")


class Crowd:
    """Fed with what others use at each look. Says when that has changed what is best; pure."""

    def __init__(self) -> None:
        """The cores are ours until others are seen."""
        self.crowded = False
        self._calm_since: float | None = None
        self._patience = CALM

    def see(self, now: float, others: float) -> bool:
        """`others`: the part of the cores' time since the last look that was not ours. Whether `crowded` changes."""
        before = self.crowded
        if not self.crowded:
            self.crowded = others > BUSY
            self._calm_since = None
        elif others > FREE:
            self._calm_since = None
        elif self._calm_since is None:
            self._calm_since = now
        elif now - self._calm_since >= self._patience:
            self.crowded = False
            self._patience *= 2
        return self.crowded != before


class Meter:
    """What others have used of some cores between two looks: all that was used, without what our processes have."""

    def __init__(self, proc: Path = Path("/proc")) -> None:
        """Another folder is for tests."""
        self._proc = proc
        self._last: tuple[float, Mapping[int, float], Mapping[int, float]] | None = None

    def look(self, now: float, cpus: Collection[int], ours: Iterable[int]) -> float | None:
        """The part of the time of `cpus` that others have had; None at the first look. `ours`: our processes' pids."""
        used, own = spent(self._proc), {pid: spent_by(pid, self._proc) for pid in ours}
        last, self._last = self._last, (now, used, own)
        if last is None or now <= last[0] or not cpus:
            return None
        then, used_then, own_then = last
        busy = sum(used.get(cpu, 0.0) - used_then.get(cpu, 0.0) for cpu in cpus)
        mine = sum(max(had - own_then.get(pid, 0.0), 0.0) for pid, had in own.items())
        return max(busy - mine, 0.0) / ((now - then) * len(cpus))


def spent_by(pid: int, proc: Path = Path("/proc")) -> float:
    """The CPU seconds of one process; 0 where it has gone."""
    fields = _read(proc / str(pid) / "stat").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS if fields else 0.0


def spent(proc: Path = Path("/proc")) -> dict[int, float]:
    """By CPU: the seconds in which processes ran; neither idle nor stolen nor interrupts. Empty: nobody tells."""
    found = {}
    for line in _read(proc / "stat").splitlines():
        name, *fields = line.split()
        if name.startswith("cpu") and name[3:].isdecimal():
            found[int(name[3:])] = sum(map(int, fields[:3])) / _TICKS
    return found


def _read(path: Path) -> str:
    try:
        return path.read_text(errors="replace")
    except OSError:
        return ""
