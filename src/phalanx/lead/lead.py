"""The lead: turns messages into events, events into state, and the decisions about the state into orders."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping

from phalanx import events as ev
from phalanx.decide.elastic import can_start
from phalanx.decide.hang import Dump
from phalanx.decide.next_step import Say, Stop, Wake, next_step
from phalanx.decide.preflight import may_start
from phalanx.errors import PhalanxError, PlaceError
from phalanx.lead.deposed import DeposedError
from phalanx.lead.generation import Briefs, attempt_orders, bound_events, go_orders, task_orders
from phalanx.lead.hostclock import on_our_clock
from phalanx.lead.lease import Lease, ticks
from phalanx.lead.leaving import let_go, staying
from phalanx.lead.line import Line
from phalanx.lead.mailbox import Mailbox
from phalanx.lead.opening import joined_event, never_ran, opening_events, unbound_events
from phalanx.lead.records import Records
from phalanx.names import TaskId
from phalanx.plan.bind import bind
from phalanx.plan.outline import Outline
from phalanx.plan.plan import Plan
from phalanx.plan.size import check_size, resized
from phalanx.plan.wire import WireError
from phalanx.protocol.messages import VERSION, Join, Joined, Order, Orders, Poll, Report, Taken
from phalanx.protocol.signing import RefusedError
from phalanx.records.past import Past
from phalanx.states import RunPhase, RunState, fold
from phalanx.taskstate import TaskPhase, TaskState

#: Seconds in which agents may come for their dismissal.
PATIENCE = 2.0

#: What an agent may put into the records; everything else is the lead's to say.
_FROM_AGENTS = (ev.TaskEvent, ev.HostChecked, ev.Noted, ev.StopRequested, ev.HostLost, ev.StandbysReady)


class Lead:
    """One run's lead. All methods belong to one event loop.

    It decides nothing: `decide.next_step` is asked after every event and at every alarm, and this class carries out.
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
    ) -> None:
        """`clock` gives Unix seconds; `past` is what the leads before this one have left."""
        past = past or Past()
        self.outline, self.run, self.epoch = outline, run, max(epoch, past.state.epoch + 1)
        self.state, self.plan = past.state, past.plan
        self._records, self._clock = records, clock
        self._mailboxes: dict[int, Mailbox] = {}
        self._line = Line()
        self._briefs: Briefs | None = None
        self._past = past
        #: Hosts that an earlier lead knew: until when their agents may join again.
        self._lease = Lease(outline.hosts, clock())
        self._awaited = {host.id: clock() + self._lease.seconds for host in past.state.hosts.values() if host.living}
        self._changed = asyncio.Event()
        self._went: set[int] = set()
        self._attempted: set[tuple[int, TaskId, int]] = set()
        self._deposed = False

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
        known = self._mailboxes.get(message.host.id)
        if known is None or known.join.instance != message.instance:
            self._know(message)
        taken, line = self._mailboxes[message.host.id].taken, self._heirs()
        return Joined(epoch=self.epoch, lease=self._lease.seconds, taken=taken, now=self._clock(), line=line)

    def _know(self, message: Join) -> None:
        """An agent's first word to this lead; perhaps not its first to the run. Another one may replace a lost one."""
        now, host = self._clock(), message.host
        before = self.state.hosts.get(host.id)
        same = before is not None and before.joined.instance == message.instance
        if before is not None and before.living and not same:
            raise RefusedError(f"host {host.id} has an agent already")
        if before is not None and not before.living and same:
            raise RefusedError(f"host {host.id} was given up: {before.lost}")
        mailbox = self._mailboxes[host.id] = Mailbox(message, epoch=self.epoch, heard=now, lease=self._lease.seconds)
        if not same:
            self._say(joined_event(message, now))
        self._line.joins(host.id, message.lead)
        if same:
            self._take_over(mailbox)

    def _take_over(self, mailbox: Mailbox) -> None:
        """Tell an agent of an earlier lead again what holds now: it knows by itself what it has done of that."""
        host = mailbox.join.host.id
        self._awaited.pop(host, None)
        mailbox.taken = self._past.taken.get(host, 0)
        mailbox.is_prepared(mailbox.join.prepared, mailbox.join.next_ports)
        if self.state.phase.terminal:
            mailbox.put(Order(seq=0, epoch=0, kind="leave"))
        elif self.plan is not None and self.plan.generation == self.state.generation:
            for order in self._briefed(self.plan).again(host, self.state, self._clock(), line=self._heirs()):
                mailbox.put(order)
        self._changed.set()

    async def orders(self, message: Poll) -> Orders:
        """Orders after the number the agent has; waits for one to come up."""
        mailbox = self._mailbox(message.host, message.instance)
        mailbox.polled(message.steps, self._clock())
        self._is_prepared(mailbox, message)
        found = await mailbox.after(message.after, min(message.wait, self._lease.wait))
        mailbox.heard(self._clock())
        if mailbox.left:
            self._changed.set()
        await self.settle()
        return Orders(orders=found)

    async def settle(self) -> None:
        """What an answer rests on is written before it goes out: a lead that takes over knows as much.

        Raises DeposedError where another lead has taken over: then nothing goes out.
        """
        try:
            await self._records.settle()
        except DeposedError:
            self.depose()
            raise

    def hung_up(self, message: Poll) -> None:
        """The agent's poll broke off before it was answered."""
        mailbox = self._mailboxes.get(message.host)
        if mailbox is not None and not mailbox.left:
            mailbox.hung_up(self._clock(), patience=self._lease.again)
            self._changed.set()

    def report(self, message: Report) -> Taken:
        """Take an agent's events into the records, each once, in its order. Raises WireError for one that is none."""
        mailbox = self._mailbox(message.host, message.instance)
        mailbox.heard(self._clock())
        if message.events and message.first > mailbox.taken + 1:
            lost = f"{mailbox.taken + 1} to {message.first - 1}"
            self._say(ev.Noted(time=self._clock(), host=message.host, message=f"its agent's words {lost} are lost"))
        for number, data in enumerate(message.events, start=message.first):
            if number <= mailbox.taken:
                continue
            event = on_our_clock(ev.event_from_json(data), message.now, self._clock())
            if not isinstance(event, _FROM_AGENTS) or getattr(event, "host", message.host) not in (message.host, None):
                raise WireError(f"host {message.host} may not say {type(event).__name__}")
            mailbox.taken = number
            if self.state.stop is None or not isinstance(event, ev.StopRequested):  # one launcher, many agents
                self._say(event, told=(message.host, number))
        self._is_prepared(mailbox, message)
        return Taken(upto=mailbox.taken)

    def request_stop(self, *, by: str, hard: bool) -> None:
        """Somebody wants the run to end. A second request may be harder, never softer."""
        if self.state.stop is None or (hard and not self.state.stop.hard):
            self._say(ev.StopRequested(time=self._clock(), by=by, hard=hard))

    def request_scale(self, workers: int, *, by: str) -> None:
        """Somebody wants so many workers from now on. Raises InputError where the job does not take them."""
        check_size(self.state.elastic, workers)
        self._say(ev.ScaleRequested(time=self._clock(), by=by, workers=workers))

    def order_stacks(self, tasks: tuple[TaskId, ...], *, by: str) -> tuple[TaskId, ...]:
        """These tasks are to write what their threads do; returns those of them that run at all."""
        running = tuple(name for name in tasks if self.state.tasks[name].phase is TaskPhase.RUNNING)
        self._say(ev.StacksOrdered(time=self._clock(), generation=self.state.generation, tasks=running, by=by))
        self._send(task_orders(self.state, "stacks", running))
        return running

    def _send(self, orders: Mapping[int, Order]) -> None:
        for host in self.living().keys() & orders.keys():
            self._mailboxes[host].put(orders[host])

    def withdraw(self, host: int, *, by: str) -> None:
        """Somebody takes a host away; idempotent."""
        if host in self.living() and not self.state.hosts[host].leaving:
            self._say(ev.HostWithdrawn(time=self._clock(), host=host, by=by))

    def lose(self, host: int, reason: str) -> None:
        """The launcher saw this host's agent end. One that had not joined yet never will."""
        known = self.state.hosts.get(host)
        if known is not None and known.living and not self.state.phase.terminal:  # agents leave at the end
            self._awaited.pop(host, None)
            self._say(ev.HostLost(time=self._clock(), host=host, reason=reason))
        elif known is None and self.state.phase is RunPhase.JOINING and not self.state.stop:
            hint = f"see agents/{host}.log in the run's folder"
            self._fail_to_bind(PlaceError(f"host {host} cannot join: {reason}", hint=hint))

    # What it does by itself --------------------------------------------------------------------------------------

    async def run_until_ended(self) -> RunState:
        """Lead the run to its end, tell the agents to leave, and return how it ended. Raises DeposedError."""
        if not self.state.phase.terminal:
            for event in opening_events(self.outline, self.run, self._clock(), dropped=self._past.dropped):
                self._say(event)
        ticking = asyncio.ensure_future(ticks(self._excuse, self._clock))
        try:
            await self._lead()
        finally:
            ticking.cancel()
        await self.settle()  # who is told to leave never comes back
        self._records.write_report(self.state, self.plan)
        await self._dismiss()
        return self.state

    async def _lead(self) -> None:
        while not self.state.phase.terminal:
            self._changed.clear()
            if self._deposed:
                raise DeposedError(f"this lead's epoch {self.epoch} is over")
            wake = self._advance()
            if not self.state.phase.terminal:
                await self._rest(wake)

    def _advance(self) -> float | None:
        """Do all that can be done now; say when to look again."""
        self._lose_silent_hosts()
        for event in let_go(self.state, self.living(), self._clock()):
            self._say(event)
        self._bind_when_complete()
        self._go_when_prepared()
        self._start_attempts()
        while True:
            actions = next_step(self.state, self.outline.policies, self._clock())
            wakes = [action.at for action in actions if isinstance(action, Wake)]
            for action in actions:
                match action:
                    case Say():
                        self._say(action.event)
                    case Stop():
                        self._stop(action)
                    case Dump():
                        self.order_stacks(action.tasks, by="phalanx")
            if len(wakes) == len(actions):
                leases = (box.deadline for box in self.living().values())
                return min([*wakes, *leases, *self._awaited.values()], default=None)

    def _say(self, event: ev.Event, told: tuple[int, int] | None = None) -> None:
        record = ev.Record(seq=self.state.seq + 1, epoch=self.epoch, event=event, told=told)
        try:
            self._records.append(record)
        except DeposedError:
            self.depose()
            raise
        self.state = fold(self.state, record)
        self._changed.set()

    def _lose_silent_hosts(self) -> None:
        now = self._clock()
        self._excuse(now)
        for host, mailbox in self.living().items():
            if now >= mailbox.deadline:
                self._say(ev.HostLost(time=now, host=host, reason="its agent no longer answers"))
        for host, deadline in list(self._awaited.items()):
            if now >= deadline:
                del self._awaited[host]
                self._say(ev.HostLost(time=now, host=host, reason="its agent has not joined the new lead"))

    def _excuse(self, now: float) -> None:
        """What hosts have said while this process did not listen is still on its way."""
        if stuck := self._lease.tick(now):
            for mailbox in self._mailboxes.values():
                mailbox.excuse(stuck)
            self._awaited = {host: deadline + stuck for host, deadline in self._awaited.items()}

    def _bind_when_complete(self) -> None:
        if not self._generation_is_due() or self.state.stop or self._awaited or not can_start(self.state):
            return
        hosts = [mailbox.host() for mailbox in staying(self.state, self.living()).values()]
        try:
            self.plan = bind(self._outline_for(len(hosts)), hosts, run=self.run, generation=self.state.generation + 1)
        except PhalanxError as wrong:
            self._fail_to_bind(wrong)
            return
        self._records.write_plan(self.plan)  # before the event: a lead that takes over finds it, or binds anew
        for event in bound_events(self.plan, self._clock()):
            self._say(event)
        for host, order in self._briefed(self.plan).all(line=self._heirs()).items():
            self._mailboxes[host].put(order)

    def _outline_for(self, hosts: int) -> Outline:
        """The job in the size that these hosts take."""
        size = self.state.elastic.size(hosts, self.state.asked) if self.state.elastic else None
        return self.outline if size is None else resized(self.outline, size)

    def _generation_is_due(self) -> bool:
        """The first one waits for every host, and with fewer than all of them until the start deadline."""
        restart = self.state.restart
        if restart is None:
            late = self._clock() >= self.state.started + self.outline.policies.health.start
            complete = len(self.living()) >= self.outline.hosts or late
            return self.state.phase is RunPhase.JOINING and complete
        return self.state.phase is RunPhase.RESTARTING and self._clock() >= restart.at

    def _fail_to_bind(self, wrong: PhalanxError) -> None:
        for event in unbound_events(wrong, self.state.generation, self._clock()):
            self._say(event)

    def _go_when_prepared(self) -> None:
        plan = self.plan
        if plan is None or plan.generation in self._went or not may_start(self.state, plan.outline.policies.preflight):
            return
        orders = go_orders(plan)
        if all((box := self._mailboxes.get(host)) and box.prepared >= plan.generation for host in orders):
            self._went.add(plan.generation)
            for host, order in orders.items():
                self._mailboxes[host].put(order)

    def _start_attempts(self) -> None:
        """Tasks that come back alone, at their old addresses, once they are due."""
        now, plan = self._clock(), self.plan
        if plan is None or self.state.stop is not None:
            return
        due = {task.id: task.attempt for task in self._unordered() if task.due is not None and task.due <= now}
        due = {task: attempt for task, attempt in due.items() if self.state.tasks[task].host in self._mailboxes}
        self._attempted |= {(plan.generation, task, attempt) for task, attempt in due.items()}
        for host, order in attempt_orders(plan, due) if due else ():
            self._mailboxes[host].put(order)

    def _unordered(self) -> list[TaskState]:
        """Attempts after the first that no agent has heard of yet."""
        return [
            task
            for task in self.state.tasks.values()
            if task.due is not None
            and task.phase is TaskPhase.WAITING
            and (task.generation, task.id, task.attempt) not in self._attempted
        ]

    def _stop(self, action: Stop) -> None:
        now = self._clock()
        self._say(
            ev.StopOrdered(
                time=now, generation=self.state.generation, tasks=action.tasks, grace=action.grace, reason=action.reason
            )
        )
        for task in self._unordered():
            if task.id in action.tasks and task.host is not None:
                self._say(never_ran(task, task.host, now))
        self._send(task_orders(self.state, "stop", action.tasks, action.grace))

    def _is_prepared(self, mailbox: Mailbox, message: Poll | Report) -> None:
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
            mailbox.put(Order(seq=0, epoch=0, kind="leave"))
        while self._clock() < deadline and (self._awaited or not all(box.left for box in self.living().values())):
            self._changed.clear()
            await self._rest(deadline)

    def living(self) -> dict[int, Mailbox]:
        """Those of the hosts that are expected to answer."""
        return {host: box for host, box in self._mailboxes.items() if self.state.hosts[host].living}

    def _heirs(self) -> tuple[str, ...]:
        return self._line.places(self._mailboxes, self.state.hosts)

    def _briefed(self, plan: Plan) -> Briefs:
        if self._briefs is None or self._briefs.plan is not plan:
            self._briefs = Briefs(plan)
        return self._briefs

    def _mailbox(self, host: int, instance: str) -> Mailbox:
        mailbox = self._mailboxes.get(host)
        if mailbox is None or mailbox.join.instance != instance:
            raise RefusedError(f"host {host} has not joined with this agent")
        if not self.state.hosts[host].living:
            raise RefusedError(f"host {host} was given up: {self.state.hosts[host].lost}")
        return mailbox
