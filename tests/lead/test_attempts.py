"""Who comes back alone, at its old address, and who takes others along (facts §4)."""

from __future__ import annotations

import asyncio

import pytest

from phalanx import events as ev
from phalanx.names import TaskId
from phalanx.plan.outline import Failure
from phalanx.plan.policies import Policies, Restart
from phalanx.states import RunPhase
from phalanx.taskstate import TaskPhase
from simulated import World, outline

pytestmark = pytest.mark.looptime

FOLLOWS = ("UnavailableError: Graph execution error: Socket closed",)


def job(*, most=3, **more):
    counts = {"workers": 2, "chief": True, "ps": 2} | more
    return outline(policies=Policies(restart=Restart(max=most)), **counts)


def attempts(state):
    return {str(task.id): task.attempt for task in state.tasks.values()}


def addresses(state):
    return {task.id: task.address for task in state.tasks.values()}


async def all_up(world):
    await world.until(lambda state: state.generation == 1 and state.phase is RunPhase.RUNNING)


async def finished(world, over):
    world.exit("chief:0")
    return await over


async def test_a_lost_ps_worker_comes_back_alone_at_its_address():
    """R73: the chief goes on without it, and takes it up again."""
    world = World(job())
    over = world.start()
    await all_up(world)
    before = addresses(world.lead.state)
    world.exit("worker:1", signal=9)
    await world.until(lambda state: attempts(state)["worker:1"] == 2 and state.phase is RunPhase.RUNNING)
    assert attempts(world.lead.state) == {"chief:0": 1, "worker:0": 1, "worker:1": 2, "ps:0": 1, "ps:1": 1}
    assert addresses(world.lead.state) == before
    assert world.lead.state.generation == 1
    assert world.said(ev.StopOrdered) == []
    [again] = [task for order in world.agents[0].orders if order.kind == "prepare" for task in order.tasks][-1:]
    assert (str(again.id), again.attempt, again.env["PHALANX_ATTEMPT"]) == ("worker:1", 2, "2")
    assert (await finished(world, over)).phase is RunPhase.SUCCEEDED


async def test_a_lost_ps_takes_the_chief_along_and_leaves_the_workers():
    world = World(job())
    over = world.start()
    await all_up(world)
    world.exit("ps:0", signal=9)
    world.exit("chief:0", code=1, said=FOLLOWS)
    await world.until(lambda state: attempts(state)["chief:0"] == 2 and state.phase is RunPhase.RUNNING)
    state = world.lead.state
    assert attempts(state) == {"chief:0": 2, "worker:0": 1, "worker:1": 1, "ps:0": 2, "ps:1": 1}
    assert [str(past.culprit.task) for past in state.past] == ["ps:0"]
    assert (await finished(world, over)).phase is RunPhase.SUCCEEDED


async def test_a_ps_whose_chief_does_not_notice_still_takes_it_along():
    """A ps that is gone leaves the chief waiting for ever, in silence."""
    world = World(job())
    over = world.start()
    await all_up(world)
    world.exit("ps:1", signal=9)
    await world.until(lambda state: attempts(state)["chief:0"] == 2 and state.phase is RunPhase.RUNNING)
    [stop] = world.said(ev.StopOrdered)
    assert stop.tasks == (TaskId("chief", 0),)
    assert (await finished(world, over)).phase is RunPhase.SUCCEEDED


async def test_a_lost_chief_comes_back_alone_and_finds_its_workers():
    world = World(job())
    over = world.start()
    await all_up(world)
    world.exit("chief:0", signal=9)
    await world.until(lambda state: attempts(state)["chief:0"] == 2 and state.phase is RunPhase.RUNNING)
    assert attempts(world.lead.state)["worker:0"] == 1
    assert (await finished(world, over)).phase is RunPhase.SUCCEEDED


async def test_an_attempt_spends_the_budget_as_a_generation_does():
    world = World(job(most=2))
    over = world.start()
    await all_up(world)
    for number in (1, 2, 3):
        await world.until(lambda state, n=number: attempts(state)["worker:0"] == n and state.phase is RunPhase.RUNNING)
        world.exit("worker:0", signal=9)
    state = await over
    assert (state.phase, state.end.exit_code) == (RunPhase.FAILED, 1)
    assert "its budget is spent: restarted 2 times" in state.end.cause
    assert state.all_over


async def test_all_that_are_killed_at_once_come_back_for_one_restart():
    """kill -9 of a worker, a ps and the chief within a second, with a budget of one."""
    world = World(job(most=1))
    over = world.start()
    await all_up(world)
    for task in ("worker:0", "chief:0", "ps:1"):
        world.exit(task, signal=9)
        await asyncio.sleep(0.3)
    await world.until(lambda state: attempts(state)["ps:1"] == 2 and state.phase is RunPhase.RUNNING)
    restarts = world.said(ev.RestartOrdered)
    assert [order.counted for order in restarts] == [True, *[False] * (len(restarts) - 1)]
    assert all(order.why.endswith("restart 1 of 1") for order in restarts)
    await asyncio.sleep(10.0)
    world.exit("worker:1", signal=9)
    state = await over
    assert "its budget is spent: restarted once" in state.end.cause


async def test_an_evaluator_comes_back_alone_and_the_training_does_not_notice():
    world = World(outline(workers=2, evaluator=1, policies=Policies(restart=Restart(max=3))))
    over = world.start()
    await all_up(world)
    world.exit("evaluator:0", code=1, said=("ValueError: no checkpoint yet",))
    await world.until(lambda state: attempts(state)["evaluator:0"] == 2 and state.phase is RunPhase.RUNNING)
    assert attempts(world.lead.state)["worker:0"] == 1
    for task in ("worker:0", "worker:1"):
        world.exit(task)
    assert (await over).phase is RunPhase.SUCCEEDED


async def test_an_evaluator_does_not_pay_for_the_restarts_of_the_group():
    world = World(outline(workers=2, evaluator=1, policies=Policies(restart=Restart(max=3))))
    over = world.start()
    await all_up(world)
    for generation in (2, 3):
        world.exit("worker:1", signal=9)
        await world.until(lambda state, n=generation: state.generation == n and _runs(state, "evaluator:0"))
    world.exit("evaluator:0", signal=9)
    await world.until(lambda state: attempts(state)["evaluator:0"] == 2 and state.phase is RunPhase.RUNNING)
    assert world.lead.state.past[-1].restart.why == "restart 1 of 3"
    for task in ("worker:0", "worker:1"):
        world.exit(task)
    assert (await over).phase is RunPhase.SUCCEEDED


async def test_an_evaluator_that_is_past_help_is_given_up_and_the_training_ends_well():
    world = World(outline(workers=2, evaluator=1, policies=Policies(restart=Restart(max=1))))
    over = world.start()
    await all_up(world)
    for number in (1, 2):
        await world.until(lambda state, n=number: attempts(state)["evaluator:0"] == n and _runs(state, "evaluator:0"))
        world.exit("evaluator:0", signal=9)
    await world.until(lambda state: bool(state.given_up))
    assert world.lead.state.phase is RunPhase.RUNNING
    for task in ("worker:0", "worker:1"):
        world.exit(task)
    state = await over
    assert (state.phase, state.end.exit_code) == (RunPhase.SUCCEEDED, 0)
    assert "goes on without it" in world.said(ev.TaskGivenUp)[0].why


async def test_a_late_word_of_an_old_attempt_changes_nothing():
    world = World(job())
    world.start()
    await all_up(world)
    world.exit("worker:1", signal=9)
    await world.until(lambda state: attempts(state)["worker:1"] == 2 and state.phase is RunPhase.RUNNING)
    before = world.lead.state.tasks
    late = ev.TaskExited(time=0.0, task=TaskId("worker", 1), host=0, generation=1, attempt=1, pid=1, code=1)
    world.agents[0].link.say(late)
    await asyncio.sleep(5)
    assert world.lead.state.tasks == before


async def test_a_restart_is_proved_by_the_checkpoint_that_its_leader_has_read():
    world = World(outline(workers=2, policies=Policies(restart=Restart(max=3))))
    over = world.start()
    await all_up(world)
    world.says(ev.TaskStepped, "worker:0", step=1)
    world.says(ev.CheckpointSaved, "worker:0", path="/ckpt/ckpt-1", step=30)
    world.says(ev.TaskStepped, "worker:0", step=42)
    world.exit("worker:1", signal=9)
    await world.until(lambda state: state.generation == 2 and state.phase is RunPhase.RUNNING)
    for task in ("worker:0", "worker:1"):
        world.says(ev.CheckpointRestored, task, path="/ckpt/ckpt-1")
    world.says(ev.TaskStepped, "worker:0", step=1)
    await world.until(lambda state: bool(state.resumed))
    [resumed] = world.said(ev.Resumed)
    assert (resumed.path, resumed.step, resumed.lost) == ("/ckpt/ckpt-1", 30, 12)
    world.says(ev.CheckpointSaved, "worker:0", path="/ckpt/ckpt-2", step=30)
    await world.until(lambda state: state.saved.get("/ckpt/ckpt-2") == 60)
    for task in ("worker:0", "worker:1"):
        world.exit(task)
    assert (await over).phase is RunPhase.SUCCEEDED


async def test_a_program_that_starts_at_zero_again_is_told_on():
    world = World(outline(workers=2, policies=Policies(restart=Restart(max=3))))
    world.start()
    await all_up(world)
    world.says(ev.TaskStepped, "worker:0", step=1)
    world.exit("worker:1", signal=9)
    await world.until(lambda state: state.generation == 2 and state.phase is RunPhase.RUNNING)
    world.says(ev.TaskStepped, "worker:0", step=1)
    await world.until(lambda state: bool(state.resumed))
    assert (world.lead.state.resumed[0].path, world.lead.state.resumed[0].step) == ("", 0)


async def test_workers_that_went_on_from_different_checkpoints_are_named():
    world = World(outline(workers=2, policies=Policies(restart=Restart(max=3))))
    world.start()
    await all_up(world)
    for task, path, step in (("worker:0", "/a/1", 10), ("worker:1", "/b/1", 20)):
        world.says(ev.CheckpointSaved, task, path=path, step=step)
    world.exit("worker:1", signal=9)
    await world.until(lambda state: state.generation == 2 and state.phase is RunPhase.RUNNING)
    for task, path in (("worker:0", "/a/1"), ("worker:1", "/b/1")):
        world.says(ev.CheckpointRestored, task, path=path)
        world.says(ev.TaskStepped, task, step=1)
    await world.until(lambda state: bool(state.notes))
    assert "worker:1 went on from 20 steps" in world.lead.state.notes[0].message


async def test_progress_makes_the_budget_whole_again():
    world = World(outline(workers=2, policies=Policies(restart=Restart(max=1))))
    world.start()
    for generation in (1, 2, 3):
        await world.until(lambda state, g=generation: state.generation == g and state.phase is RunPhase.RUNNING)
        world.says(ev.CheckpointSaved, "worker:0", path=f"/ckpt/{generation}", step=10)
        world.exit("worker:1", signal=9)
    await world.until(lambda state: state.generation == 4)
    assert len(world.said(ev.RestartOrdered)) == 3


async def test_each_kind_of_failure_has_a_budget_of_its_own():
    world = World(outline(workers=2, policies=Policies(restart=Restart(max=1))))
    over = world.start()
    for generation, how in enumerate(({"signal": 9}, {"signal": 11}, {"code": 1}, {"signal": 9}), start=1):
        await world.until(lambda state, g=generation: state.generation == g and state.phase is RunPhase.RUNNING)
        world.exit("worker:1", **how)
    state = await over
    assert state.phase is RunPhase.FAILED
    assert [past.culprit.kind for past in state.past] == ["infrastructure", "platform", "user"]


def _runs(state, task):
    return state.tasks[TaskId.parse(task)].phase is TaskPhase.RUNNING


async def test_a_stop_while_a_task_waits_for_its_next_attempt_ends_the_run():
    world = World(job())
    over = world.start()
    await all_up(world)
    for number in (1, 2):
        await world.until(lambda state, n=number: attempts(state)["worker:0"] == n and _runs(state, "worker:0"))
        world.exit("worker:0", signal=9)
    await world.until(lambda state: attempts(state)["worker:0"] == 3)
    world.lead.people.stop(by="a person", hard=False)
    state = await over
    assert (state.phase, state.end.exit_code) == (RunPhase.STOPPED, 4)
    assert "no word" not in state.end.cause


async def test_a_dispatcher_comes_back_alone_at_its_address_and_is_ended_after_the_last_worker():
    """R96."""
    world = World(outline(workers=2, dispatcher=Failure.ALONE, policies=Policies(restart=Restart(max=1))))
    over = world.start()
    await all_up(world)
    task = TaskId("dispatcher", 0)
    before = world.lead.state.tasks[task].address
    world.exit("dispatcher:0", signal=9)
    await world.until(lambda state: attempts(state)["dispatcher:0"] == 2 and _runs(state, "dispatcher:0"))
    assert world.lead.state.generation == 1
    assert world.lead.state.tasks[task].address == before
    world.exit("worker:0")
    await asyncio.sleep(3)
    assert _runs(world.lead.state, "dispatcher:0")
    world.exit("worker:1")
    state = await over
    assert state.phase is RunPhase.SUCCEEDED
    assert state.tasks[task].phase is TaskPhase.ENDED
