"""The agent's eye on its reaper: a stopped one is continued, and one that is stopped again and again is given up.

`vigil` is the converse.
"""

from __future__ import annotations

import dataclasses
import signal
import time

from phalanx.agent import tree

#: Seconds between two looks.
LOOK = 1.0
#: A reaper that is found stopped more often than this within so many seconds is kept so by somebody.
TRIES, WITHIN = 5, 60.0


@dataclasses.dataclass(frozen=True, slots=True)
class Roused:
    """It was stopped, and has been continued."""

    message: str


@dataclasses.dataclass(frozen=True, slots=True)
class Spent:
    """It was stopped once too often."""

    reason: str


class Sentry:
    """One reaper that is watched: a small file of /proc at each look."""

    def __init__(self, pid: int) -> None:
        """The pid of our own child, which has not been waited for."""
        self._pid = pid
        self._stops: list[float] = []

    def look(self) -> Roused | Spent | None:
        """What is new about it; None where it runs, or is gone."""
        if tree.state(self._pid) != "T":
            return None
        now = time.monotonic()
        self._stops = [then for then in self._stops if then > now - WITHIN] + [now]
        who = f"its reaper (pid {self._pid})"
        if len(self._stops) > TRIES:
            often = f"{len(self._stops)} times within {WITHIN:g} s"
            return Spent(
                f"{who} was found stopped by a signal {often}: somebody keeps it so, and ends of tasks are missed"
            )
        tree.send(self._pid, signal.SIGCONT)
        return Roused(f"{who} was stopped by a signal (state T), and is continued: ends of its tasks are told late")
