"""Which of our ports somebody listens on, by `/proc/net/tcp`: TensorFlow says nothing itself (facts §3)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from pathlib import Path

from phalanx.agent.running import Running

_LISTEN = "0A"

#: Seconds between two looks: while tasks start, and while one takes its time.
FIRST_LOOK, LONGEST_LOOK = 0.01, 1.0


def listening(
    ports: Iterable[int], tables: Iterable[Path] = (Path("/proc/net/tcp"), Path("/proc/net/tcp6"))
) -> set[int]:
    """Those of `ports` with a listener, on any address. A held port has none: it is bound, never listened on."""
    wanted = set(ports)
    found: set[int] = set()
    for table in tables:
        try:
            lines = table.read_text().splitlines()[1:]
        except OSError:
            continue  # no IPv6 in this kernel
        for line in lines:
            fields = line.split(maxsplit=4)
            if fields[3] == _LISTEN and (port := int(fields[1].rpartition(":")[2], 16)) in wanted:
                found.add(port)
    return found


class Listeners:
    """Tells of each task when it has come to listen: one look for all of them, soon at first, less often later."""

    def __init__(self, heard: Callable[[Running, int], None]) -> None:
        """`heard` gets each attempt once, with its port."""
        self._heard = heard
        self._deaf: dict[int, Running] = {}
        self._looking: asyncio.Task[None] | None = None

    def add(self, running: Running) -> None:
        """It has started; nothing to do for one without a port."""
        if running.task.port is None:
            return
        self._deaf[running.task.port] = running
        if self._looking is None or self._looking.done():
            self._looking = asyncio.ensure_future(self._look())

    async def _look(self) -> None:
        pause, known = FIRST_LOOK, 0
        while self._deaf:
            if len(self._deaf) > known:
                pause = FIRST_LOOK
            known = len(self._deaf)
            for port in listening(self._deaf):
                self._heard(self._deaf.pop(port), port)
            for port in [port for port, running in self._deaf.items() if running.ended.is_set()]:
                del self._deaf[port]
            await asyncio.sleep(pause)
            pause = min(pause * 1.2, LONGEST_LOOK)
