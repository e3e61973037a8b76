"""The real protocol between a lead and simulated agents, in virtual time."""

from __future__ import annotations

import asyncio
import dataclasses

import pytest

from phalanx import events as ev
from phalanx.names import TaskId
from phalanx.plan.policies import Health, Policies, Restart
from phalanx.protocol.messages import unpack
from phalanx.states import RunPhase
from phalanx.taskstate import TaskPhase
from simulated import World, outline

pytestmark = pytest.mark.looptime


def impatient(start):
    return Policies(health=Health(start=start), restart=Restart(max=0))


def running(state) -> bool:
    return state.phase is RunPhase.RUNNING


async def test_two_workers_on_two_hosts_get_one_cluster_and_their_own_place():
    world = World(outline(workers=2, hosts=2))
    over = world.start()
    await world.until(running)
    prepared = [next(o for o in agent.orders if o.kind == "prepare") for agent in world.agents]
    assert prepared[0].head == prepared[1].head
    texts = [unpack(order.head) + order.tasks[0].tail for order in prepared]
    assert texts[0].startswith('{"cluster":')
    assert '"index":0' in texts[0].replace(" ", "")
    assert '"index":1' in texts[1].replace(" ", "")
    for name in ("worker:0", "worker:1"):
        world.exit(name)
    state = await over
    assert (state.phase, state.end.exit_code) == (RunPhase.SUCCEEDED, 0)
    assert world.records.report is state


async def test_the_first_killed_worker_is_the_culprit_and_the_other_its_victim():
    world = World(outline(workers=2))
    world.agents[0].deaf = True
    over = world.start()
    await world.until(running)
    world.exit("worker:1", signal=9)
    state = await over
    assert (state.phase, state.end.exit_code) == (RunPhase.FAILED, 1)
    assert state.culprit.task == TaskId("worker", 1)
    assert "SIGKILL" in state.culprit.cause
    assert state.culprit.victims == (TaskId("worker", 0),)
    assert state.tasks[TaskId("worker", 0)].phase is TaskPhase.VICTIM
    killed = state.tasks[TaskId("worker", 1)].ended
    assert state.tasks[TaskId("worker", 0)].ended - killed < 1.0


async def test_a_victim_that_is_gone_before_the_culprit_stays_a_victim():
    world = World(outline(workers=2))
    over = world.start()
    await world.until(running)
    world.exit("worker:0", code=1, said=("UnavailableError: Collective ops is aborted by: Socket closed",))
    world.exit("worker:1", code=1, said=("ValueError: bad batch",))
    state = await over
    assert state.culprit.task == TaskId("worker", 1)
    assert "ValueError: bad batch" in state.culprit.cause


async def test_a_worker_that_left_early_is_the_suspect_of_those_that_waited_for_it():
    world = World(outline(workers=3))
    over = world.start()
    await world.until(running)
    world.exit("worker:2", code=0)
    await asyncio.sleep(0.4)
    for name in ("worker:0", "worker:1"):
        world.exit(name, code=1, said=("UnavailableError: Collective ops is aborted by: Connection refused",))
    state = await over
    assert state.culprit.task == TaskId("worker", 2)
    assert "uneven data" in state.culprit.cause


async def test_success_is_sticky_and_a_later_failure_of_another_changes_nothing():
    """R77, R83: the chief is done, and a worker's exit falls over afterwards."""
    world = World(outline(workers=1, chief=True))
    over = world.start()
    await world.until(running)
    world.exit("chief:0", code=0)
    await world.until(lambda state: state.succeeded is not None)
    world.exit("worker:0", signal=6)
    state = await over
    assert (state.phase, state.end.exit_code) == (RunPhase.SUCCEEDED, 0)


async def test_after_success_every_host_hears_that_no_generation_follows():
    world = World(outline(workers=2, hosts=2))
    over = world.start()
    await world.until(running)
    assert all("last" not in [order.kind for order in agent.orders] for agent in world.agents)
    world.exit("worker:0", code=0)
    await asyncio.sleep(1)
    assert [[order.kind for order in agent.orders].count("last") for agent in world.agents] == [1, 1]
    world.exit("worker:1", code=0)
    assert (await over).phase is RunPhase.SUCCEEDED


async def test_parameter_servers_and_their_workers_are_ended_when_the_chief_is_done():
    """R79, R97: they sit in join() for ever."""
    world = World(outline(workers=2, chief=True, ps=1))
    over = world.start()
    await world.until(running)
    world.exit("chief:0", code=0)
    state = await over
    assert state.phase is RunPhase.SUCCEEDED
    assert {t.phase for t in state.tasks.values()} == {TaskPhase.SUCCEEDED, TaskPhase.ENDED}


async def test_an_evaluator_gets_its_grace_after_success_and_no_more():
    """R81."""
    world = World(outline(workers=1, chief=True, evaluator=1, policies=Policies(health=Health(evaluator=60))))
    over = world.start()
    await world.until(running)
    world.exit("chief:0", code=0)
    world.exit("worker:0", code=0)
    done = asyncio.get_running_loop().time()
    state = await over
    assert state.phase is RunPhase.SUCCEEDED
    assert asyncio.get_running_loop().time() - done == pytest.approx(60, abs=3)


async def test_a_host_that_never_comes_ends_the_wait_at_the_start_deadline():
    world = World(outline(workers=2, hosts=2, policies=impatient(30)))
    for agent in world.agents[:1]:
        agent.start()
    state = await asyncio.ensure_future(world.lead.run_until_ended())
    assert (state.phase, state.end.exit_code) == (RunPhase.FAILED, 3)
    assert "1 of 2 hosts joined within 30 s" in state.end.cause


async def test_a_killed_agent_is_lost_within_three_seconds_and_the_run_fails_as_a_matter_of_the_place():
    world = World(outline(workers=2, hosts=2))
    over = world.start()
    await world.until(running)
    before = asyncio.get_running_loop().time()
    world.agents[1].die()
    state = await over
    assert asyncio.get_running_loop().time() - before < 6
    assert (state.phase, state.end.exit_code) == (RunPhase.FAILED, 3)
    assert "n1" in state.end.cause
    assert state.tasks[TaskId("worker", 1)].phase is TaskPhase.LOST


async def test_a_stop_waits_its_grace_and_a_second_one_does_not():
    world = World(outline(workers=2))
    world.agents[0].deaf = True
    over = world.start()
    await world.until(running)
    asked = asyncio.get_running_loop().time()
    world.lead.people.stop(by="a person", hard=False)
    await asyncio.sleep(2)
    world.lead.people.stop(by="a person", hard=True)
    state = await over
    assert (state.phase, state.end.exit_code) == (RunPhase.STOPPED, 4)
    assert state.tasks[TaskId("worker", 0)].ended - asked < 1_000_003
    assert [order.grace for order in world.said(ev.StopOrdered)] == [10.0, 0.0]


async def test_a_stop_while_hosts_are_awaited_ends_at_once():
    world = World(outline(workers=2, hosts=2))
    world.agents[0].start()
    over = asyncio.ensure_future(world.lead.run_until_ended())
    await asyncio.sleep(1)
    world.lead.people.stop(by="a person", hard=False)
    state = await over
    assert (state.phase, state.end.exit_code) == (RunPhase.STOPPED, 4)


async def test_a_thousand_hosts_meet_with_five_requests_each():
    world = World(outline(workers=1000, hosts=1000))
    over = world.start()
    await world.until(running, within=600)
    asked = [agent.transport.requests for agent in world.agents]
    assert max(asked) <= 5 + 1  # join, two polls, the preflight, the starts, and the open poll for whatever comes next
    for number in range(1000):
        world.exit(f"worker:{number}")
    state = await over
    assert state.phase is RunPhase.SUCCEEDED
    assert [t.task.index for t in world.said(ev.GenerationBound)[0].places] == list(range(1000))


@pytest.mark.parametrize("must_listen", [True, False])
async def test_a_task_that_never_listens_fails_the_run_only_where_it_must_listen(must_listen):
    """R20, R21: TensorFlow would wait an hour for it, in silence."""
    job = dataclasses.replace(outline(workers=2, policies=impatient(60)), must_listen=must_listen)
    world = World(job)
    world.agents[0].mute = True
    over = world.start()
    await world.until(running)
    if must_listen:
        state = await over
        assert (state.phase, state.end.exit_code) == (RunPhase.FAILED, 1)
        assert "worker:0 never listened on 10.0.0.0:20000 within 1 min" in state.end.cause
        assert "--start-timeout" in state.culprit.hint
        return
    await asyncio.sleep(100)
    assert [note.message for note in world.lead.state.notes] == [
        "not listening 1 min after the start: worker:0 (10.0.0.0:20000), worker:1 (10.0.0.0:20001)"
    ]
    for name in ("worker:0", "worker:1"):
        world.exit(name)
    assert (await over).phase is RunPhase.SUCCEEDED


async def test_a_task_that_fails_alike_while_it_is_being_ended_is_no_victim():
    """The same SyntaxError in every worker: the second is told to end a moment before it ends by itself."""
    world = World(outline(workers=2))
    world.agents[0].deaf = True
    over = world.start()
    await world.until(running)
    world.exit("worker:0", code=1, said=("SyntaxError: invalid syntax",))
    await asyncio.sleep(0.2)
    world.exit("worker:1", code=1, said=("SyntaxError: invalid syntax",))
    state = await over
    assert state.culprit.victims == ()
    assert state.culprit.cause.endswith("worker:1 failed alike")


async def test_of_many_that_failed_alike_a_few_are_named():
    world = World(outline(workers=12))
    world.agents[0].deaf = True
    over = world.start()
    await world.until(running)
    for number in range(12):
        world.exit(f"worker:{number}", code=1, said=("SyntaxError: invalid syntax",))
    state = await over
    assert state.culprit.cause.endswith("worker:7, worker:8 and 3 more failed alike")


async def test_an_agent_that_leaves_at_the_end_is_not_said_to_be_lost():
    world = World(outline(workers=1))
    over = world.start()
    await world.until(running)
    world.exit("worker:0")
    await world.until(lambda state: state.phase.terminal)
    world.lead.people.lose(0, "its agent has ended with exit code 0")
    await over
    assert world.said(ev.HostLost) == []
