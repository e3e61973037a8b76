"""Patience with hosts: as long as their number needs, and none is lost for what the lead itself did not hear."""

from __future__ import annotations

import asyncio

import pytest

from phalanx import events as ev
from phalanx.lead.lead import Lead
from phalanx.lead.lease import Lease
from phalanx.states import RunPhase
from simulated import World, outline, virtual_clock

pytestmark = pytest.mark.looptime


def running(state) -> bool:
    return state.phase is RunPhase.RUNNING


@pytest.mark.parametrize(("hosts", "seconds"), [(1, 10), (1000, 10), (10_000, 50), (100_000, 60)])
def test_many_hosts_are_asked_less_often(hosts, seconds):
    lease = Lease(hosts, 0.0)
    assert lease.seconds == seconds
    assert lease.again < lease.wait < lease.seconds


@pytest.mark.parametrize("stuck", [12.0, 3600.0])
async def test_a_lead_that_was_stuck_loses_no_host(stuck):
    """A run folder that hangs, a stopped process: agents have spoken all the while, and nobody read it."""
    late = 0.0
    world = World(outline(workers=2, hosts=2))
    world.lead = Lead(
        world.lead.outline, run=world.run, epoch=1, records=world.records, clock=lambda: virtual_clock() + late
    )
    world.serve()
    for agent in world.agents:
        agent.transport.find_lead(world.asgi)
    over = world.start()
    await world.until(running)
    late = stuck
    await asyncio.sleep(5)
    assert world.said(ev.HostLost) == []
    for name in ("worker:0", "worker:1"):
        world.exit(name)
    assert (await over).phase is RunPhase.SUCCEEDED


async def test_a_host_that_stays_silent_after_that_is_lost_all_the_same():
    late = 0.0
    world = World(outline(workers=2, hosts=2))
    world.lead = Lead(
        world.lead.outline, run=world.run, epoch=1, records=world.records, clock=lambda: virtual_clock() + late
    )
    world.serve()
    for agent in world.agents:
        agent.transport.find_lead(world.asgi)
    over = world.start()
    await world.until(running)
    late = 60.0
    world.agents[1].running.cancel()
    before = asyncio.get_running_loop().time()
    assert (await over).phase is RunPhase.FAILED
    assert [lost.host for lost in world.said(ev.HostLost)] == [1]
    assert asyncio.get_running_loop().time() - before < 15


@pytest.mark.parametrize("hours", [-5.0, 3.0])
async def test_a_host_whose_clock_is_set_by_hours_makes_no_task_run_for_hours(hours):
    world = World(outline(workers=2, hosts=2))
    over = world.start()
    await world.until(running)
    await asyncio.sleep(7)
    world.agents[1].ahead = hours * 3600
    for name in ("worker:0", "worker:1"):
        world.exit(name)
    state = await over
    assert state.phase is RunPhase.SUCCEEDED
    for task in state.tasks.values():
        assert task.ended - task.started == pytest.approx(7, abs=1)


async def test_of_two_hosts_the_one_that_failed_first_is_to_blame_whatever_its_clock_says():
    world = World(outline(workers=2, hosts=2))
    world.agents[1].ahead = 7200
    over = world.start()
    await world.until(running)
    world.exit("worker:1", signal=9)
    state = await over
    assert str(state.culprit.task) == "worker:1"
