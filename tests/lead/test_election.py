"""A lead whose host is lost has one successor, on the next host: the real protocol, in virtual time."""

from __future__ import annotations

import asyncio
import dataclasses
import tempfile
from pathlib import Path

import hypothesis.strategies as st
import pytest
from hypothesis import settings
from hypothesis.stateful import Bundle, RuleBasedStateMachine, initialize, invariant, rule

from phalanx import events as ev
from phalanx.agent.link import LeadGoneError
from phalanx.agent.succession import Succession
from phalanx.decide.quorum import LEASE, TURN
from phalanx.lead.app import App
from phalanx.lead.deposed import DeposedError
from phalanx.lead.keeper import Keeper
from phalanx.lead.lead import Lead
from phalanx.plan.host import Host
from phalanx.plan.policies import Policies, Restart
from phalanx.protocol.client import LeadClient
from phalanx.protocol.messages import VERSION, Join
from phalanx.protocol.signing import RefusedError, RunKey
from phalanx.protocol.transport import LeadSilentError
from phalanx.records import scribe
from phalanx.records.folder import RunFolder
from phalanx.records.leadfile import Rule, read_rule
from phalanx.records.reader import read_records
from phalanx.states import RunPhase, fold_all
from simulated import DAWN, AppTransport, World, outline

POLICIES = Policies(restart=Restart(max=3))


class Seat:
    """One agent's carrier: starts no process, but the world's next lead."""

    def __init__(self, town: Town, number: int) -> None:
        self.town, self.number = town, number
        self.address = f"n{number}:1"
        self.spent = self.done = False
        self.ended: list[float] = []

    @property
    def carries(self) -> bool:
        return self.town.seat == self.address

    def end_silent(self, epoch: int) -> None:
        if epoch >= self.town.lead.epoch:
            self.ended.append(self.town.now())
            self.town.lead_dies()
            self.town.takes_seat(self.address)

    def take_over(self, epoch: int) -> None:
        assert epoch > self.town.lead.epoch
        self.town.takes_seat(self.address)


class Town(World):
    """A world whose agents know who comes next. `shared`: whether they all see the run's folder."""

    def __init__(self, hosts: int, *, shared: bool = True) -> None:
        super().__init__(outline(workers=hosts, hosts=hosts, fewest=1, policies=POLICIES))
        self.seat, self.beating, self.last_beat = "n0:1", True, 0.0
        self.taken: list[tuple[str, float]] = []
        self.places = {self.seat: self.asgi}
        self.seats = [Seat(self, number) for number in range(hosts)]
        for agent, seat in zip(self.agents, self.seats, strict=True):
            agent.link._join = dataclasses.replace(agent.link._join, lead=seat.address)
            agent.link._succession = Succession(
                seat,
                lead=self.seat,
                turn_to=lambda address, agent=agent: agent.transport.find_lead(self.places.get(address)),
                rule=lambda: Rule(epoch=self.lead.epoch, address=self.seat, pid=1) if shared else None,
                beat=self.beat if shared else lambda: None,
                clock=self.now,
            )

    def now(self) -> float:
        return asyncio.get_running_loop().time()

    def beat(self) -> float:
        if self.beating:
            self.last_beat = self.now()
        return self.last_beat

    def host_is_lost(self, number: int) -> None:
        self.agents[number].die()
        self.agents[number].running.cancel()
        if self.seat == self.seats[number].address:
            self.beat()
            self.beating = False
            self.places.clear()
            self.lead_dies()

    def takes_seat(self, address: str) -> None:
        agents, self.agents = self.agents, []  # whom nobody tells: they have to find it
        self.takes_over()
        self.agents = agents
        self.seat, self.beating = address, True
        self.places = {address: self.asgi}
        self.taken.append((address, self.now()))


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine with other work is no disk that hangs."""
    monkeypatch.setattr(scribe, "SETTLE", 30.0)


def running(state) -> bool:
    return state.phase is RunPhase.RUNNING


@pytest.mark.looptime
@pytest.mark.parametrize("lost", [1, 2])
async def test_the_lowest_living_host_takes_over_at_its_turn_and_the_others_find_it(lost):
    town = Town(4)
    town.start()
    await town.until(running)
    await asyncio.sleep(2)
    begun = town.now()
    for number in reversed(range(lost)):
        town.host_is_lost(number)
    await town.until(lambda state: state.epoch == 2 and running(state) and state.generation == 2)
    assert [address for address, _ in town.taken] == [f"n{lost}:1"]
    assert town.taken[0][1] - begun == pytest.approx(LEASE + lost * TURN, abs=4)  # they had last heard of it before
    assert [event.host for event in town.said(ev.HostLost)] == list(range(lost))
    for name in town.lead.state.tasks:
        town.exit(str(name))
    await town.until(lambda state: state.phase is RunPhase.SUCCEEDED)
    assert fold_all(town.records.records) == town.lead.state


@pytest.mark.looptime
async def test_a_frozen_lead_is_ended_by_its_own_host_before_another_has_its_turn():
    town = Town(3)
    town.start()
    await town.until(running)
    await asyncio.sleep(1)

    async def frozen(scope, receive, send):
        await asyncio.Event().wait()

    town.beat()
    town.beating = False
    town.leading.cancel()
    town.places = {town.seat: frozen}
    for agent in town.agents:
        agent.transport.lose_lead()
        agent.transport.find_lead(frozen)
    begun = town.now()
    await town.until(lambda state: state.epoch == 2 and running(state))
    assert [address for address, _ in town.taken] == ["n0:1"]
    assert town.seats[0].ended[0] - begun == pytest.approx(LEASE, abs=3)  # it had last heard of it before
    await asyncio.sleep(30)
    assert not town.said(ev.HostLost)
    assert town.lead.state.generation == 1


@pytest.mark.looptime
async def test_with_many_hosts_the_turns_come_after_the_longer_lease_that_the_lead_has_told():
    town = Town(3)
    town.lead.roll.lease.seconds = 40.0
    town.start()
    await town.until(running)
    asked = town.agents[1].transport.requests
    await asyncio.sleep(60)
    assert town.agents[1].transport.requests - asked < 10  # a poll of 12 s is not broken off
    assert town.lead.state.epoch == 1
    begun = town.now()
    town.host_is_lost(0)
    await asyncio.sleep(25)
    assert town.taken == []
    await town.until(lambda state: state.epoch == 2)
    assert [address for address, _ in town.taken] == ["n1:1"]
    assert town.taken[0][1] - begun == pytest.approx(40 + TURN, abs=13)  # it had last heard of it before


@pytest.mark.looptime
async def test_agents_that_no_lead_has_answered_yet_try_for_a_minute_and_no_longer():
    town = Town(2)
    town.seat, town.places = "elsewhere:1", {}
    for agent in town.agents:
        agent.transport.lose_lead()
    begun = town.now()
    ends = await asyncio.gather(*(agent.link.run() for agent in town.agents), return_exceptions=True)
    assert all(isinstance(end, LeadGoneError) for end in ends)
    assert town.now() - begun == pytest.approx(60, abs=1)


@pytest.mark.looptime
async def test_an_agent_that_is_cut_off_from_a_lead_that_lives_ends_its_tasks_and_never_leads():
    town = Town(3)
    town.start()
    await town.until(running)
    agent = town.agents[1]
    agent.transport.lose_lead()
    town.places = {}
    begun = town.now()
    with pytest.raises(ExceptionGroup) as caught:
        await agent.running
    assert caught.group_contains(LeadGoneError)
    assert town.now() - begun == pytest.approx(2 * LEASE, abs=2)
    assert town.taken == []
    await town.until(lambda state: running(state) and state.generation == 2)
    assert town.lead.state.epoch == 1


@pytest.mark.looptime
async def test_where_the_run_folder_is_not_shared_nobody_takes_over_and_all_end_their_tasks():
    town = Town(3, shared=False)
    town.start()
    await town.until(running)
    town.host_is_lost(0)
    ends = await asyncio.gather(*(agent.running for agent in town.agents[1:]), return_exceptions=True)
    assert all(isinstance(end, ExceptionGroup) for end in ends)
    assert town.taken == []


class Reign(RuleBasedStateMachine):
    """Leads on one folder that are started, frozen, thawed and killed; agents that ask any of them, in any order."""

    leads = Bundle("leads")

    @initialize(target=leads)
    def begin(self):
        self.place = tempfile.TemporaryDirectory()
        self.folder = RunFolder.create(Path(self.place.name), "job", DAWN)
        self.key, self.now, self.seen, self.obeyed = RunKey.new(), DAWN, 0, {0: [], 1: [], 2: []}
        self.clients = {host: LeadClient(AppTransport(None), self.key, clock=lambda: self.now) for host in self.obeyed}
        self.living: list[Keeper] = []
        return self.start()

    def start(self):
        keeper = Keeper(self.folder.path, epoch=1, address="n:1", watch=0.0)
        lead = Lead(
            outline(workers=3, hosts=3),
            run=self.folder.run,
            epoch=keeper.epoch,
            records=keeper,
            past=keeper.past(),
            clock=lambda: self.now,
        )
        self.living.append(keeper)
        self.newest = lead
        return lead, keeper, App(lead, self.key, hosts=frozenset({"lead:1"}), clock=lambda: self.now).asgi()

    @rule(target=leads)
    def another_takes_over(self):
        return self.start()

    @rule(lead=leads)
    def one_is_killed(self, lead):
        _, keeper, _ = lead
        if keeper in self.living and len(self.living) > 1:
            self.living.remove(keeper)
            keeper._writing.close(5)
            keeper._log.abandon()  # the kernel closes what it had open

    @rule(lead=leads, host=st.integers(0, 2))
    def an_agent_asks(self, lead, host):
        lead, keeper, asgi = lead
        if keeper not in self.living:
            return
        client = self.clients[host]
        client._transport.find_lead(asgi)
        about = Host(id=host, name=f"n{host}", address=f"10.0.0.{host}", ports=(20000 + host,))
        join = Join(version=VERSION, run=self.folder.run, instance=f"i{host}", host=about, pid=1)
        before = client.epoch
        try:
            joined = asyncio.run(client.join(join))
        except (LeadSilentError, RefusedError):
            assert lead is not self.newest
            assert client.epoch == before
        else:
            self.obeyed[host].append(joined.epoch)

    @rule(lead=leads)
    def one_writes(self, lead):
        lead, keeper, _ = lead
        if keeper not in self.living:
            return
        if lead is self.newest:
            lead.say(ev.Noted(time=self.now, message="hello"))
            asyncio.run(lead.settle())
        else:
            with pytest.raises(DeposedError):
                self.says_too_late(lead)

    def says_too_late(self, lead):
        """It may learn that from its thread only: before an answer goes out, and at its next word."""
        lead.say(ev.Noted(time=self.now, message="too late"))
        asyncio.run(lead.settle())

    @invariant()
    def epochs_only_rise(self):
        if not hasattr(self, "living"):
            return
        epoch = read_rule(self.folder).epoch
        assert epoch == self.newest.epoch >= self.seen
        self.seen = epoch
        for epochs in self.obeyed.values():
            assert epochs == sorted(epochs)

    @invariant()
    def the_records_are_one_story(self):
        if hasattr(self, "living"):
            records = list(read_records(self.folder.events))
            assert [record.seq for record in records] == list(range(1, len(records) + 1))
            assert [record.epoch for record in records] == sorted(record.epoch for record in records)
            assert not any(getattr(record.event, "message", "") == "too late" for record in records)

    def teardown(self):
        if hasattr(self, "place"):
            for keeper in self.living:
                keeper.close()
            self.place.cleanup()


Reign.TestCase.settings = settings(max_examples=30, stateful_step_count=15, deadline=None)
TestReign = Reign.TestCase
