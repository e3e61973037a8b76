"""All that an agent has said, on its own disk: a lead that takes over may know less than the one before it."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import itertools
import json
import os
from pathlib import Path
from typing import Any

from phalanx.agent.disk import Disk
from phalanx.records.writer import guarded

#: Seconds for which a slow disk is waited for.
SLOW = 2.0


class Journal:
    """Line n is event n. A disk that takes nothing ends the journal: what follows is in no line."""

    def __init__(self, path: Path, disk: Disk) -> None:
        """Nothing is made before the first word. `disk` does what waits."""
        self._path, self._disk = path, disk
        self._fd: int | None = None
        self._whole = True
        self._written = 0

    def put(self, event: dict[str, Any]) -> None:
        """One more. Never waits."""
        self._disk.put(functools.partial(self._write, event))

    async def read(self, first: int, last: int) -> list[dict[str, Any]]:
        """The events of these numbers; none where the disk has not all of them. Waits for it, not long."""
        try:
            async with asyncio.timeout(SLOW):
                return await self._disk.ask(functools.partial(self._read, first, last))
        except (TimeoutError, OSError, ValueError):
            return []

    def close(self, *, keep: bool) -> None:
        """Nobody will ask any more. `keep`: there are words that no lead has taken, so the file stays."""
        self._disk.put(functools.partial(self._close, keep=keep))

    # In the disk's thread ------------------------------------------------------------------------------------------

    def _write(self, event: dict[str, Any]) -> None:
        line = json.dumps(guarded(event), separators=(",", ":")).encode() + b"\n"
        try:
            if self._fd is None and self._whole:
                self._fd = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
            self._whole = self._whole and self._fd is not None and os.write(self._fd, line) == len(line)
        except OSError:
            self._whole = False
        self._written += self._whole

    def _read(self, first: int, last: int) -> list[dict[str, Any]]:
        if self._written < last:
            return []
        with self._path.open("rb") as file:
            return [json.loads(line) for line in itertools.islice(file, first - 1, last)]

    def _close(self, *, keep: bool) -> None:
        with contextlib.suppress(OSError):  # a late word about writes that have failed before
            if self._fd is not None:
                os.close(self._fd)
            if not keep:
                self._path.unlink(missing_ok=True)
