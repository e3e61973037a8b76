"""How long a host may be silent: longer where many share one lead, and never while the lead itself was stuck."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from phalanx.decide.quorum import LEASE, lease_for

#: Seconds that an agent has to ask again after its open poll broke off, where the lease is the shortest.
_AGAIN = 2.0

#: Seconds between two signs that the lead's own loop turns, and by how many one may be late.
_TICK, _LATE = 0.5, 1.0


class Lease:
    """The patience of one lead with its hosts, and what it owes them for the time in which it did not listen."""

    def __init__(self, hosts: int, now: float) -> None:
        """`hosts`: how many the job has."""
        self.seconds = lease_for(hosts)
        #: Seconds after a poll that broke off.
        self.again = _AGAIN * self.seconds / LEASE
        self._ticked = now

    @property
    def wait(self) -> float:
        """The longest that a poll stays open."""
        return self.seconds / 2

    def tick(self, now: float) -> float:
        """Seconds for which nobody was heard since the loop did not turn: a stopped process, a disk that hangs.

        Asked every tick, and before any host is given up.
        """
        stuck = now - self._ticked - _TICK
        self._ticked = now
        return stuck if stuck > _LATE else 0.0


async def ticks(each: Callable[[float], None], clock: Callable[[], float]) -> None:
    """Calls `each` with the time, for ever and regularly."""
    while True:
        each(clock())
        await asyncio.sleep(_TICK)
