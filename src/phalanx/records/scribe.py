"""A thread that writes the records, so that a disk which hangs for seconds holds up nobody but itself."""

from __future__ import annotations

import asyncio
import collections
import contextlib
import sys
import threading
import time
from collections.abc import Callable

from phalanx.events import Record
from phalanx.records import writer
from phalanx.records.writer import EventLog, FencedError

#: Seconds for which an answer waits for what it rests on to be written; a slower disk is not waited for.
SETTLE = 1.0

#: Seconds between two tries while the disk refuses something.
AGAIN = 0.5

#: Seconds without any progress after which a log that closes writes the end of the run without what goes before it.
SHORT = 2.0

#: A text that waits to be written: true once it is, or once nobody needs it any more.
Job = Callable[[], bool]


class Scribe:
    """Writes records and texts in the order in which they were put. `put` and `write` never block.

    Records that pile up behind a write that hangs are kept up to `writer.BACKLOG`; beyond that the oldest go, and the
    log says how many. Texts are tried again until the disk takes them. Once the log's fence, or a text, has raised
    FencedError, nothing is written any more: what waits is forgotten, and nobody waits for it.
    """

    def __init__(self, log: EventLog) -> None:
        """Owns `log` from now on; the thread ends with `close`, and closes it."""
        self._log = log
        self._news = threading.Condition()
        self._queue: collections.deque[Record | Job] = collections.deque()
        self._late: list[Job] = []
        self._put, self._done, self._lost = 0, 0, 0
        self._hangs = False  # the disk is slower than answers may be: they go out without it
        self._closing = self._short = False
        self._fenced = False
        self._waiters: collections.deque[tuple[int, asyncio.Future[None]]] = collections.deque()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread = threading.Thread(target=self._run, name="records", daemon=True)
        self._thread.start()

    def put(self, record: Record) -> None:
        """One more record."""
        self._add(record)

    def write(self, job: Job) -> None:
        """A text, after all that was put before it."""
        self._add(job)

    @property
    def waiting(self) -> int:
        """How many records and texts the disk has not taken yet."""
        with self._news:
            return len(self._queue) + len(self._late) + self._log.waiting

    @property
    def fenced(self) -> bool:
        """Whether somebody else writes now."""
        return self._fenced

    async def settle(self) -> None:
        """Until all that was put so far is written, or refused by the disk; `SETTLE` seconds at most."""
        with self._news:
            if self._done >= self._put or self._hangs or self._fenced:
                return
            self._loop = asyncio.get_running_loop()
            waiter: asyncio.Future[None] = self._loop.create_future()
            self._waiters.append((self._put, waiter))
        try:
            async with asyncio.timeout(SETTLE):
                await waiter
        except TimeoutError:
            self._hangs = True

    def close(self, patience: float) -> bool:
        """End once all is written, or after `patience` seconds in which nothing was. True where nothing is left.

        After `SHORT` of them the end of the run is not held up any more by what goes before it.
        """
        self._closing = True
        left, since = self.waiting, time.monotonic()
        while self._thread.is_alive() and (stuck := time.monotonic() - since) < patience:
            self._short = stuck > SHORT
            with self._news:
                self._news.notify()
            self._thread.join(0.05)
            if self.waiting < left:
                left, since = self.waiting, time.monotonic()
        return not self._thread.is_alive()

    def _add(self, item: Record | Job) -> None:
        with self._news:
            if self._fenced:
                return
            self._queue.append(item)
            self._put += 1
            if len(self._queue) > writer.BACKLOG and isinstance(self._queue[0], Record):
                self._queue.popleft()
                self._lost += 1
                self._done += 1
            self._news.notify()

    def _run(self) -> None:
        try:
            self._work()
        except FencedError:
            self._log.abandon()
            with self._news:
                self._fenced = True
                self._late.clear()
                self._queue.clear()
                self._done = self._put
                self._release()

    def _work(self) -> None:
        while True:
            with self._news:
                refused = bool(self._late) or self._log.waiting > 0
                if not self._queue and not (self._closing and not refused):
                    self._news.wait(AGAIN if refused or self._closing else None)
                items, lost = list(self._queue), self._lost
                self._queue.clear()
                self._lost = 0
            self._write(items, lost)
            with self._news:
                self._done += len(items)
                self._hangs = self._hangs and bool(self._queue)
                refused = bool(self._late) or self._log.waiting > 0
                self._release()
                over = self._closing and not self._queue and not refused
            if over:
                self._log.close()
                return

    def _write(self, items: list[Record | Job], lost: int) -> None:
        """Records that follow each other in one go; a text between them keeps its place."""
        self._late = [job for job in self._late if not _done(job)]
        records: list[Record] = []
        for item in items:
            if isinstance(item, Record):
                records.append(item)
                continue
            self._log.extend(records, lost=lost)
            records, lost = [], 0
            if not _done(item):
                self._late.append(item)
        self._log.extend(records, lost=lost)
        if self._short:
            self._log.cut_short()

    def _release(self) -> None:
        if self._waiters and self._loop is not None:
            with contextlib.suppress(RuntimeError):  # the loop has ended meanwhile
                self._loop.call_soon_threadsafe(self._wake)

    def _wake(self) -> None:
        with self._news:
            while self._waiters and self._waiters[0][0] <= self._done:
                waiter = self._waiters.popleft()[1]
                if not waiter.done():
                    waiter.set_result(None)


def _done(job: Job) -> bool:
    """Whether a text need not be tried again. One that cannot be made costs itself only, and not the records."""
    try:
        return job()
    except FencedError:
        raise
    except Exception as wrong:  # noqa: BLE001 - a mistake of ours in one text
        sys.stderr.write(f"a text of the records cannot be made: {wrong!r}\n")
        return True
