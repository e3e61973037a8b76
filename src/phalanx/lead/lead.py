"""The lead: turns messages into events, events into state, and the decisions about the state into orders."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping

from phalanx import events as ev
from phalanx.decide.elastic import can_start, is_complete, outline_for
from phalanx.decide.ending import step
from phalanx.decide.hang import Dump
from phalanx.decide.next_step import Say, Stop, Wake
from phalanx.decide.preflight import may_start
from phalanx.errors import PhalanxError
from phalanx.lead.attempts import Attempts
from phalanx.lead.copies import Copies
from phalanx.lead.deposed import DeposedError
from phalanx.lead.generation import Briefs, attempt_orders, bound_events, go_orders, orders_with, task_orders
from phalanx.lead.handover import Handover
from phalanx.lead.lease import ticks
from phalanx.lead.leaving import farewell, let_go, staying
from phalanx.lead.mailbox import Mailbox
from phalanx.lead.majority import Majority
from phalanx.lead.opening import admit, joined_event, never_ran, opening_events, unbound_events
from phalanx.lead.people import People
from phalanx.lead.records import Records
from phalanx.lead.roll import Roll
from phalanx.lead.slow import Slow
from phalanx.lead.testimony import words_of
from phalanx.plan.bind import bind
from phalanx.plan.outline import Outline
from phalanx.plan.outputs import outputs_of
from phalanx.plan.plan import Plan
from phalanx.protocol.messages import VERSION, Copied, Copy, Join, Joined, Order, Orders, Poll, Report, Taken
from phalanx.protocol.signing import RefusedError
from phalanx.records.past import Past
from phalanx.states import RunPhase, RunState, fold

#: Seconds in which agents may come for their dismissal.
PATIENCE = 2.0

#: Seconds in which they may hear who leads next.
HANDING_OVER = 1.0

#: Seconds between two looks for hosts that are heard again.
_LOOK = 0.5


class Lead:
    """One run's lead. All methods belong to one event loop.

    It decides nothing: `decide.ending` is asked after every event and at every alarm, and this class carries out.
    """

    def __init__(
        self,
        outline: Outline,
        *,
        run: str,
        epoch: int,
        records: Records,
        past: Past | None = None,
        clock: Callable[[], float] = time.time,
        fenced: bool = True,
        address: str = "",
    ) -> None:
        """`clock` gives Unix seconds; `past` is what the leads before this one have left; `address` is that by which
        agents know it, where it hands over before its host goes.

        `fenced`: every lead of this run writes into one folder, where the newest keeps the others out. Else this one
        gives orders only while it hears from most of the hosts, and hands its records to those who may lead next.
        """
        past = past or Past()
        self.outline, self.run, self.epoch = outline, run, max(epoch, past.state.epoch + 1)
        self.state, self.plan = past.state, past.plan
        self._records, self._clock = records, clock
        self.roll = Roll(past.state, hosts=outline.hosts, epoch=self.epoch, now=clock())
        self._copies = None if fenced else Copies(records)
        self._majority, self._handover = Majority(needed=not fenced), Handover(address)
        self._briefs: Briefs | None = None
        self._past = past
        self._changed = asyncio.Event()
        self._went: set[int] = set()
        self._attempts = Attempts()
        self._deposed = False
        self.slow = Slow()
        self.people = People(self, clock)
        #: Who knows more of why a host was lost says so.
        self.because: Callable[[ev.HostLost], ev.HostLost] = lambda lost: lost

    # What agents and people ask of it ----------------------------------------------------------------------------

    def check_epoch(self, epoch: int) -> None:
        """Raises DeposedError where an agent has met a newer lead: this one gives no orders any more, and ends."""
        if epoch > self.epoch or self._deposed:
            self.depose()
            raise DeposedError(f"this lead's epoch {self.epoch} is over: {max(epoch, self.epoch + 1)} rules")

    def depose(self) -> None:
        """Another lead has taken over: `run_until_ended` raises DeposedError."""
        self._deposed = True
        self._changed.set()

    def join(self, message: Join) -> Joined:
        """A host is here. The same agent may say so again; another one for the same host is refused."""
        if message.version != VERSION:
            raise RefusedError(f"this agent speaks protocol {message.version}, the lead {VERSION}")
        if message.run != self.run:
            raise RefusedError(f"this is run {self.run}, not {message.run}")
        self._handover.check()
        box = self.roll.boxes.get(message.host.id)
        known = box if box is not None and box.join.instance == message.instance else self._know(message)
        line = self.roll.line(self.state)
        return Joined(
            epoch=self.epoch,
            lease=self.roll.lease.seconds,
            taken=known.taken,
            now=self._clock(),
            line=line,
            lead=self._handover.own,
        )

    def _know(self, message: Join) -> Mailbox:
        """An agent's first word to this lead; perhaps not its first to the run. Another one may replace a lost one."""
        now, host = self._clock(), message.host
        before = self.state.hosts.get(host.id)
        same = before is not None and before.joined.instance == message.instance
        if host.role and not same and host.id in self.roll.awaited and before is not None and not before.leaving:
            # A pod is replaced once it is gone, or has been told to end; then its agent says that before anything else.
            self.people.lose(host.id, "its pod was gone before this lead began, and has been replaced")
        admit(self.state, message, same=same)
        if not same:
            self.say(joined_event(message, now))
        mailbox = self.roll.enter(message, now)
        if same:
            self._take_over(mailbox)
        return mailbox

    def _take_over(self, mailbox: Mailbox) -> None:
        """Tell an agent of an earlier lead again what holds now: it knows by itself what it has done of that."""
        host = mailbox.join.host.id
        self.roll.awaited.pop(host, None)
        mailbox.taken = self._past.taken.get(host, 0)
        mailbox.is_prepared(mailbox.join.prepared, mailbox.join.next_ports)
        if self.state.phase.terminal:
            mailbox.put(farewell(self.state))
        elif self.plan is not None and self.plan.generation == self.state.generation:
            for order in self._briefed(self.plan).again(host, self.state, self._clock()):
                mailbox.put(order)
        self._changed.set()

    async def orders(self, message: Poll) -> Orders:
        """Orders after the number the agent has; waits for one to come up."""
        mailbox = self._box(message)
        mailbox.polled(message, self._clock())
        seen, events = self.slow.heard(message, self.state, self._clock())
        self._records.seen(seen)
        for event in events:
            self.say(event)
        self._is_prepared(mailbox, message)
        found = await mailbox.after(message.after, min(message.wait, self.roll.lease.wait))
        mailbox.heard(self._clock())
        self._check()
        if mailbox.left:
            self._changed.set()
        await self.settle()
        return Orders(orders=found, line=self.roll.line(self.state), now=self._clock())

    async def settle(self) -> None:
        """What an answer rests on is written before it goes out, and copied: a lead that takes over knows as much.

        Raises DeposedError where another lead has taken over: then nothing goes out.
        """
        try:
            await self._records.settle()
        except DeposedError:
            self.depose()
            raise
        if self._copies is not None:
            await self._copies.settle(self.state.hosts)

    async def copy(self, message: Copy) -> Copied:
        """More of the records, for a host that may lead next. Raises RefusedError where nobody need copy them."""
        if self._copies is None:
            raise RefusedError("the hosts share the run's folder")
        self._box(message)
        return await self._copies.next(message)

    def hung_up(self, message: Poll) -> None:
        """The agent's poll broke off before it was answered."""
        mailbox = self.roll.boxes.get(message.host)
        if mailbox is not None and not mailbox.left:
            mailbox.hung_up(self._clock(), patience=self.roll.lease.again)
            self._changed.set()

    def report(self, message: Report) -> Taken:
        """Take an agent's events into the records, each once, in its order. Raises WireError for one that is none."""
        mailbox = self._box(message)
        mailbox.heard(self._clock())
        if message.events and message.first > mailbox.taken + 1:
            lost = f"{mailbox.taken + 1} to {message.first - 1}"
            self.say(ev.Noted(time=self._clock(), host=message.host, message=f"its agent's words {lost} are lost"))
        for number, event in words_of(message, taken=mailbox.taken, now=self._clock()):
            mailbox.taken = number
            if self.state.stop is None or not isinstance(event, ev.StopRequested):  # one launcher, many agents
                self.say(event, told=(message.host, number))
        self._is_prepared(mailbox, message)
        return Taken(upto=mailbox.taken)

    # What it does by itself --------------------------------------------------------------------------------------

    async def run_until_ended(self) -> RunState:
        """Lead the run to its end, tell the agents to leave, and return how it ended. Raises DeposedError."""
        if not self.state.phase.terminal:
            for event in opening_events(self.outline, self.run, self._clock(), dropped=self._past.dropped):
                self.say(event)
        ticking = asyncio.ensure_future(ticks(self.roll.excuse, self._clock))
        try:
            await self._lead()
            await self.settle()  # who is told to leave never comes back
            self._records.write_report(self.state, self.plan)
            await self._dismiss()
        finally:
            ticking.cancel()
            if self._copies is not None:
                self._copies.close()
        return self.state

    async def _lead(self) -> None:
        while not self.state.phase.terminal:
            self._changed.clear()
            if self._deposed:
                raise DeposedError(f"this lead's epoch {self.epoch} is over")
            now = self._clock()
            wake = self._advance() if self._majority.there(self.roll, self.state, now) else now + _LOOK
            if self._majority.refusal:
                self.say(ev.Noted(time=now, message=self._majority.refusal))
                await self._turn_away(self._majority.refusal, PATIENCE)
            elif (heir := self._handover.due(self.roll, self.state)) is not None:
                await self.settle()  # the next one knows as much
                self._handover.to(heir)
                follows = f"the one at {heir} takes over" if heir else "nobody is left to follow"
                await self._turn_away(f"its host is taken away: {follows}", HANDING_OVER if heir else 0.0)
            elif not self.state.phase.terminal:
                await self._rest(wake)

    async def _turn_away(self, reason: str, patience: float) -> None:
        """Let all agents know that this lead ends: they end their tasks, or ask another. Raises DeposedError."""
        deadline = self._clock() + patience
        for box in self.roll.boxes.values():
            box.wake()
        while self._clock() < deadline:
            self._changed.clear()
            await self._rest(deadline)
        raise DeposedError(reason)

    def _advance(self) -> float | None:
        """Do all that can be done now; say when to look again."""
        for lost in self.roll.silent(self.state, self._clock()):
            self.say(self.because(lost))
        for event in let_go(self.state, self.living(), self._clock()):
            self.say(event)
        self._bind_when_complete()
        self._go_when_prepared()
        self._start_attempts()
        while True:
            actions = step(self.state, self.outline.policies, outputs_of(self.plan), self._clock())
            wakes = [action.at for action in actions if isinstance(action, Wake)]
            for action in actions:
                match action:
                    case Say():
                        self.say(action.event)
                    case Stop():
                        self._stop(action)
                    case Dump():
                        self.people.stacks(action.tasks, by="phalanx")
            if len(wakes) == len(actions):
                deadline = self.roll.next_deadline(self.state)
                return min([*wakes, *([] if deadline is None else [deadline])], default=None)

    def say(self, event: ev.Event, told: tuple[int, int] | None = None) -> None:
        """Put it into the records, into the state, and before whom it concerns; `told`: by which agent, and its number.

        Raises DeposedError where another lead writes the records now.
        """
        record = ev.Record(seq=self.state.seq + 1, epoch=self.epoch, event=event, told=told)
        try:
            self._records.append(record)
        except DeposedError:
            self.depose()
            raise
        self.state = fold(self.state, record)
        self._changed.set()
        self.send(orders_with(event, self.living()))
        if self._copies is not None:
            self._copies.said()

    def _bind_when_complete(self) -> None:
        if not self._generation_is_due() or self.state.stop or self.roll.awaited or not can_start(self.state):
            return
        hosts = [mailbox.host() for mailbox in staying(self.state, self.living()).values()]
        try:
            outline = outline_for(self.outline, self.state, hosts)
            self.plan = bind(outline, hosts, run=self.run, generation=self.state.generation + 1)
        except PhalanxError as wrong:
            self.fail_to_bind(wrong)
            return
        self._records.write_plan(self.plan)  # before the event: a lead that takes over finds it, or binds anew
        for event in bound_events(self.plan, self._clock()):
            self.say(event)
        self.send(self._briefed(self.plan).orders)

    def _generation_is_due(self) -> bool:
        """The first one waits for every host, and with fewer than all of them until the start deadline."""
        restart = self.state.restart
        if restart is None:
            late = self._clock() >= self.state.started + self.outline.policies.health.start
            all_there = len(self.roll.boxes) >= self.outline.hosts and is_complete(self.state)
            return self.state.phase is RunPhase.JOINING and (all_there or late)
        return self.state.phase is RunPhase.RESTARTING and self._clock() >= restart.at

    def fail_to_bind(self, wrong: PhalanxError) -> None:
        """The run ends: no generation can be placed."""
        for event in unbound_events(wrong, self.state, self._clock()):
            self.say(event)

    def _go_when_prepared(self) -> None:
        plan = self.plan
        if plan is None or plan.generation in self._went or not may_start(self.state, plan.outline.policies.preflight):
            return
        orders = go_orders(plan)
        if all((box := self.roll.boxes.get(host)) and box.prepared >= plan.generation for host in orders):
            self._went.add(plan.generation)
            self.send(orders)

    def _start_attempts(self) -> None:
        """Tasks that come back alone, once they are due."""
        if self.plan is None or self.state.stop is not None:
            return
        due = self._attempts.take_due(self.state, self._clock(), self.roll.boxes)
        for host, order in attempt_orders(self.plan, due) if due else ():
            self.roll.boxes[host].put(order)

    def _stop(self, action: Stop) -> None:
        now = self._clock()
        self.say(
            ev.StopOrdered(
                time=now, generation=self.state.generation, tasks=action.tasks, grace=action.grace, reason=action.reason
            )
        )
        for task in self._attempts.unordered(self.state):
            if task.id in action.tasks and task.host is not None:
                self.say(never_ran(task, task.host, now))
        self.send(task_orders(self.state, "stop", action.tasks, action.grace))

    def _is_prepared(self, mailbox: Mailbox, message: Poll | Report) -> None:
        self._records.measured(message, self._clock())
        if mailbox.is_prepared(message.prepared, message.next_ports):
            self._changed.set()

    async def _rest(self, wake: float | None) -> None:
        delay = None if wake is None else max(0.001, wake - self._clock())  # a timer ends a little early at times
        try:
            async with asyncio.timeout(delay):
                await self._changed.wait()
        except TimeoutError:
            return

    async def _dismiss(self) -> None:
        """Tell every agent to leave, and wait a moment until each has heard it."""
        deadline = self._clock() + PATIENCE
        for mailbox in self.living().values():
            mailbox.put(farewell(self.state))
        while self._clock() < deadline and (self.roll.awaited or not all(box.left for box in self.living().values())):
            self._changed.clear()
            await self._rest(deadline)

    def living(self) -> dict[int, Mailbox]:
        """Those of the hosts that are expected to answer."""
        return self.roll.living(self.state)

    def send(self, orders: Mapping[int, Order]) -> None:
        """Each to its host, as far as that lives."""
        for host in self.living().keys() & orders.keys():
            self.roll.boxes[host].put(orders[host])

    def _briefed(self, plan: Plan) -> Briefs:
        if self._briefs is None or self._briefs.plan is not plan:
            self._briefs = Briefs(plan)
        return self._briefs

    def _check(self) -> None:
        """Raises RefusedError or ResignedError where this lead ends before its run."""
        self._majority.check()
        self._handover.check()

    def _box(self, message: Poll | Report | Copy) -> Mailbox:
        self._check()
        return self.roll.box(message.host, message.instance, self.state)
