"""A lead and any number of agents in one event loop: the real protocol, signed, without sockets or clocks."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping

from phalanx import events as ev
from phalanx.agent.link import Link
from phalanx.lead.app import App
from phalanx.lead.lead import Lead
from phalanx.names import TaskId
from phalanx.plan.checklist import Fact, Fault
from phalanx.plan.host import Host
from phalanx.plan.outline import Failure, Outline, Role, Strategy
from phalanx.plan.plan import Plan
from phalanx.plan.policies import Policies, Restart
from phalanx.plan.wire import to_wire
from phalanx.protocol.client import LeadClient
from phalanx.protocol.messages import VERSION, Join, Order, Poll, Report
from phalanx.protocol.signing import RunKey
from phalanx.protocol.transport import Answer, LeadSilentError
from phalanx.records.past import past_of
from phalanx.sample import TaskSample
from phalanx.states import RunState

#: Where virtual time starts, in Unix seconds.
DAWN = 1_000_000.0


def virtual_clock() -> float:
    """Unix seconds that follow the loop's own time."""
    return DAWN + asyncio.get_running_loop().time()


class MemoryRecords:
    """Keeps what a lead would write."""

    def __init__(self) -> None:
        self.records: list[ev.Record] = []
        self.plan: Plan | None = None
        self.report: RunState | None = None
        self.limit: int | None = None
        self.samples: list[TaskSample] = []
        self.dead = False

    @classmethod
    def after(cls, dead: MemoryRecords) -> MemoryRecords:
        """What a lead has left; nothing that it might still say is in it."""
        made = cls()
        made.records, made.plan = list(dead.records), dead.plan
        return made

    def append(self, record: ev.Record) -> None:
        if len(self.records) == self.limit:
            self.dead = True
            raise LeadSilentError("killed")
        self.records.append(record)

    def write_plan(self, plan: Plan) -> None:
        self.plan = plan

    def write_report(self, state: RunState, plan: Plan | None) -> None:
        self.report = state

    def measured(self, message: Poll | Report, now: float) -> None:
        self.samples += message.samples

    def seen(self, samples: object) -> None:
        return

    async def settle(self) -> None:
        return

    @property
    def size(self) -> int:
        return len(self._text())

    async def text(self, after: int, most: int) -> tuple[bytes, int]:
        lines = self._text()[after:].splitlines(keepends=True)
        text = b"".join(lines[: max(1, most // 1000)])
        return text, self.size - after - len(text)

    def plan_after(self, generation: int) -> tuple[str, int]:
        plan = self.plan
        newer = plan is not None and plan.generation > generation
        return (json.dumps(to_wire(plan)), plan.generation) if newer else ("", 0)

    def _text(self) -> bytes:
        return b"".join(json.dumps(record.to_json()).encode() + b"\n" for record in self.records)


class AppTransport:
    """Calls the lead's ASGI app straight; counts, and can be cut like a cable."""

    def __init__(self, app: Callable[..., Awaitable[None]], host: str = "lead:1") -> None:
        self.app: Callable[..., Awaitable[None]] | None = app
        self.host = host
        self.requests = 0
        self.bytes = 0
        self.cut = False
        self._cable, self._lost = asyncio.Event(), asyncio.Event()

    def break_off(self) -> None:
        """The process behind this end is dead: open requests hang up, and no new one comes."""
        self.cut = True
        self._cable.set()

    def lose_lead(self) -> None:
        """Nobody answers any more; who has asked learns that at once."""
        self.app = None
        self._lost.set()

    def find_lead(self, app: Callable[..., Awaitable[None]]) -> None:
        self.app, self._lost = app, asyncio.Event()

    async def call(self, method: str, path: str, headers: Mapping[str, str], body: bytes) -> Answer:
        if self.cut or self.app is None:
            raise LeadSilentError("cut")
        self.requests += 1
        self.bytes += len(body)
        scope = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": method,
            "path": path,
            "raw_path": path.encode(),
            "query_string": b"",
            "scheme": "http",
            "headers": [(b"host", self.host.encode()), *((k.encode(), v.encode()) for k, v in headers.items())],
        }
        incoming = [{"type": "http.request", "body": body, "more_body": False}]
        status, found, content = 0, {}, b""

        async def receive() -> dict[str, object]:
            if incoming:
                return incoming.pop()
            await self._cable.wait()
            return {"type": "http.disconnect"}

        async def send(message: dict) -> None:
            nonlocal status, found, content
            if message["type"] == "http.response.start":
                status = message["status"]
                found = {k.decode(): v.decode() for k, v in message["headers"]}
            else:
                content += message.get("body", b"")

        lost = self._lost
        serving, losing = asyncio.ensure_future(self.app(scope, receive, send)), asyncio.ensure_future(lost.wait())
        await asyncio.wait({serving, losing}, return_when=asyncio.FIRST_COMPLETED)
        losing.cancel()
        if lost.is_set():
            serving.cancel()
            serving.add_done_callback(_forget)
            raise LeadSilentError("the lead has died")
        try:
            serving.result()
        except LeadSilentError:  # killed in the middle
            self.lose_lead()
            raise
        if self.cut:
            raise LeadSilentError("cut")
        self.bytes += len(content)
        return Answer(status=status, headers=found, body=content)


def _forget(task: asyncio.Future) -> None:
    """What a killed process would have raised, nobody hears."""
    if not task.cancelled():
        task.exception()


class SimulatedAgent:
    """An agent whose tasks are a script of what happens to them."""

    def __init__(self, world: World, number: int, *, ports: int = 64, instance: str = "i") -> None:
        self.world, self.number = world, number
        self.transport = AppTransport(world.asgi)
        self.orders: list[Order] = []
        client = LeadClient(self.transport, world.key, clock=virtual_clock)
        base = 20_000 + 10 * (number % 1000)
        self.ports = tuple(range(base, base + ports))
        host = Host(
            id=number,
            name=f"n{number}",
            address=f"10.0.{number // 256}.{number % 256}",
            ports=self.ports,
        )
        join = Join(version=VERSION, run=world.run, instance=f"{instance}{number}", host=host, pid=1000 + number)
        self.ahead = 0.0  # how far its wall clock is wrong
        self.link = Link(
            client,
            join,
            self._obey,
            patience=10.0,
            clock=lambda: asyncio.get_running_loop().time(),
            wall=self.wall,
        )
        self.tasks: dict[TaskId, tuple[int, int]] = {}  # generation and attempt of what runs
        self.dead = False
        self.deaf = False  # takes no notice of TERM, as an MWMS worker
        self.mute = False  # its tasks never listen
        # What its preflight finds, and how many seconds it takes.
        self.looked: tuple[str, ...] = ("names-resolve", "peers-reachable")
        self.facts: tuple[Fact, ...] = ()
        self.faults: tuple[Fault, ...] = ()
        self.late = 0.0
        self.running: asyncio.Task[None] | None = None

    def wall(self) -> float:
        return virtual_clock() + self.ahead

    def start(self) -> None:
        self.running = asyncio.ensure_future(self.link.run())

    def die(self) -> None:
        """kill -9: no word more."""
        self.dead = True
        if self.running is not None:
            self.running.add_done_callback(_forget)
        self.transport.break_off()

    def exit(
        self, task: TaskId, *, code: int | None = 0, signal: int | None = None, said: tuple[str, ...] = ()
    ) -> None:
        if task not in self.tasks or self.dead:
            return
        generation, attempt = self.tasks.pop(task)
        self.link.say(
            ev.TaskExited(
                time=self.wall(),
                task=task,
                host=self.number,
                generation=generation,
                attempt=attempt,
                pid=1,
                code=code if signal is None else None,
                signal=signal,
                stopped=task in self._told,
                last_lines=said,
            )
        )

    _told: frozenset[TaskId] = frozenset()

    def about(self, task: TaskId) -> dict[str, object]:
        """What all events of a task that runs here have in common."""
        generation, attempt = self.tasks[task]
        return {"task": task, "host": self.number, "generation": generation, "attempt": attempt}

    def says(self, kind: type[ev.TaskEvent], task: TaskId, **more: object) -> None:
        """A task's own word: a step, a checkpoint."""
        self.link.say(kind(time=self.wall(), **self.about(task), **more))

    def _obey(self, order: Order) -> None:
        self.orders.append(order)
        if order.kind == "prepare":
            self._prepared = order
            if order.check is not None:
                checked = ev.HostChecked(
                    time=virtual_clock(),
                    host=self.number,
                    generation=order.generation,
                    seconds=0.1,
                    looked=self.looked,
                    facts=self.facts,
                    faults=self.faults,
                )
                asyncio.get_running_loop().call_later(self.late, self.link.say, checked)
            self.link.prepared(order.generation, tuple(port + 1000 * order.generation for port in self.ports))
        elif order.kind == "go":
            self._told -= {task.id for task in self._prepared.tasks}
            for task in self._prepared.tasks:
                if order.ids and task.id not in order.ids:
                    continue
                self.tasks[task.id] = (order.generation, task.attempt)
                about = self.about(task.id)
                self.link.say(ev.TaskStarted(time=self.wall(), **about, pid=1))
                if task.port and not self.mute:
                    self.link.say(ev.TaskListening(time=self.wall(), **about, port=task.port))
        elif order.kind == "stop":
            self._told |= set(order.ids)
            for task in order.ids:
                delay = order.grace if self.deaf else 0.0
                asyncio.get_running_loop().call_later(
                    delay, lambda task=task: self.exit(task, signal=9 if self.deaf else 15)
                )


class World:
    """One lead, its app and its agents."""

    def __init__(self, outline: Outline, *, run: str = "r1") -> None:
        self.run, self.key = run, RunKey.new()
        self.records = MemoryRecords()
        self.lead = Lead(outline, run=run, epoch=1, records=self.records, clock=virtual_clock)
        self.serve()
        self.agents = [SimulatedAgent(self, number) for number in range(outline.hosts)]
        self.leading: asyncio.Task[RunState] | None = None

    def serve(self) -> None:
        """Answer for the lead that there is now; agents started later find it."""
        self.asgi = App(self.lead, self.key, hosts=frozenset({"lead:1"}), clock=virtual_clock).asgi()

    def start(self) -> asyncio.Task[RunState]:
        for agent in self.agents:
            agent.start()
        self.leading = asyncio.ensure_future(self.lead.run_until_ended())
        return self.leading

    def lead_dies(self) -> None:
        """kill -9: it writes no word more, and every open request breaks off."""
        assert self.leading is not None
        self.leading.cancel()
        self.leading.add_done_callback(_forget)
        self.records = MemoryRecords.after(self.records)
        for agent in self.agents:
            agent.transport.lose_lead()

    def lead_dies_after(self, records: int) -> None:
        """At the very record, not a moment later; wait until `records.dead`."""
        self.records.limit = records

    def takes_over(self) -> asyncio.Task[RunState]:
        """The next lead, from the records of the last."""
        past = past_of(list(self.records.records), self.records.plan)
        outline = self.lead.outline
        epoch = self.lead.epoch + 1
        self.lead = Lead(outline, run=self.run, epoch=epoch, records=self.records, past=past, clock=virtual_clock)
        self.asgi = App(self.lead, self.key, hosts=frozenset({"lead:1"}), clock=virtual_clock).asgi()
        for agent in self.agents:
            agent.transport.find_lead(self.asgi)
        self.leading = asyncio.ensure_future(self.lead.run_until_ended())
        return self.leading

    def come(self, number: int) -> SimulatedAgent:
        """A host joins: a new one, or one that had been lost comes back as another process."""
        agent = SimulatedAgent(self, number, instance="again")
        self.agents[number:] = [agent, *self.agents[number + 1 :]]
        agent.start()
        return agent

    def agent_of(self, task: TaskId) -> SimulatedAgent:
        host = self.lead.state.tasks[task].host
        assert host is not None
        return self.agents[host]

    def exit(self, task: str, **how: object) -> None:
        name = TaskId.parse(task)
        self.agent_of(name).exit(name, **how)

    def says(self, kind: type[ev.TaskEvent], task: str, **more: object) -> None:
        name = TaskId.parse(task)
        self.agent_of(name).says(kind, name, **more)

    async def until(self, true: Callable[[RunState], bool], *, within: float = 60.0) -> None:
        """Wait in virtual time until the state says so."""
        async with asyncio.timeout(within):
            while not true(self.lead.state):
                await asyncio.sleep(0.01)

    def said(self, kind: type[ev.Event]) -> list[ev.Event]:
        return [record.event for record in self.records.records if isinstance(record.event, kind)]


def outline(
    *,
    workers: int = 2,
    chief: bool = False,
    ps: int = 0,
    evaluator: int = 0,
    hosts: int = 1,
    fewest: int | None = None,
    most: int | None = None,
    policies: Policies | None = None,
    dispatcher: Failure | None = None,
) -> Outline:
    """A small job; with a `dispatcher` outside the cluster, where it is said what its failure means."""
    counts = {"chief": int(chief), "worker": workers, "ps": ps, "evaluator": evaluator}
    return Outline(
        name="job",
        roles=tuple(
            Role(
                type=kind,
                count=n,
                command=("python", "train.py"),
                min=fewest if kind == "worker" else None,
                max=most if kind == "worker" else None,
            )
            for kind, n in counts.items()
            if n
        )
        + (
            (Role(type="dispatcher", count=1, command=("serve",), in_cluster=False, port=True, failure=dispatcher),)
            if dispatcher
            else ()
        ),
        strategy=Strategy.PS if ps else Strategy.MWMS,
        cwd="/work",
        hosts=hosts,
        policies=policies or Policies(restart=Restart(max=0)),
    )


__all__ = ["DAWN", "AppTransport", "MemoryRecords", "SimulatedAgent", "World", "outline", "virtual_clock"]
