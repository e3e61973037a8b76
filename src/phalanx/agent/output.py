"""Capture of one stream (first form)."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

from phalanx.redact import Masker


class Capture:
    """Temporary."""

    def __init__(self, fd: int, path: Path, *, masker: Masker) -> None:
        self.done = asyncio.Event()
        self._fd, self._masker = fd, masker
        self._out = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        self._tail = b""
        os.set_blocking(fd, False)
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(fd, self._read)

    def _read(self) -> None:
        try:
            data = os.read(self._fd, 65536)
        except BlockingIOError:
            return
        if not data:
            self._loop.remove_reader(self._fd)
            os.close(self._fd)
            os.write(self._out, self._masker.flush())
            self.done.set()
            return
        data = self._masker.feed(data)
        os.write(self._out, data)
        self._tail = (self._tail + data)[-20000:]

    def last_lines(self, count: int) -> tuple[str, ...]:
        return tuple(self._tail.decode(errors="replace").splitlines()[-count:])
