"""The processes below one of ours, looked for again and again on a machine that may be full of other people's."""

from __future__ import annotations

import os
import time
from collections.abc import Callable

from phalanx.agent import tree

#: Seconds after which a process that is somebody else's is looked at again: its number may be another's by then. The
#: kernel goes through all numbers before it gives one away a second time.
_FORGET = 60.0


class Kin:
    """Reads what is new, and what is ours: whose child a process is can change, but nobody else's becomes ours.

    All of /proc costs 15 ms for a thousand processes, to list their numbers a twelfth of that.
    """

    def __init__(self, root: int, *, clock: Callable[[], float] = time.monotonic) -> None:
        """`root`: a process that adopts the orphans of those below it, or whose child does."""
        self._root, self._clock = root, clock
        self._strangers: set[int] = set()
        self._forgotten = clock()

    def look(self) -> dict[int, tree.Process]:
        """All of them by pid, and the root."""
        now = self._clock()
        if not 0 <= now - self._forgotten < _FORGET:
            self._strangers, self._forgotten = set(), now
        pids = tree.pids()
        table = tree.table(pid for pid in pids if pid not in self._strangers)
        ours = {one.pid for one in tree.below(table, self._root)} | {self._root}
        self._strangers.intersection_update(pids)
        for pid in table:
            if pid not in ours and self._is_strange(pid, table):
                self._strangers.add(pid)
        return {pid: one for pid, one in table.items() if pid in ours}

    def _is_strange(self, pid: int, table: dict[int, tree.Process]) -> bool:
        """Not where the line breaks off: a parent has ended meanwhile, and it may have been one of ours."""
        seen = set[int]()
        while pid in table and pid not in seen:
            seen.add(pid)
            pid = table[pid].parent
        return pid == 0 or pid in self._strangers


def ours() -> Kin:
    """Those below this process."""
    return Kin(os.getpid())
