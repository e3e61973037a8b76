"""Hosts that share no folder: the next lead goes by the copy its host has kept, and a network that falls apart has one
lead that gives orders. The real protocol, in virtual time; every host has its own records.
"""

from __future__ import annotations

import asyncio
import dataclasses
import json
from collections.abc import Callable, Mapping

import hypothesis.strategies as st
import pytest
from hypothesis import HealthCheck, given, settings

from phalanx import events as ev
from phalanx.agent.link import LeadGoneError, Link
from phalanx.agent.succession import Succession
from phalanx.agent.understudy import Understudy
from phalanx.decide.quorum import LEASE, step_apart
from phalanx.lead.app import App
from phalanx.lead.deposed import DeposedError
from phalanx.lead.lead import PATIENCE, Lead
from phalanx.plan.plan import Plan
from phalanx.plan.policies import Policies, Restart
from phalanx.plan.wire import from_wire
from phalanx.protocol.client import LeadClient
from phalanx.protocol.messages import Order
from phalanx.protocol.signing import RefusedError, RunKey
from phalanx.protocol.transport import Answer, LeadSilentError
from phalanx.records.past import past_of
from phalanx.states import RunPhase, RunState, fold_all
from simulated import AppTransport, MemoryRecords, SimulatedAgent, outline, virtual_clock


class MemoryBook:
    """A copy book without a disk."""

    def __init__(self, island: Island) -> None:
        self.island = island
        self.size = self.plan = 0
        self.over = False
        self.lines, self.text = "", ""
        self.whole: tuple[str, str] | None = None

    def begin(self) -> None:
        self.lines, self.text, self.size, self.plan = "", "", 0, 0

    def add(self, text: str, *, plan: str = "", generation: int = 0, whole: bool) -> None:
        if plan:
            self.text, self.plan = plan, generation
        self.lines += text
        self.size += len(text.encode())
        if whole or self.whole is not None:
            self.whole = (self.lines, self.text)

    def hand_over(self) -> bool:
        if self.whole is None or self.over:
            return False
        lines, plan = self.whole
        records = self.island.records
        records.records = [ev.Record.from_json(json.loads(line)) for line in lines.splitlines()]
        records.plan = from_wire(Plan, json.loads(plan)) if plan else None
        self.over = True
        return True


class Cable:
    """An agent's way to whoever leads at an address. What the network does not let through hangs."""

    def __init__(self, island: Island) -> None:
        self.island, self.to = island, "n0:1"

    def turn_to(self, address: str) -> None:
        self.to = address

    async def call(self, method: str, path: str, headers: Mapping[str, str], body: bytes) -> Answer:
        sea, number = self.island.sea, self.island.number
        there = sea.islands[int(self.to[1:].partition(":")[0])]
        if not sea.reach(number, there.number):
            await asyncio.Event().wait()
        if there.asgi is None or there.dead:
            raise LeadSilentError("refused")
        answer = asyncio.ensure_future(AppTransport(there.asgi, host="lead:1").call(method, path, headers, body))
        answer.add_done_callback(lambda done: done.cancelled() or done.exception())
        asked = there.asgi
        while not answer.done():
            storm = asyncio.ensure_future(sea.weather.wait())
            await asyncio.wait({answer, storm}, return_when=asyncio.FIRST_COMPLETED)
            storm.cancel()
            if there.asgi is not asked or there.dead:
                answer.cancel()
                raise LeadSilentError("hung up")
            if not sea.reach(number, there.number):
                await asyncio.Event().wait()
        return answer.result()


class Island:
    """One host: its agent, its carrier, its own records."""

    def __init__(self, sea: Sea, number: int) -> None:
        self.sea, self.number = sea, number
        self.address, self.spent, self.done, self.dead = f"n{number}:1", False, False, False
        self.records = MemoryRecords()
        self.lead: Lead | None = None
        self.asgi = None
        self.leading: asyncio.Task[RunState] | None = None
        self.orders: list[tuple[float, Order]] = []
        self.over: float | None = None
        self.why = ""
        cable = Cable(self)
        agent = self.agent = SimulatedAgent(sea, number)
        client = LeadClient(cable, sea.key, clock=virtual_clock)
        join = dataclasses.replace(agent.link._join, lead=self.address)
        self.book = MemoryBook(self)

        async def at_once(work: Callable[[], None]) -> None:
            work()

        self.understudy = Understudy(client, self.book, instance=join.instance, host=number, away=at_once)
        succession = Succession(
            self,
            lead="n0:1",
            turn_to=cable.turn_to,
            rule=lambda: None,
            beat=lambda: None,
            understudy=self.understudy,
            clock=sea.now,
        )
        agent.link = Link(
            client, join, self.obey, patience=LEASE, clock=sea.now, wall=agent.wall, succession=succession
        )

    def obey(self, order: Order) -> None:
        self.orders.append((self.sea.now(), order))
        self.agent._obey(order)

    # What succession asks of a carrier

    @property
    def carries(self) -> bool:
        return self.leading is not None and not self.leading.done()

    def end_silent(self, epoch: int) -> None:
        del epoch
        self.lead_dies()
        self.take_over(self.lead.epoch + 1)

    def take_over(self, epoch: int) -> None:
        past = past_of(list(self.records.records), self.records.plan)
        self.lead = Lead(
            self.sea.outline,
            run="r1",
            epoch=epoch,
            records=self.records,
            past=past,
            clock=virtual_clock,
            fenced=False,
            address=self.address,
        )
        self.sea.epochs.append(self.lead.epoch)
        self.asgi = App(self.lead, self.sea.key, hosts=frozenset({"lead:1"}), clock=virtual_clock).asgi()
        self.leading = asyncio.ensure_future(self.lead.run_until_ended())
        self.leading.add_done_callback(self.lead_has_ended)

    def lead_has_ended(self, task: asyncio.Task[RunState]) -> None:
        if not task.cancelled():
            assert task.exception() is None or isinstance(task.exception(), DeposedError)
            self.asgi, self.spent, self.done = None, True, task.exception() is None
            self.sea.storm()

    def lead_dies(self) -> None:
        """Only its process: its host starts the next."""
        assert self.leading is not None
        self.leading.cancel()
        self.records = self.records.after(self.records)
        self.asgi = None
        self.sea.storm()

    def sinks(self) -> None:
        """The whole host is gone."""
        self.dead = True
        self.agent.dead = True
        self.agent.tasks.clear()
        if self.carries:
            self.lead_dies()
        for task in self.running:
            task.cancel()
        self.over = self.sea.now()

    def start(self) -> None:
        self.running = [asyncio.ensure_future(self.live()), asyncio.ensure_future(self.understudy.run())]

    async def live(self) -> None:
        try:
            await self.agent.link.run()
        except* (LeadGoneError, RefusedError) as group:
            self.why = str(group.exceptions[0])
        self.agent.tasks.clear()
        self.agent.dead = True
        self.over = self.sea.now()


class Sea:
    """All hosts, and who reaches whom."""

    def __init__(self, hosts: int) -> None:
        self.outline = outline(workers=hosts, hosts=hosts, fewest=1, policies=Policies(restart=Restart(max=20)))
        self.run, self.key, self.asgi = "r1", RunKey.new(), None
        self.parts: tuple[frozenset[int], ...] = (frozenset(range(hosts)),)
        self.weather = asyncio.Event()
        self.epochs: list[int] = []  # of every lead that ever was
        self.islands = [Island(self, number) for number in range(hosts)]
        self.islands[0].take_over(1)
        for island in self.islands:
            island.start()

    def now(self) -> float:
        return asyncio.get_running_loop().time()

    def reach(self, one: int, other: int) -> bool:
        return one == other or any(one in part and other in part for part in self.parts)

    def storm(self) -> None:
        self.weather.set()
        self.weather = asyncio.Event()

    def falls_into(self, *parts: set[int]) -> None:
        self.parts = tuple(map(frozenset, parts))
        self.storm()

    def leads(self) -> list[Lead]:
        """Those that live."""
        return [island.lead for island in self.islands if island.carries and island.lead is not None]

    async def until(self, true: Callable[[], bool], *, within: float = 120.0) -> None:
        async with asyncio.timeout(within):
            while not true():
                await asyncio.sleep(0.05)

    async def watch(self, seconds: float) -> None:
        """Let the time pass, in which no two leads may decide at once."""
        until = self.now() + seconds
        while self.now() < until:
            assert sum(lead._majority.there(lead.roll, lead.state, virtual_clock()) for lead in self.leads()) <= 1
            await asyncio.sleep(1.0)

    def runs(self, number: int, generation: int) -> bool:
        """Whether that host's lead has that generation running."""
        island = self.islands[number]
        state = island.lead.state if island.carries and island.lead is not None else None
        return state is not None and (state.phase, state.generation) == (RunPhase.RUNNING, generation)

    def check(self) -> None:
        """What must hold of every history."""
        assert len(set(self.epochs)) == len(self.epochs), "two leads of one epoch"
        clusters: dict[int, set[str]] = {}
        for island in self.islands:
            epochs = [order.epoch for _, order in island.orders]
            assert epochs == sorted(epochs)
            for _, order in island.orders:
                if order.kind == "prepare":
                    clusters.setdefault(order.generation, set()).add(order.head)
        assert all(len(heads) == 1 for heads in clusters.values()), "two clusters of one generation"
        for island in self.islands:
            records = island.records.records
            assert [record.seq for record in records] == list(range(1, len(records) + 1))
            if island.lead is not None:
                assert fold_all(records) == island.lead.state

    async def ends_well(self, number: int) -> None:
        """The tasks of that lead end, and its run with them."""
        island = self.islands[number]
        for name, task in island.lead.state.tasks.items():
            if task.host is not None:
                self.islands[task.host].agent.exit(name)
        assert (await island.leading).phase is RunPhase.SUCCEEDED
        self.check()


async def sea_of(hosts: int) -> Sea:
    sea = Sea(hosts)
    await sea.until(lambda: sea.runs(0, 1))
    await asyncio.sleep(4)  # the copies are whole
    return sea


pytestmark = pytest.mark.looptime


@pytest.mark.parametrize("lost", [1, 2])
async def test_when_the_hosts_before_it_are_lost_the_next_one_leads_by_its_copy(lost):
    sea = await sea_of(5)
    begun = sea.now()
    for number in reversed(range(lost)):
        sea.islands[number].sinks()
    await sea.until(lambda: sea.runs(lost, 2))
    assert len(sea.leads()) == 1
    heir = sea.islands[lost]
    assert sea.now() - begun < 2 * LEASE + lost * step_apart(LEASE) + 5
    lost_hosts = [record.event.host for record in heir.records.records if isinstance(record.event, ev.HostLost)]
    assert lost_hosts == list(range(lost))
    assert {record.epoch for record in heir.records.records} == {1, heir.lead.epoch}
    await sea.ends_well(lost)


async def test_a_lead_whose_process_dies_has_its_successor_on_its_own_host():
    sea = await sea_of(3)
    sea.islands[0].lead_dies()
    await asyncio.sleep(1.0)
    sea.islands[0].take_over(2)  # the carrier has seen it die
    await asyncio.sleep(60)
    assert sea.runs(0, 1)
    assert len(sea.leads()) == 1
    await sea.ends_well(0)


async def test_cut_off_from_most_hosts_the_lead_ends_and_they_go_on_under_another():
    sea = await sea_of(5)
    sea.falls_into({0, 1}, {2, 3, 4})
    await sea.until(lambda: sea.runs(2, 2))
    old, new = sea.islands[0], sea.islands[2]
    went = max(when for when, order in new.orders if order.kind == "go")
    assert not sea.islands[0].carries
    for island in sea.islands[:2]:
        assert island.over < went, "both sides have trained at once"
        assert "2 of 5 hosts" in island.why
    assert not any(isinstance(record.event, ev.HostLost) for record in old.records.records)
    await sea.ends_well(2)


async def test_cut_off_from_few_hosts_the_lead_goes_on_and_they_end_their_tasks():
    sea = await sea_of(5)
    sea.falls_into({0, 1, 2}, {3, 4})
    await sea.until(lambda: sea.runs(0, 2))
    await sea.until(lambda: all(sea.islands[number].over is not None for number in (3, 4)))
    await asyncio.sleep(PATIENCE + 1)
    assert [lead.epoch for lead in sea.leads()] == [1]
    sea.falls_into(set(range(5)))
    await asyncio.sleep(60)
    assert sea.runs(0, 2)
    await sea.ends_well(0)


async def test_when_a_network_that_fell_apart_heals_in_time_nothing_has_happened():
    sea = await sea_of(5)
    sea.falls_into({0, 1}, {2, 3, 4})
    await asyncio.sleep(5)
    sea.falls_into(set(range(5)))
    await asyncio.sleep(120)
    assert sea.runs(0, 1)
    assert len(sea.leads()) == 1
    await sea.ends_well(0)


async def test_of_two_hosts_the_second_alone_does_not_lead_and_says_why():
    sea = await sea_of(2)
    sea.islands[0].sinks()
    await sea.until(lambda: sea.islands[1].over is not None)
    assert "1 of 2 hosts" in sea.islands[1].why
    await asyncio.sleep(PATIENCE + 1)
    assert not sea.leads()
    sea.check()


async def test_a_generation_that_only_its_agents_know_is_not_bound_a_second_time():
    """The heir's copy is older than the last order: whoever has carried that order out cannot be told another one."""
    sea = await sea_of(3)
    for island in sea.islands[1:]:
        island.understudy.wanted(yes=False)
        island.understudy._client.copy = _never
    await asyncio.sleep(4)
    sea.islands[2].agent.exit(next(iter(sea.islands[2].agent.tasks)), code=1)
    await sea.until(lambda: sea.runs(0, 2))
    sea.islands[0].sinks()
    await asyncio.sleep(90)
    sea.check()
    for island in sea.islands[1:]:
        assert "has made ready a generation" in island.why or "1 of 3 hosts" in island.why or "0 of 3" in island.why


async def _never(message: object) -> None:
    raise LeadSilentError("cut")


def falls_into_two(sea: Sea, data: st.DataObject) -> None:
    side = data.draw(st.sets(st.integers(0, len(sea.islands) - 1)), label="side")
    sea.falls_into(side, set(range(len(sea.islands))) - side)


def heals(sea: Sea, data: st.DataObject) -> None:
    del data
    sea.falls_into(set(range(len(sea.islands))))


def one_sinks(sea: Sea, data: st.DataObject) -> None:
    island = sea.islands[data.draw(st.integers(0, len(sea.islands) - 1), label="host")]
    if not island.dead:
        island.sinks()


def a_lead_dies(sea: Sea, data: st.DataObject) -> None:
    del data
    for island in [one for one in sea.islands if one.carries][:1]:
        island.lead_dies()
        island.take_over(island.lead.epoch + 1)


@settings(max_examples=20, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
async def test_whatever_falls_apart_two_leads_never_decide_at_once_nor_bind_one_generation_twice(data):
    sea = await sea_of(data.draw(st.integers(2, 6), label="hosts"))
    for _ in range(data.draw(st.integers(1, 4), label="moments")):
        happens = data.draw(st.sampled_from([falls_into_two, heals, one_sinks, a_lead_dies]), label="what")
        happens(sea, data)
        await sea.watch(data.draw(st.sampled_from([0.3, 3.0, 8.0, 12.0, 20.0, 60.0]), label="seconds"))
    await sea.watch(70)
    sea.check()
    assert len(sea.leads()) <= 1
    for island in sea.islands:
        if island.carries:
            island.lead_dies()
        for task in island.running:
            task.cancel()


async def test_a_lead_whose_host_is_taken_away_hands_over_and_no_silence_is_waited_for():
    sea = await sea_of(4)
    begun = sea.now()
    sea.islands[0].lead.people.withdraw(0, by="Kubernetes")
    await sea.until(lambda: sea.runs(1, 2))
    assert sea.now() - begun < LEASE / 2
    assert sea.epochs == [1, 100]
    assert sea.islands[0].why == ""  # dismissed, not disowned
    assert {task.host for task in sea.islands[1].lead.state.tasks.values()} == {1, 2, 3}
    assert not [record for record in sea.islands[1].records.records if isinstance(record.event, ev.HostLost)]
    await sea.ends_well(1)


async def test_where_the_named_successor_is_gone_as_well_the_next_one_has_its_turn():
    sea = await sea_of(4)
    sea.islands[0].lead.people.withdraw(0, by="Kubernetes")
    sea.islands[1].sinks()
    await sea.until(lambda: sea.runs(2, 2) or sea.runs(2, 3))
    assert len(sea.leads()) == 1
    await sea.ends_well(2)


async def test_two_hosts_that_are_taken_away_at_once_hand_over_to_one_that_stays():
    sea = await sea_of(4)
    for host in (0, 1):
        sea.islands[0].lead.people.withdraw(host, by="Kubernetes")
    await sea.until(lambda: any(sea.runs(2, generation) for generation in (2, 3)))
    await sea.ends_well(2)


@settings(max_examples=10, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
async def test_hosts_that_are_taken_away_and_lost_at_any_time_leave_one_lead_and_one_cluster(data):
    sea = await sea_of(5)
    for _ in range(3):
        await asyncio.sleep(data.draw(st.sampled_from([0.0, 0.3, 1.0, 4.0, 12.0, 30.0])))
        there = [island for island in sea.islands if island.over is None]
        leads = [island for island in there if island.carries and island.lead is not None]
        if len(there) <= 2:
            break
        host = data.draw(st.sampled_from([island.number for island in there]))
        if data.draw(st.booleans()) and leads:
            leads[-1].lead.people.withdraw(host, by="Kubernetes")
        else:
            sea.islands[host].sinks()
    await asyncio.sleep(120)
    sea.check()
    assert len(sea.leads()) <= 1
