"""What a host does that may lead next, where the hosts share no folder: it copies the lead's records."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Awaitable, Callable
from typing import Protocol

from phalanx.errors import ProtocolError
from phalanx.plan.wire import WireError
from phalanx.protocol.client import LeadClient
from phalanx.protocol.messages import Copied, Copy

#: Seconds for which a request stays open, and until the next one where none was answered.
WAIT, RETRY = 3.0, 0.2

#: Seconds for one piece of the records, on its way.
_PIECE = 30.0


class Book(Protocol):
    """See `records.copybook.CopyBook`."""

    size: int
    plan: int
    over: bool

    def begin(self) -> None:
        """See CopyBook."""

    def add(self, text: str, *, plan: str = "", generation: int = 0, whole: bool) -> None:
        """See CopyBook."""

    def hand_over(self) -> bool:
        """See CopyBook."""
        ...


class Understudy:
    """Copies as long as this host is in the line, and hands the copy to the lead that takes over here."""

    def __init__(
        self,
        client: LeadClient,
        book: Book,
        *,
        instance: str,
        host: int,
        away: Callable[[Callable[[], None]], Awaitable[None]],
    ) -> None:
        """`away` does what waits for the disk."""
        self._client, self._book, self._away = client, book, away
        self._instance, self._host = instance, host
        self._wanted = asyncio.Event()
        self._epoch = 0

    def wanted(self, *, yes: bool) -> None:
        """Whether this host may lead next."""
        if yes:
            self._wanted.set()
        else:
            self._wanted.clear()

    def hand_over(self) -> bool:
        """Put the copy where a lead of this host finds it; False where there is none."""
        return self._book.hand_over()

    async def run(self) -> None:
        """Copy until it is handed over. A lead that does not answer, and a disk that takes nothing, are tried again."""
        while not self._book.over:
            await self._wanted.wait()
            try:
                await self._copy()
            except (ProtocolError, WireError, TimeoutError):
                await asyncio.sleep(RETRY)
            except OSError:
                self._epoch = 0  # what is there is not to be relied on: from the beginning
                await asyncio.sleep(WAIT)

    async def _copy(self) -> None:
        book, epoch = self._book, self._client.epoch
        if epoch != self._epoch:
            await self._away(book.begin)
            self._epoch = epoch
        ask = Copy(instance=self._instance, host=self._host, have=book.size, plan=book.plan, wait=WAIT)
        async with asyncio.timeout(WAIT + _PIECE):
            copied = await self._client.copy(ask)
        if copied.text and epoch == self._client.epoch:
            await self._away(functools.partial(_add, book, copied))


def _add(book: Book, copied: Copied) -> None:
    book.add(copied.text, plan=copied.plan, generation=copied.generation, whole=copied.all)
