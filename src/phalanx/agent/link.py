"""The agent's line to the lead: joins, asks for orders, hands over events, and keeps them until they are taken."""

from __future__ import annotations

import asyncio
import dataclasses
import time
import typing
from collections.abc import Callable
from typing import Any

from phalanx.agent.log import say
from phalanx.agent.outbox import Journal, Outbox
from phalanx.agent.repeats import Repeats
from phalanx.agent.succession import Succession
from phalanx.errors import ProtocolError
from phalanx.events import Event, event_to_json
from phalanx.protocol.client import LeadClient, NewLeadError
from phalanx.protocol.messages import Join, Joined, Measured, Order, Orders, Poll, Report, Taken
from phalanx.protocol.signing import RefusedError, ResignedError, TakenError
from phalanx.protocol.transport import LeadSilentError, NobodyThereError
from phalanx.sample import TaskSample

#: Seconds between two tries while the lead does not answer.
RETRY = 0.2

#: Seconds that an agent tries to join: thousands may come at once, and the lead's kernel lets them in one by one.
CROWD = 60.0

#: The parts of the lease for which an agent lets a poll stay open, which one try may take, and which one of those may
#: take that look for another lead: an address that lets nothing through is not the only one.
_ASK, _TRY, _PROBE = 0.3, 0.6, 0.2


class LeadGoneError(ProtocolError):
    """The lead has not answered for longer than its lease."""


class HostBrokenError(ProtocolError):
    """This host cannot look after its tasks any more."""


class Link:
    """One agent's conversation. `obey` is called with each order once, in order.

    A lead that has taken over does not know what its predecessor had ordered, and says all of it again: what was
    carried out already is not passed on.
    """

    def __init__(
        self,
        client: LeadClient,
        join: Join,
        obey: Callable[[Order], None],
        *,
        patience: float,
        clock: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
        succession: Succession | None = None,
        journal: Journal | None = None,
        replaces: float = 0.0,
        crowd: float = CROWD,
    ) -> None:
        """`patience`: seconds without any answer after which the lead counts as gone, and its `succession` begins; a
        lead may tell of more when it is joined. `wall` gives the events' time. `replaces`: for so many seconds it
        waits until the agent that was here before it is given up; `crowd`: so long it tries to join at all.
        """
        self._replaces, self._crowd = replaces, crowd
        #: What the lead has dismissed it with: the exit code of the run; None while it has not.
        self.code: int | None = None
        self._client, self._join, self._obey = client, join, obey
        self._succession = succession
        self._shortest = self._patience = self._lease = patience
        self._clock, self._wall = clock, wall
        self._joined = False
        self._outbox = Outbox(journal)
        self._prepared = 0
        self._next_ports: tuple[int, ...] = ()
        self._polling = False  # a poll is open, so what it could have said needs a request of its own
        self._news = asyncio.Event()
        self._after = 0
        self._repeats = Repeats()
        self._joining = asyncio.Lock()
        self._answered = clock()
        self._looker: object | None = None  # which of our calls looks for another lead
        self._heard = 0.0  # the same by the lead's clock, as its last answer says
        self._broken: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        #: How far the tasks of this host have come: rides on each poll; and how far those had that have ended: rides
        #: on each report. Both come anyway.
        self.samples: Callable[[], tuple[TaskSample, ...]] = tuple
        self.parting: Callable[[], tuple[TaskSample, ...]] = tuple
        #: What they use and send: rides on some polls.
        self.measured: Callable[[], Measured | None] = lambda: None

    def say(self, event: Event) -> None:
        """Hand an event over as soon as the lead takes it."""
        self._outbox.put(event_to_json(event))
        self._news.set()

    @property
    def untold(self) -> int:
        """How many events no lead has taken."""
        return self._outbox.waiting

    @property
    def joined(self) -> bool:
        """Whether a lead has taken it."""
        return self._joined

    def prepared(self, generation: int, next_ports: tuple[int, ...] = ()) -> None:
        """Everything of this generation is ready to go, and these ports are held for the next."""
        self._prepared, self._next_ports = generation, next_ports
        if self._polling:
            self._news.set()

    def give_up(self, reason: str) -> bool:
        """This host cannot go on: `run` raises HostBrokenError once all is said. False where it was given up before."""
        if self._broken.done():
            return False
        self._broken.set_exception(HostBrokenError(reason))
        return True

    async def run(self) -> None:
        """Join, then talk until told to leave. Raises LeadGoneError, or RefusedError where the lead disowns it."""
        self._is_joined(await self._enter())
        async with asyncio.TaskGroup() as group:
            others = [group.create_task(self._report_forever()), group.create_task(self._until_broken())]
            await self._follow_orders()
            await self._drain()
            for other in others:
                other.cancel()

    async def _enter(self) -> Joined:
        """The first word; said again while the lead still believes in the agent that was here before."""
        until, waits = self._clock() + self._replaces, False
        while True:
            try:
                return typing.cast("Joined", await self._retry(self._call_join))
            except TakenError as wrong:
                if self._clock() >= until:
                    raise
                if not waits:
                    say(f"{wrong}: this one waits for its end, {self._replaces:.0f} s at most")
                waits = True
            self._answered = self._clock()
            await asyncio.sleep(RETRY)

    async def _follow_orders(self) -> None:
        while True:
            self._polling = True
            answer = await self._retry(self._call_orders)
            self._polling = False
            self._learn(answer.line)
            self._heard = answer.now
            for order in answer.orders:
                if order.epoch < self._client.epoch or order.seq <= self._after:
                    continue
                self._after = order.seq
                if order.kind == "leave":
                    self.code = order.code
                    return
                new = self._repeats.new_of(order)
                if new is not None:
                    self._obey(new)

    async def _call_join(self) -> Joined:
        about = dataclasses.replace(self._join, prepared=self._prepared, next_ports=self._next_ports)
        return await self._client.join(about)

    async def _call_orders(self) -> Orders:
        poll = Poll(
            instance=self._join.instance,
            host=self._join.host.id,
            after=self._after,
            prepared=self._prepared,
            next_ports=self._next_ports,
            samples=self.samples(),
            measured=self.measured(),
            heard=self._heard,
            wait=min(_ASK * self._lease, max(0.0, self._left() / 2)),  # after a silence no wait: is it there at all?
        )
        return await self._client.orders(poll)

    async def _join_again(self, epoch: int) -> None:
        """Once for each new lead, whichever of our calls has met it first."""
        async with self._joining:
            if self._client.epoch == epoch:
                joined = await self._retry(self._call_join)
                self._after = 0
                self._is_joined(joined)
                await self._outbox.rewind(joined.taken)
                if self._outbox.waiting:
                    self._news.set()

    async def _until_broken(self) -> None:
        """Raises HostBrokenError once the host has given up and the lead has heard why."""
        try:
            await asyncio.shield(self._broken)
        except HostBrokenError:
            await self._drain()
            raise

    async def _report_forever(self) -> None:
        while True:
            await self._news.wait()
            await self._report_once()

    async def _report_once(self) -> None:
        self._news.clear()
        taken = await self._retry(self._call_report)
        self._outbox.taken(taken.upto)
        if self._outbox.waiting:
            self._news.set()

    async def _call_report(self) -> Taken:
        first, batch = self._outbox.batch()
        report = Report(
            instance=self._join.instance,
            host=self._join.host.id,
            first=first,
            events=batch,
            now=self._wall(),
            prepared=self._prepared,
            next_ports=self._next_ports,
            samples=self.parting(),
        )
        return await self._client.report(report)

    async def _drain(self) -> None:
        """The last words, as far as the lead still listens."""
        try:
            async with asyncio.timeout(1.0):
                while self._outbox.waiting:
                    await self._report_once()
        except (TimeoutError, ProtocolError):
            return

    def _is_joined(self, joined: Joined) -> None:
        self._joined = True
        self._heard = joined.now
        self._lease, self._patience = joined.lease, max(self._shortest, joined.lease)
        if self._succession is not None:
            self._succession.lasts(self._patience)
            if joined.lead:
                self._succession.leads_at(joined.lead)
        self._learn(joined.line)

    def _learn(self, line: tuple[str, ...]) -> None:
        if self._succession is not None:
            self._succession.learn(line)

    def _left(self) -> float:
        """Seconds until the lead's silence has lasted for too long."""
        return self._answered + self._patience - self._clock()

    async def _retry(self, call: Callable[[], Any]) -> Any:
        """Until it is answered. The call that fails first looks for another lead; the other asks where that asks."""
        me = object()
        try:
            while True:
                answered, answer = await self._once(call, me)
                if answered:
                    return answer
        finally:
            self._answers(me)

    async def _once(self, call: Callable[[], Any], me: object) -> tuple[bool, Any]:
        epoch, begun = self._client.epoch, self._clock()
        # So that the end of the patience is noticed on time, and not once a frozen lead's request times out.
        left, longest = self._left(), _TRY * self._patience
        bound = min(longest, left) if left > RETRY else _PROBE * self._patience
        try:
            async with asyncio.timeout(bound):
                answer = await call()
        except RefusedError:
            raise
        except NewLeadError:
            self._answers(me)
            await self._join_again(epoch)
            return False, None
        except ResignedError as wrong:
            if self._succession is None:
                raise
            self._answers(me)
            self._succession.resigned(str(wrong), epoch)
            self._answered = self._clock()  # the next one has as much time as any lead
            await asyncio.sleep(RETRY)
            return False, None
        except (LeadSilentError, TimeoutError) as wrong:
            self._looker = self._looker or me
            if self._looker is me:
                self._excuse(begun, bound)
                self._look(wrong)
            slept = self._clock()
            await asyncio.sleep(RETRY)
            if self._looker is me:
                self._excuse(slept, RETRY)
            return False, None
        self._answered = self._clock()
        if self._succession is not None:
            self._succession.answered()
        return True, answer

    def _look(self, wrong: Exception) -> None:
        """Raises LeadGoneError where there is no lead to wait for, now that a try has failed as `wrong` says."""
        if self._succession is not None and isinstance(wrong, NobodyThereError):
            self._succession.refused()
        silent = self._clock() - self._answered
        if not self._may_come(silent):
            why = str(wrong) or "the lead does not answer"
            raise LeadGoneError(f"{why}; given up after {silent:.0f} s") from wrong

    def _excuse(self, begun: float, bound: float) -> None:
        """What took longer than it can has slept: that was not the lead's silence."""
        self._answered += max(0.0, self._clock() - begun - bound - 1.0)

    def _answers(self, me: object) -> None:
        """Whoever has looked for a lead need not any more."""
        if self._looker is me:
            self._looker = None

    def _may_come(self, silent: float) -> bool:
        """Whether there is a lead to wait for, after so many seconds of silence."""
        if self._succession is not None and self._succession.silent(silent, self._client.epoch):
            return True
        if not self._joined:
            return silent <= self._crowd
        return self._succession is None and silent <= self._patience
