"""All that an agent has said, on its own disk: a lead that takes over may know less than the one before it."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import queue
import threading
from pathlib import Path
from typing import Any

from phalanx.records.writer import guarded

#: Seconds for which a slow disk is waited for.
SLOW = 2.0


class Journal:
    """Line n is event n. A thread writes: a slow disk holds up nobody. One that takes nothing ends the journal."""

    def __init__(self, path: Path) -> None:
        """Nothing is made before the first word."""
        self._path = path
        self._words: queue.SimpleQueue[dict[str, Any] | threading.Event | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        self._keep = True
        #: How many events are in the file.
        self.written = 0

    def put(self, event: dict[str, Any]) -> None:
        """One more. Never waits."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="journal", daemon=True)
            self._thread.start()
        self._words.put(event)

    def read(self, first: int, last: int) -> list[dict[str, Any]]:
        """The events of these numbers; none where the disk has not all of them. Waits for it, not long."""
        flushed = threading.Event()
        self._words.put(flushed)
        if not flushed.wait(SLOW) or self.written < last:
            return []
        try:
            with self._path.open("rb") as file:
                return [json.loads(line) for line in itertools.islice(file, first - 1, last)]
        except (OSError, ValueError):
            return []

    def close(self, *, keep: bool) -> None:
        """Nobody will ask any more. `keep`: there are words that no lead has taken, so the file stays."""
        self._keep = keep
        self._words.put(None)
        if self._thread is not None:
            self._thread.join(SLOW)

    def _run(self) -> None:
        try:
            fd = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        except OSError:
            fd = -1
        while (word := self._words.get()) is not None:
            if isinstance(word, threading.Event):
                word.set()
            elif fd >= 0:
                line = json.dumps(guarded(word), separators=(",", ":")).encode() + b"\n"
                try:
                    whole = os.write(fd, line) == len(line)
                except OSError:
                    whole = False
                if whole:
                    self.written += 1
                else:
                    os.close(fd)
                    fd = -1
        if fd >= 0:
            os.close(fd)
        if not self._keep:
            with contextlib.suppress(OSError):
                self._path.unlink(missing_ok=True)
