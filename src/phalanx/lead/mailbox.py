"""The orders that wait for one agent, and the sign of life that it gives by asking for them."""

from __future__ import annotations

import asyncio
import dataclasses

from phalanx.plan.host import Host
from phalanx.protocol.messages import Join, Order, Poll
from phalanx.sample import TaskSample


class Mailbox:
    """One agent's orders, numbered from 1. An agent that asks again from a lower number is told again."""

    def __init__(self, join: Join, *, epoch: int, heard: float, lease: float) -> None:
        """`heard` is when the agent last spoke; `lease` how many seconds of silence it is allowed."""
        self.join = join
        self.taken = 0  # its events up to this number are in the records
        self.prepared = 0  # the generation it has made ready
        self.ports: tuple[int, ...] = join.host.ports  # held for the next generation to be bound
        self.left = False  # it has been told to leave, and has heard it
        self._epoch, self._lease = epoch, lease
        self._orders: list[Order] = []
        self._news = asyncio.Event()
        self._deadline = heard + lease
        #: What its last poll said of its tasks, and when that was.
        self.samples: tuple[TaskSample, ...] = ()
        self.asked = heard
        self.follows = heard  # when it surely took this lead for the one that rules
        self._came = asyncio.Event()

    @property
    def deadline(self) -> float:
        """When it counts as lost, if nothing is heard before."""
        return self._deadline

    def heard(self, now: float) -> None:
        """The agent has spoken."""
        self._deadline = now + self._lease

    def polled(self, message: Poll, now: float) -> None:
        """The agent asks for orders, says how far its tasks are, and which answer it has had."""
        self.heard(now)
        self.samples, self.asked = message.samples, now
        self.follows = max(self.follows, message.heard)
        self._came.set()

    async def nudge(self) -> None:
        """Answer its open poll, with nothing, so that it asks again at once; until it has."""
        self._came.clear()
        self.wake()
        await self._came.wait()

    def wake(self) -> None:
        """Answer its open poll, with nothing."""
        self._news.set()

    def excuse(self, seconds: float) -> None:
        """The lead did not listen for so long."""
        self._deadline += seconds

    def hung_up(self, now: float, *, patience: float) -> None:
        """Its open poll broke off: a dead process looks like that. It has `patience` seconds to ask again."""
        self._deadline = min(self._deadline, now + patience)

    def host(self) -> Host:
        """Its host, with the ports that the next generation may use."""
        return dataclasses.replace(self.join.host, ports=self.ports)

    def is_prepared(self, generation: int, next_ports: tuple[int, ...]) -> bool:
        """The agent has made a generation ready, and holds ports for the one after it. True where that is news."""
        if generation <= self.prepared:
            return False
        self.prepared, self.ports = generation, next_ports
        return True

    @property
    def leaves(self) -> bool:
        """Whether it is told to leave, heard or not."""
        return any(order.kind == "leave" for order in self._orders)

    def put(self, order: Order) -> None:
        """Number the order and wake the agent's poll."""
        self._orders.append(dataclasses.replace(order, seq=len(self._orders) + 1, epoch=self._epoch))
        self._news.set()

    async def after(self, number: int, wait: float) -> tuple[Order, ...]:
        """The orders after `number`: at once where there are some, else as soon as one comes or `wait` has passed."""
        if number >= len(self._orders):
            self._news.clear()
            try:
                async with asyncio.timeout(wait):
                    await self._news.wait()
            except TimeoutError:
                return ()
        found = tuple(self._orders[max(number, 0) :])
        if any(order.kind == "leave" for order in found):
            self.left = True
        return found
