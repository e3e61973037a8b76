"""More and fewer workers: a lost host shrinks the job, one that comes or a wish makes it grow (R84, R85)."""

from __future__ import annotations

import asyncio
import json

import pytest

from phalanx import events as ev
from phalanx.errors import InputError
from phalanx.names import TaskId
from phalanx.plan.policies import Health, Policies, Restart
from phalanx.states import RunPhase
from simulated import World, outline

pytestmark = pytest.mark.looptime


def size(state):
    return sum(task.type == "worker" for task in state.tasks)


def runs(workers, generation):
    return lambda s: s.phase is RunPhase.RUNNING and (size(s), s.generation) == (workers, generation)


def elastic(*, workers=4, hosts=2, fewest=2, most=6, start=300, **more):
    policies = Policies(restart=Restart(max=3), health=Health(start=start))
    return outline(workers=workers, hosts=hosts, fewest=fewest, most=most, policies=policies, **more)


async def end(world, over):
    for task in list(world.lead.state.tasks):
        world.exit(str(task))
    return await over


async def test_a_lost_host_shrinks_the_job_and_its_workers_are_numbered_anew():
    world = World(elastic())
    over = world.start()
    await world.until(runs(4, 1))
    world.agents[0].die()
    await world.until(runs(2, 2))
    assert sorted(world.lead.state.tasks) == [TaskId("worker", 0), TaskId("worker", 1)]
    assert {task.host for task in world.lead.state.tasks.values()} == {1}
    assert (await end(world, over)).phase is RunPhase.SUCCEEDED


async def test_a_host_that_returns_makes_it_grow_again_after_the_cool_down():
    world = World(elastic())
    world.start()
    await world.until(runs(4, 1))
    world.agents[1].die()
    await world.until(runs(2, 2))
    bound = world.lead.state.bound
    world.come(1)
    await world.until(runs(4, 3), within=200)
    [order] = world.said(ev.ResizeOrdered)
    assert order.time - bound >= 60
    assert (order.before, order.workers) == (2, 4)
    assert [o.counted for o in world.said(ev.RestartOrdered)] == [True, False]
    [note] = [n.message for n in world.said(ev.Noted)]
    assert note.startswith("the run grows in ")
    assert "cool-down" in note


async def test_a_host_that_nobody_declared_makes_it_grow_up_to_its_most():
    world = World(elastic(most=5))
    world.start()
    await world.until(runs(4, 1))
    world.come(2)
    await world.until(runs(5, 2), within=200)


async def test_a_wish_for_more_workers_is_fulfilled_at_once_and_every_worker_is_asked_to_stop_first():
    world = World(elastic(workers=2, hosts=1, fewest=1, most=4))
    world.start()
    await world.until(runs(2, 1))
    world.lead.people.scale(4, by="me")
    await world.until(runs(4, 2), within=30)
    [stop] = world.said(ev.StopOrdered)
    assert stop.grace > 0
    world.lead.people.scale(1, by="me")
    await world.until(runs(1, 3), within=30)
    [task] = world.records.plan.tasks
    assert json.loads(world.records.plan.tf_config(task))["cluster"]["worker"] == [task.address]


@pytest.mark.parametrize("wish", [0, 1, 7])
async def test_a_wish_out_of_range_is_refused_and_changes_nothing(wish):
    world = World(elastic())
    world.start()
    await world.until(runs(4, 1))
    with pytest.raises(InputError, match="this job takes 2 to 6"):
        world.lead.people.scale(wish, by="me")
    assert world.said(ev.ScaleRequested) == []


async def test_below_its_fewest_it_waits_for_a_host_and_then_fails_by_name():
    world = World(elastic(hosts=4, fewest=3, start=60))
    over = world.start()
    await world.until(runs(4, 1))
    for number in (2, 3):
        world.agents[number].die()
    await world.until(lambda s: s.phase is RunPhase.RESTARTING)
    began = asyncio.get_running_loop().time()
    state = await over
    assert asyncio.get_running_loop().time() - began >= 55
    assert (state.phase, state.end.exit_code) == (RunPhase.FAILED, 3)
    assert "generation 2 could not start: 2 of 4 hosts are there" in state.end.cause


async def test_it_starts_smaller_where_hosts_do_not_come_by_the_start_deadline():
    world = World(elastic(hosts=3, workers=3, fewest=2, start=30))
    world.agents[2].start = lambda: None
    over = world.start()
    await world.until(runs(2, 1), within=60)
    assert world.lead.state.bound - world.lead.state.started >= 30
    assert (await end(world, over)).phase is RunPhase.SUCCEEDED


async def test_a_job_of_a_fixed_size_waits_for_the_lost_host_and_takes_it_back():
    world = World(outline(workers=4, hosts=2, policies=Policies(restart=Restart(max=3))))
    over = world.start()
    await world.until(runs(4, 1))
    world.agents[1].die()
    await world.until(lambda s: s.phase is RunPhase.RESTARTING)
    await asyncio.sleep(100)
    world.come(1)
    await world.until(runs(4, 2))
    assert world.said(ev.ResizeOrdered) == []
    assert (await end(world, over)).phase is RunPhase.SUCCEEDED


async def test_a_second_agent_for_a_living_host_is_refused():
    world = World(elastic())
    world.start()
    await world.until(runs(4, 1))
    stranger = world.come(1)
    await asyncio.sleep(1)
    assert stranger.running.done()
    assert "has an agent already" in str(stranger.running.exception())


@pytest.mark.parametrize("lives", [False, True])
async def test_a_replacement_waits_until_the_agent_before_it_is_given_up_and_no_longer_than_it_may(lives):
    world = World(elastic(fewest=4))
    over = world.start()
    await world.until(runs(4, 1))
    if not lives:
        world.agents[1].transport.cut = True  # its machine is off: nothing hangs up
        world.agents[1].running.cancel()
        world.agents[1].tasks.clear()
    before = world.agents[1]
    came = world.come(1)
    came.link._replaces = 60.0
    await asyncio.sleep(5)
    assert not came.link.joined
    assert not came.running.done()
    if not lives:
        await world.until(runs(4, 2))
        assert came.link.joined
        assert (await end(world, over)).phase is RunPhase.SUCCEEDED
        return
    await asyncio.sleep(60)
    assert "has an agent already, which has not been given up" in str(came.running.exception())
    world.agents[1] = before
    assert (await end(world, over)).phase is RunPhase.SUCCEEDED


async def test_an_agent_that_was_told_of_its_end_withdraws_its_own_host_and_no_other():
    world = World(elastic())
    over = world.start()
    await world.until(runs(4, 1))
    agent = world.agents[1]
    agent.link.say(ev.HostWithdrawn(time=agent.wall(), host=1, by="Kubernetes"))
    await world.until(runs(2, 2))
    await asyncio.sleep(5)
    assert agent.link.code == 3  # of the place: another pod is to follow
    world.agents[0].link.say(ev.HostWithdrawn(time=agent.wall(), host=1, by="Kubernetes"))
    await asyncio.sleep(1)
    assert "may not say HostWithdrawn" in str(world.agents[0].running.exception().exceptions[0])
    over.cancel()


async def test_who_is_dismissed_at_the_end_is_told_how_the_run_ended():
    world = World(elastic())
    over = world.start()
    await world.until(runs(4, 1))
    world.lead.people.stop(by="me", hard=True)
    assert (await over).phase is RunPhase.STOPPED
    await asyncio.sleep(1)
    assert [agent.link.code for agent in world.agents] == [4, 4]


async def test_a_host_that_was_replaced_is_not_lost_by_what_is_told_of_the_one_before_it():
    world = World(elastic())
    over = world.start()
    await world.until(runs(4, 1))
    world.lead.people.lose(1, "its pod was evicted", name="another")
    assert world.said(ev.HostLost) == []
    world.lead.people.lose(1, "its pod was evicted", name="n1")
    assert [lost.reason for lost in world.said(ev.HostLost)] == ["its pod was evicted"]
    await world.until(runs(2, 2))
    await end(world, over)


async def test_a_host_that_is_taken_away_is_let_go_once_its_tasks_have_stopped_and_costs_no_restart():
    world = World(elastic())
    over = world.start()
    await world.until(runs(4, 1))
    world.lead.people.withdraw(1, by="me")
    world.lead.people.withdraw(1, by="me")
    await world.until(runs(2, 2))
    await asyncio.sleep(60)
    assert world.agents[1].running.done()
    assert [e.host for e in world.said(ev.HostLeft)] == [1]
    assert world.said(ev.HostLost) == []
    assert world.said(ev.StopOrdered)[0].grace == 10.0
    assert [order.counted for order in world.said(ev.RestartOrdered)] == [False]
    assert (await end(world, over)).phase is RunPhase.SUCCEEDED


async def test_a_fixed_job_waits_for_another_host_when_one_is_taken_away():
    world = World(outline(workers=2, hosts=2, policies=Policies(restart=Restart(max=3))))
    over = world.start()
    await world.until(runs(2, 1))
    world.lead.people.withdraw(1, by="me")
    await world.until(lambda s: s.phase is RunPhase.RESTARTING and s.hosts[1].left)
    world.come(1)
    await world.until(runs(2, 2))
    assert (await end(world, over)).phase is RunPhase.SUCCEEDED


async def test_a_host_that_is_back_before_the_others_have_ended_was_lost_all_the_same():
    """Found by the soak: what its tasks were is still to be judged, or nothing ever follows."""
    world = World(elastic())
    over = world.start()
    await world.until(runs(4, 1))
    world.agents[0].deaf = True
    world.agents[1].die()
    await world.until(lambda s: bool(s.hosts[1].lost))
    world.come(1)
    await world.until(runs(4, 2))
    assert [(past.culprit.sign, past.culprit.host) for past in world.lead.state.past] == [("host", 1)]
    assert (await end(world, over)).phase is RunPhase.SUCCEEDED
