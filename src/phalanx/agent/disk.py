"""The disk of the run's folder, as the agent's loop sees it: a thread waits for it, and the loop never does."""

from __future__ import annotations

import asyncio
import contextlib
import queue
import threading
import time
import traceback
from collections.abc import Callable
from typing import TypeVar

from phalanx.apart import promised

T = TypeVar("T")

#: Seconds between two looks at whether it goes on, while something waits for it.
LOOK = 0.5

#: Seconds without any progress after which nobody is held up for it any more, and after which people are told.
HANGS, TOLD = 2.0, 5.0

#: Seconds without any progress for which the end waits: where it was not hanging already, where it was; and in all.
STUCK, STILL, LAST = 3.0, 1.0, 30.0


class Disk:
    """Does in order what is put: one thread for all, since a disk that hangs for one file hangs for the others.

    Belongs to one event loop. It counts as hanging only for the time in which this loop ran: an agent that was frozen
    accuses nobody.
    """

    def __init__(self, say: Callable[[str], None], *, clock: Callable[[], float] = time.monotonic) -> None:
        """`say` is told when it has taken nothing for `TOLD` seconds, and when it is back."""
        self._say, self._clock = say, clock
        self._jobs: queue.SimpleQueue[Callable[[], object] | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        self._put = self._done = self._seen = 0  # of these the thread writes only `_done`
        self._stuck = self._looked = 0.0
        self._loop: asyncio.AbstractEventLoop | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._told = False

    @property
    def hangs(self) -> bool:
        """Whether it has finished nothing for `HANGS` seconds, and something waits."""
        return self._stuck >= HANGS and self._done == self._seen

    def put(self, job: Callable[[], object]) -> None:
        """One more, which must not raise. Never waits."""
        if self._thread is None:
            self._loop = asyncio.get_running_loop()
            self._thread = threading.Thread(target=self._run, name="disk", daemon=True)
            self._thread.start()
        self._put += 1
        self._jobs.put(job)
        if self._timer is None:
            self._seen, self._stuck, self._looked = self._done, 0.0, self._clock()
            self._timer = asyncio.get_running_loop().call_later(LOOK, self._look)

    async def ask(self, work: Callable[[], T]) -> T:
        """The result or exception of `work`, however long that takes."""
        run, answer = promised(work)
        self.put(run)
        return await asyncio.wrap_future(answer)

    async def settle(self, patience: float) -> None:
        """Until all that was put so far is done; `patience` seconds at most, and no longer once it hangs."""
        reached, deadline = self._put, self._clock() + patience
        waiting = asyncio.ensure_future(self.ask(lambda: None)) if self._done < reached else None
        while waiting is not None and self._done < reached and not self.hangs and self._clock() < deadline:
            await asyncio.wait([waiting], timeout=LOOK / 5)

    def close(self) -> bool:
        """Wait for what was put, within bounds; True where nothing is left. Blocks: nothing else is to be done."""
        if self._timer is not None:
            self._timer.cancel()
        if self._thread is None:
            return True
        self._jobs.put(None)
        patience = STILL if self.hangs else STUCK
        seen, since = self._done, self._clock()
        last = since + LAST
        while self._thread.is_alive() and self._clock() < min(since + patience, last):
            self._thread.join(0.05)
            if self._done != seen:
                seen, since = self._done, self._clock()
        return not self._thread.is_alive()

    def back(self, word: Callable[..., object], *about: object) -> None:
        """From a job to the loop, which may have ended meanwhile: then nobody hears it."""
        if self._loop is not None:
            with contextlib.suppress(RuntimeError):
                self._loop.call_soon_threadsafe(word, *about)

    def _run(self) -> None:
        while (job := self._jobs.get()) is not None:
            try:
                job()
            except Exception:  # noqa: BLE001 - a mistake of ours in one job is no reason to lose all that follow
                traceback.print_exc()
            self._done += 1

    def _look(self) -> None:
        now, done = self._clock(), self._done
        before = self._stuck
        self._stuck = before + min(now - self._looked, 2 * LOOK) if done == self._seen else 0.0
        self._seen, self._looked = done, now
        if self._stuck >= TOLD and not self._told:
            self._told = True
            self._say(
                f"the disk of the run's folder has taken nothing for {self._stuck:.0f} s: tasks go on; their output "
                "waits in memory, and what has no room there is lost and counted"
            )
        if self._told and not self._stuck:
            self._told = False
            self._say(f"the disk of the run's folder works again, after {before:.0f} s")
        waits = done < self._put
        self._timer = asyncio.get_running_loop().call_later(LOOK, self._look) if waits else None
