"""A thread that writes samples: what it cannot write is lost, and costs nobody anything."""

from __future__ import annotations

import contextlib
import os
import sys
import threading
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Generic, TypeVar

from phalanx.errors import PlaceError
from phalanx.records.samples import head, read_samples, thinned, to_line
from phalanx.records.writer import FencedError, write_atomic
from phalanx.sample import LinkSample, LoadSample, TaskSample

S = TypeVar("S", TaskSample, LinkSample, LoadSample)

#: Seconds between two samples of one task, at least; and how many a second are written of all together.
EVERY, RATE = 2.0, 400

#: Bytes of a file that is not thinned yet. After that it is whenever it has doubled.
SMALL = 4_000_000

#: How many samples wait while the disk hangs; more are dropped.
_BACKLOG = 20_000


class Sampler(Generic[S]):
    """Appends to one file of samples. `put` never blocks and nothing raises.

    Its size grows with the logarithm of the run's length: some 25 kB for a task that has run for a day, 50 for a month.
    """

    def __init__(self, path: Path, kind: type[S], *, fence: Callable[[], None], small: int = SMALL) -> None:
        """`fence` raises FencedError where somebody else writes now: then this one never does again."""
        self._path, self._fence = path, fence
        self._kind: type[S] = kind
        self._news = threading.Condition()
        self._queue: list[S] = []
        self._busy = self._closing = self._fenced = False
        self._limit = self._small = small
        self._open = False
        self._thread: threading.Thread | None = None  # begins with the first sample

    def put(self, samples: Iterable[S]) -> None:
        """Some more."""
        with self._news:
            if self._fenced or self._closing:
                return
            self._queue += samples
            del self._queue[_BACKLOG:]
            if self._queue and self._thread is None:
                self._thread = threading.Thread(target=self._run, name="samples", daemon=True)
                self._thread.start()
            self._news.notify_all()

    def settle(self, patience: float) -> None:
        """Until all is written that was put, for so many seconds at most."""
        with self._news:
            self._news.wait_for(lambda: self._fenced or not (self._queue or self._busy), patience)

    def close(self, patience: float) -> None:
        """Write what is left, and end. Idempotent."""
        with self._news:
            self._closing = True
            self._news.notify_all()
        if self._thread is not None:
            self._thread.join(patience)

    def _run(self) -> None:
        while True:
            with self._news:
                self._busy = False
                self._news.notify_all()
                self._news.wait_for(lambda: self._queue or self._closing)
                if not self._queue:
                    return
                samples, self._queue, self._busy = self._queue, [], True
            try:
                self._write(samples)
            except FencedError:
                self._fenced = True
            except (OSError, PlaceError):  # a full disk is the records' trouble, and they tell of it
                self._open = False
            except Exception as wrong:  # noqa: BLE001 - a mistake of ours costs samples, and not the run
                sys.stderr.write(f"samples cannot be written: {wrong!r}\n")
                self._fenced = True

    def _write(self, samples: list[S]) -> None:
        self._fence()
        text = "".join(to_line(sample) + "\n" for sample in samples)
        if not self._open:  # what was there may be torn, or of another version
            self._path.parent.mkdir(exist_ok=True)
            text = ("\n" if self._path.exists() else "") + head(self._kind) + "\n" + text
        fd = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
        try:
            os.write(fd, text.encode())
            size = os.fstat(fd).st_size
        finally:
            os.close(fd)
        self._open = True
        if size > self._limit:
            self._thin()

    def _thin(self) -> None:
        kept: list[S] = thinned(read_samples(self._path, self._kind), time.time())
        self._fence()
        write_atomic(self._path, "".join(line + "\n" for line in (head(self._kind), *map(to_line, kept))))
        with contextlib.suppress(OSError):
            self._limit = max(self._small, 2 * self._path.stat().st_size)


class Sieve:
    """Which samples are worth a line: those of one task or link some time apart, and the last one of each attempt."""

    def __init__(self) -> None:
        """Nothing has passed."""
        self._passed: dict[tuple[object, ...], float] = {}
        self._about: set[tuple[object, ...]] = set()  # the tasks or links, whatever attempt they are in

    def through(self, samples: Iterable[S], *, last: bool = False) -> list[S]:
        """Those that are. `last`: they are the last ones of their attempts, and told more than once perhaps."""
        found = []
        for sample in samples:
            key = sample.about
            before = self._passed.get(key)
            self._about.add(key if isinstance(sample, LinkSample) else key[:1])
            least = max(EVERY, len(self._about) / RATE)
            if before is None or sample.at - before >= least or (last and sample.at > before):
                self._passed[key] = sample.at
                found.append(sample)
        return found
