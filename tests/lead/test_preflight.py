"""The preflight between a lead and simulated agents: who waits for whom, and what ends before it begins."""

from __future__ import annotations

import asyncio
import dataclasses

import pytest

from phalanx import events as ev
from phalanx.plan.checklist import Fact, Fault
from phalanx.plan.policies import Policies, Preflight, Restart
from phalanx.states import RunPhase
from simulated import World, outline

pytestmark = pytest.mark.looptime


def kinds(agent):
    return [order.kind for order in agent.orders]


async def test_no_task_starts_before_every_host_has_looked():
    world = World(outline(workers=2, hosts=2))
    world.agents[1].late = 40.0  # its peer's record appears that late (R44)
    over = world.start()
    await asyncio.sleep(39)
    assert [kinds(agent) for agent in world.agents] == [["prepare"], ["prepare"]]
    await world.until(lambda state: state.phase is RunPhase.RUNNING)
    for name in ("worker:0", "worker:1"):
        world.exit(name)
    state = await over
    assert state.phase is RunPhase.SUCCEEDED
    assert world.said(ev.RestartOrdered) == []


async def test_a_blocked_pair_ends_the_run_before_any_task_starts():
    """R42, R43."""
    world = World(outline(workers=4, hosts=4))
    world.agents[1].faults = (Fault(check="peers-reachable", words="10.0.0.3:20030 timed out", peer=3),)
    state = await world.start()
    assert (state.phase, state.end.exit_code) == (RunPhase.FAILED, 2)
    assert "n1 does not reach n3: 10.0.0.3:20030 timed out" in state.end.cause
    assert "firewall" in state.culprit.hint or "open these ports" in state.culprit.hint
    assert not any("go" in kinds(agent) for agent in world.agents)
    assert world.said(ev.TaskStarted) == []


async def test_one_host_with_another_tensorflow_is_named():
    """R91."""
    world = World(outline(workers=3, hosts=3))
    for agent in world.agents:
        version = "2.16.1" if agent.number == 2 else "2.17.0"
        agent.facts = (Fact(name="tensorflow", value=version),)
    state = await world.start()
    assert state.end.exit_code == 2
    assert state.culprit.host == 2
    assert "TensorFlow differs: n2: 2.16.1; n0, n1: 2.17.0" in state.end.cause


async def test_the_leaders_host_writes_the_token_and_the_others_do_not():
    """R88."""
    job = dataclasses.replace(outline(workers=2, hosts=2), checkpoint="/ckpt")
    world = World(job)
    over = world.start()
    await world.until(lambda state: state.phase is RunPhase.RUNNING)
    lists = [agent.orders[0].check for agent in world.agents]
    assert [one.writes for one in lists] == [True, False]
    assert [one.checkpoint for one in lists] == ["/ckpt", "/ckpt"]
    assert [[peer.name for peer in one.peers] for one in lists] == [["n0", "n1"]] * 2
    world.lead.people.stop(by="a person", hard=True)
    await over


async def test_a_run_without_preflight_asks_for_none():
    world = World(outline(workers=2, policies=Policies(preflight=Preflight(on=False))))
    world.agents[0].faults = (Fault(check="modules-found", words="x"),)
    over = world.start()
    await world.until(lambda state: state.phase is RunPhase.RUNNING)
    assert world.agents[0].orders[0].check is None
    assert world.said(ev.HostChecked) == []
    world.lead.people.stop(by="a person", hard=True)
    await over


async def test_a_later_generation_looks_again_at_what_may_have_changed():
    world = World(outline(workers=1, policies=Policies(restart=Restart(max=1))))
    over = world.start()
    await world.until(lambda state: state.phase is RunPhase.RUNNING)
    world.agents[0].faults = (Fault(check="checkpoint-room", words="/ckpt has no room"),)
    world.exit("worker:0", signal=9)
    state = await over
    assert [order.check.again for order in world.agents[0].orders if order.kind == "prepare"] == [False, True]
    assert (state.phase, state.end.exit_code) == (RunPhase.FAILED, 2)
    assert "checkpoint-room" in state.end.cause


async def test_a_stop_during_the_preflight_ends_the_run_at_once():
    world = World(outline(workers=1))
    world.agents[0].late = 100.0
    over = world.start()
    await asyncio.sleep(5)
    world.lead.people.stop(by="a person", hard=False)
    await asyncio.sleep(1)
    for task in list(world.lead.state.tasks):
        world.agents[0].tasks[task] = (1, 1)
        world.exit(str(task))
    state = await over
    assert (state.phase, state.end.exit_code) == (RunPhase.STOPPED, 4)
