"""A lead dies, and the next one goes on where it stopped: the real protocol, in virtual time."""

from __future__ import annotations

import asyncio
import dataclasses

import pytest

from phalanx import events as ev
from phalanx.agent.link import LeadGoneError
from phalanx.names import TaskId
from phalanx.plan.policies import Policies, Restart
from phalanx.protocol.signing import RefusedError
from phalanx.protocol.transport import LeadSilentError
from phalanx.states import RunPhase, RunState, fold_all
from simulated import World, outline

pytestmark = pytest.mark.looptime


def running(state: RunState) -> bool:
    return state.phase is RunPhase.RUNNING


def back(world: World) -> bool:
    return running(world.lead.state) and world.lead.state.tasks[TaskId("worker", 1)].attempt == 2


def whole(world: World) -> None:
    """What must hold of the records of any run, however many leads have written them."""
    records = world.records.records
    assert [record.seq for record in records] == list(range(1, len(records) + 1))
    assert [record.epoch for record in records] == sorted(record.epoch for record in records)
    assert fold_all(records) == world.lead.state
    told = [record.told for record in records if record.told is not None]
    assert len(told) == len(set(told))
    starts = [(e.task, e.generation, e.attempt) for e in world.said(ev.TaskStarted)]
    assert len(starts) == len(set(starts))


@pytest.mark.parametrize("hosts", [1, 3])
async def test_training_does_not_notice_that_the_lead_is_another_one(hosts):
    world = World(outline(workers=3, hosts=hosts))
    world.start()
    await world.until(running)
    world.lead_dies()
    await asyncio.sleep(0.5)
    over = world.takes_over()
    await asyncio.sleep(5)
    assert world.lead.state.phase is RunPhase.RUNNING
    assert [order.kind for agent in world.agents for order in agent.orders] == ["prepare", "go"] * hosts
    for number in range(3):
        world.exit(f"worker:{number}")
    state = await over
    assert (state.phase, state.epoch) == (RunPhase.SUCCEEDED, 2)
    assert [e.host for e in world.said(ev.HostJoined)] == list(range(hosts))
    whole(world)


async def test_what_happens_while_nobody_leads_is_told_once_to_the_next_lead():
    world = World(outline(workers=2, hosts=2))
    world.start()
    await world.until(running)
    world.lead_dies()
    world.exit("worker:0")
    world.exit("worker:1")
    await asyncio.sleep(3)
    state = await world.takes_over()
    assert state.phase is RunPhase.SUCCEEDED
    assert len(world.said(ev.TaskExited)) == 2
    whole(world)


async def test_a_poll_and_a_report_that_meet_the_next_lead_one_after_the_other_join_it_once():
    """Both were asked of the dead lead; the second finds that the first has joined already."""
    world = World(outline(workers=1))
    world.start()
    await world.until(running)
    agent, joined = world.agents[0], asyncio.Event()

    async def backlog(scope, receive, send):  # the kernel keeps what comes while nobody accepts
        if scope["path"] == "/v1/orders" and not joined.is_set():
            await joined.wait()
        await world.asgi(scope, receive, send)

    world.lead_dies()
    over = world.takes_over()
    agent.transport.find_lead(backlog)
    await asyncio.sleep(1)
    agent.link.say(ev.Noted(time=1.0, message="hello"))
    await world.until(lambda _: bool(world.said(ev.Noted)))
    joined.set()
    await asyncio.sleep(1)
    assert not agent.running.done()
    world.exit("worker:0")
    assert (await over).phase is RunPhase.SUCCEEDED
    assert len(world.said(ev.HostJoined)) == 1
    whole(world)


@pytest.mark.parametrize("after", range(1, 12))
async def test_at_whatever_record_the_lead_dies_the_run_starts_all_the_same(after):
    world = World(outline(workers=2, hosts=2))
    world.lead_dies_after(after)
    world.start()
    await world.until(lambda _: world.records.dead or running(world.lead.state))
    world.lead_dies()
    world.takes_over()
    await world.until(running)
    world.lead_dies()
    over = world.takes_over()
    await world.until(running)
    for name in ("worker:0", "worker:1"):
        world.exit(name)
    state = await over
    assert (state.phase, state.epoch, state.generation) == (RunPhase.SUCCEEDED, 3, 1)
    whole(world)


async def test_a_group_that_is_being_started_again_comes_back_under_the_next_lead():
    world = World(outline(workers=2, hosts=2, policies=Policies(restart=Restart(max=3))))
    world.start()
    await world.until(running)
    world.agents[0].deaf = True  # so that the lead dies while it waits for the other to end
    world.exit("worker:1", code=1)
    await world.until(lambda _: bool(world.said(ev.StopOrdered)))
    world.lead_dies()
    await asyncio.sleep(1)
    over = world.takes_over()
    await world.until(lambda state: running(state) and state.generation == 2)
    world.lead_dies()
    over = world.takes_over()
    await world.until(lambda state: running(state) and state.epoch == 3)
    first, second = (event.places for event in world.said(ev.GenerationBound))
    assert not {place.address for place in first} & {place.address for place in second}
    for name in ("worker:0", "worker:1"):
        world.exit(name)
    state = await over
    assert (state.phase, state.generation, len(state.past)) == (RunPhase.SUCCEEDED, 2, 1)
    whole(world)


@pytest.mark.parametrize("after", range(12, 24))
async def test_a_group_comes_back_whole_at_whatever_record_of_its_restart_the_lead_dies(after):
    """The next lead knows hosts from the records before their agents have spoken to it: it must not bind without."""
    world = World(outline(workers=2, hosts=2, policies=Policies(restart=Restart(max=3))))
    world.start()
    await world.until(running)
    world.lead_dies_after(after)
    world.exit("worker:1", signal=9)
    again = lambda _: running(world.lead.state) and world.lead.state.generation == 2  # noqa: E731 - asked twice
    await world.until(lambda _: world.records.dead or again(_))
    world.lead_dies()
    await asyncio.sleep(0.3)
    over = world.takes_over()
    await world.until(again)
    for name in ("worker:0", "worker:1"):
        world.exit(name)
    assert (await over).phase is RunPhase.SUCCEEDED
    whole(world)


@pytest.mark.parametrize("after", range(14, 20))
async def test_a_task_that_comes_back_alone_is_started_once_at_whatever_record_the_lead_dies(after):
    world = World(outline(workers=2, chief=True, ps=1, policies=Policies(restart=Restart(max=3))))
    world.start()
    await world.until(running)
    world.lead_dies_after(after)
    world.exit("worker:1", signal=9)
    await world.until(lambda _: world.records.dead or back(world))
    world.lead_dies()
    await asyncio.sleep(0.3)
    over = world.takes_over()
    await world.until(lambda state: running(state) and state.tasks[TaskId("worker", 1)].attempt == 2)
    world.exit("chief:0")
    state = await over
    assert state.phase is RunPhase.SUCCEEDED
    starts = [order for agent in world.agents for order in agent.orders if order.kind == "go"]
    assert len(starts) == 2
    whole(world)


async def test_a_stop_that_was_asked_of_the_dead_lead_is_carried_out_by_the_next():
    world = World(outline(workers=2, hosts=2))
    world.start()
    await world.until(running)
    world.lead.people.stop(by="a person", hard=False)
    world.lead_dies()
    state = await world.takes_over()
    assert (state.phase, state.end.exit_code) == (RunPhase.STOPPED, 4)
    whole(world)


async def test_stacks_that_were_asked_of_the_dead_lead_are_asked_for_by_the_next():
    world = World(outline(workers=2, hosts=2))
    world.start()
    await world.until(running)
    world.lead.people.stacks(tuple(world.lead.state.tasks), by="a person")
    world.lead_dies()
    ended = world.takes_over()
    await world.until(lambda _: all("stacks" in [order.kind for order in agent.orders] for agent in world.agents))
    for name in ("worker:0", "worker:1"):
        world.exit(name)
    assert (await ended).phase is RunPhase.SUCCEEDED
    whole(world)


async def test_a_host_that_does_not_come_back_to_the_new_lead_is_lost_when_its_lease_ends():
    world = World(outline(workers=2, hosts=2))
    world.start()
    await world.until(running)
    world.agents[1].die()
    world.lead_dies()
    began = asyncio.get_running_loop().time()
    state = await world.takes_over()
    assert (state.phase, state.end.exit_code) == (RunPhase.FAILED, 3)
    assert "n1" in state.end.cause
    assert state.hosts[1].lost == "its agent has not joined the new lead"
    assert asyncio.get_running_loop().time() - began == pytest.approx(10, abs=6)
    whole(world)


async def test_a_lead_that_died_after_the_end_has_a_successor_that_only_sends_the_agents_home():
    world = World(outline(workers=2, hosts=2))
    world.start()
    await world.until(running)
    for name in ("worker:0", "worker:1"):
        world.exit(name)
    await world.until(lambda state: state.phase.terminal)
    world.lead_dies()
    written = len(world.records.records)
    state = await world.takes_over()
    await asyncio.gather(*(agent.running for agent in world.agents))
    assert state.phase is RunPhase.SUCCEEDED
    assert len(world.records.records) == written
    assert world.records.report is state


async def test_an_agent_of_the_new_epoch_takes_no_order_of_the_old_one():
    world = World(outline(workers=1))
    world.start()
    await world.until(running)
    old = world.asgi
    world.lead_dies()
    over = world.takes_over()
    await world.until(lambda state: state.epoch == 2 and running(state))
    agent = world.agents[0]
    await asyncio.sleep(4)
    assert agent.link._client.epoch == 2
    agent.transport.find_lead(old)  # it has only been frozen, and thaws
    await asyncio.sleep(8)
    assert not agent.running.done()  # it takes that for silence
    agent.transport.find_lead(world.asgi)
    world.exit("worker:0")
    assert (await over).phase is RunPhase.SUCCEEDED
    assert [order.epoch for order in agent.orders] == [1, 1]


@pytest.mark.parametrize("kept", [True, False])
async def test_words_that_only_the_dead_lead_knew_are_told_again_or_named_as_missing(kept):
    world = World(outline(workers=1))
    world.start()
    await world.until(running)
    await asyncio.sleep(1)
    world.lead_dies()
    if not kept:  # the agent has said thousands of things since
        world.agents[0].link._outbox._events.clear()
        world.agents[0].link._outbox._first = 4  # its preflight, and the two that follow
    del world.records.records[-2:]  # taken from the agent, and never written: the disk was full
    over = world.takes_over()
    await asyncio.sleep(1)
    world.exit("worker:0")
    state = await over
    assert state.phase is RunPhase.SUCCEEDED
    assert [note.message for note in world.said(ev.Noted)] == ([] if kept else ["its agent's words 2 to 3 are lost"])
    whole(world)


async def test_an_agent_that_joins_the_next_lead_under_a_lost_hosts_name_is_refused():
    world = World(outline(workers=2, hosts=2))
    world.start()
    await world.until(running)
    world.lead_dies()
    world.takes_over()
    await world.until(running)
    stranger = world.agents[1].link._join
    with pytest.raises(Exception, match="has an agent already"):
        world.lead.join(dataclasses.replace(stranger, instance="another"))
    assert world.lead.state.tasks[TaskId("worker", 1)].phase.value == "running"


async def test_an_agent_that_two_calls_have_led_to_a_new_lead_looks_on_when_that_one_dies_before_it_answers():
    """Both were told to join it: the one that joins must not wait for it for ever, nor the other for that one."""
    world = World(outline(workers=1))
    world.start()
    await world.until(running)
    agent, asked = world.agents[0], []

    class Looks:
        def learn(self, line): ...
        def lasts(self, lease): ...
        def answered(self): ...
        def silent(self, seconds, epoch):
            asked.append(seconds)
            return seconds < 30

    agent.link._succession = Looks()

    async def dies_at_the_join(scope, receive, send):
        if scope["path"] == "/v1/join":
            await asyncio.sleep(0.01)
            raise LeadSilentError("killed")
        await world.asgi(scope, receive, send)

    world.lead_dies()
    world.takes_over()
    agent.transport.find_lead(dies_at_the_join)
    agent.link.say(ev.Noted(time=1.0, message="hello"))
    with pytest.raises(ExceptionGroup) as caught:
        await agent.running
    assert caught.group_contains(LeadGoneError)
    assert asked[-1] == pytest.approx(30, abs=3)


async def test_who_comes_when_the_run_has_ended_is_turned_away_and_the_lead_goes_on():
    world = World(outline(workers=1, hosts=2))
    late = world.agents.pop()
    over = world.start()
    await asyncio.sleep(1)
    world.lead.people.lose(1, "its agent has ended with signal 9")
    await world.until(lambda state: state.phase.terminal)
    late.start()
    with pytest.raises(RefusedError, match="the run has ended"):
        await late.running
    assert (await over).phase is RunPhase.FAILED
    whole(world)


@pytest.mark.parametrize("behind", [0.0, 5.0, 50.0])
async def test_a_host_that_says_it_is_lost_is_lost_whatever_its_clock_says(behind):
    world = World(outline(workers=2, hosts=2, policies=Policies(restart=Restart(max=0))))
    over = world.start()
    await world.until(running)
    now = world.agents[1].wall()
    world.agents[1].link.say(ev.HostLost(time=now - behind, host=1, reason="its reaper has died"))
    state = await over
    assert state.phase is RunPhase.FAILED
    assert state.culprit.host == 1
    whole(world)
