"""What those who may lead next have of the records, where the hosts share no folder."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from phalanx.hoststate import HostState
from phalanx.lead.records import Records
from phalanx.protocol.messages import Copied, Copy
from phalanx.protocol.signing import RefusedError

#: Seconds for which an answer waits until the others have what it rests on; a slower one is not waited for.
SETTLE = 1.0

#: Bytes of one answer, in whole lines, however long these are.
PIECE = 4 * 1024 * 1024


class Copies:
    """Hands the records out, and knows who has how much of them."""

    def __init__(self, records: Records) -> None:
        """Nobody has asked yet."""
        self._records = records
        self._have: dict[int, int] = {}
        self._slow: set[int] = set()
        self._said, self._asked = _Bell(), _Bell()
        self._over = False

    def close(self) -> None:
        """The lead ends: nobody waits for more."""
        self._over = True
        self._said.ring()

    def said(self) -> None:
        """There is one more record: whoever waits for one is answered."""
        self._said.ring()

    async def next(self, message: Copy) -> Copied:
        """What follows what that host has, as soon as there is something. Raises RefusedError once the lead ends."""
        self._have[message.host] = message.have
        self._asked.ring()
        try:
            async with asyncio.timeout(message.wait):
                while True:
                    if self._over:
                        raise RefusedError("the lead ends")
                    news = self._said.next
                    await self._records.settle()
                    text, left = await self._records.text(message.have, PIECE)
                    if text:
                        plan, generation = self._records.plan_after(message.plan)
                        return Copied(text=text.decode(), plan=plan, generation=generation, all=not left)
                    await news.wait()
        except TimeoutError:
            return Copied()

    async def settle(self, hosts: Mapping[int, HostState]) -> None:
        """Until all living hosts that ask have what is written. Waits `SETTLE` at most, and for a slow one not again
        before that has caught up.
        """
        size = self._records.size
        try:
            async with asyncio.timeout(SETTLE):
                while self._late(hosts, size) - self._slow:
                    await self._asked.next.wait()
        except TimeoutError:
            self._slow |= self._late(hosts, size)
        self._slow &= self._late(hosts, size)

    def _late(self, hosts: Mapping[int, HostState], size: int) -> set[int]:
        return {host for host, have in self._have.items() if have < size and hosts[host].living}


class _Bell:
    """Wakes all who have waited for its next ring, however many come and go."""

    def __init__(self) -> None:
        self.next = asyncio.Event()

    def ring(self) -> None:
        self.next.set()
        self.next = asyncio.Event()
