"""The reaper's eye on its agent: whether that has been stopped for longer than anybody waits for it."""

from __future__ import annotations

import time

from phalanx.agent import tree

#: An agent that is stopped (state T) for so many seconds was given up by its lead long ago.
FROZEN = 20.0
#: Seconds between two looks.
GLANCE = 5.0


class Vigil:
    """One process that is watched. A machine that sleeps counts no time."""

    def __init__(self, pid: int) -> None:
        """Looks at each `frozen()`, at most every GLANCE seconds."""
        self._pid = pid
        self._since: float | None = None
        self._next = 0.0

    def frozen(self) -> bool:
        """Whether it has been seen stopped, at every look for FROZEN seconds."""
        now = time.monotonic()
        if now < self._next:
            return False
        self._next = now + GLANCE
        if tree.state(self._pid) != "T":
            self._since = None
        elif self._since is None:
            self._since = now
        return self._since is not None and now - self._since >= FROZEN
