"""The whole group as a new generation: new ports, a budget, and an end when no restart would help."""

from __future__ import annotations

import asyncio
import dataclasses

import pytest

from phalanx import events as ev
from phalanx.names import TaskId
from phalanx.plan.outline import Role
from phalanx.plan.policies import Grace, Policies, Restart
from phalanx.states import RunPhase
from simulated import World, outline

pytestmark = pytest.mark.looptime

MWMS_VICTIM = ("UnavailableError: Collective ops is aborted by: Connection refused",)


def job(*, most=3, within=3600.0, **more):
    return outline(policies=Policies(restart=Restart(max=most, within=within)), **more)


def in_generation(number):
    return lambda state: state.generation == number and state.phase is RunPhase.RUNNING


async def test_a_killed_worker_brings_the_whole_group_back_on_new_ports():
    """R74, R75, R76: never one member alone, and never at the old addresses."""
    world = World(job(workers=2))
    over = world.start()
    await world.until(in_generation(1))
    first = {t.address for t in world.lead.state.tasks.values()}
    world.exit("worker:1", signal=9)
    await world.until(in_generation(2))
    second = {t.address for t in world.lead.state.tasks.values()}
    assert len(second) == 2
    assert not first & second
    for name in ("worker:0", "worker:1"):
        world.exit(name)
    state = await over
    assert (state.phase, state.end.exit_code) == (RunPhase.SUCCEEDED, 0)
    assert [past.culprit.task for past in state.past] == [TaskId("worker", 1)]
    assert world.records.plan.generation == 2


async def test_the_budget_is_spent_and_the_cause_says_so():
    world = World(job(workers=2, most=2))
    over = world.start()
    for generation in (1, 2, 3):
        await world.until(in_generation(generation))
        world.exit("worker:1", signal=9)
        await asyncio.sleep(0.1)
    state = await over
    assert (state.phase, state.end.exit_code) == (RunPhase.FAILED, 1)
    assert "SIGKILL" in state.end.cause
    assert "its budget is spent: restarted 2 times" in state.end.cause
    assert len(world.said(ev.RestartOrdered)) == 2


async def test_the_budget_is_new_once_its_window_has_passed():
    world = World(job(workers=2, most=1, within=600))
    over = world.start()
    for generation in (1, 2, 3):
        await world.until(in_generation(generation))
        await asyncio.sleep(700)
        world.exit("worker:1", signal=9)
    await world.until(in_generation(4))
    for name in ("worker:0", "worker:1"):
        world.exit(name)
    assert (await over).phase is RunPhase.SUCCEEDED


async def test_each_restart_in_a_row_waits_longer():
    world = World(job(workers=2, most=5))
    world.start()
    waits = []
    for generation in (1, 2, 3, 4):
        await world.until(in_generation(generation))
        world.exit("worker:1", signal=9)
        await world.until(lambda state, g=generation: len(state.past) == g)
        restart = world.lead.state.past[-1].restart
        waits.append(restart.at - restart.time)
    assert waits[0] == 0
    assert [round(wait) for wait in waits] == [0, 1, 2, 4]


async def test_an_import_error_is_not_tried_again():
    world = World(job(workers=2))
    over = world.start()
    await world.until(in_generation(1))
    world.exit("worker:1", code=1, said=("ModuleNotFoundError: No module named 'tensorboard'",))
    state = await over
    assert state.phase is RunPhase.FAILED
    assert "no restart mends that" in state.end.cause
    assert not state.past


async def test_the_same_words_twice_are_the_programs_own():
    world = World(job(workers=2))
    over = world.start()
    for generation in (1, 2):
        await world.until(in_generation(generation))
        await asyncio.sleep(30)
        world.exit("worker:1", code=1, said=("ValueError: bad batch 17",))
    state = await over
    assert state.phase is RunPhase.FAILED
    assert "the same words as before" in state.end.cause
    assert len(state.past) == 1


async def test_the_same_error_from_every_task_at_once_is_the_programs_own():
    world = World(job(workers=3))
    over = world.start()
    await world.until(in_generation(1))
    for number in range(3):
        world.exit(f"worker:{number}", code=1, said=("ValueError: no such column",))
    state = await over
    assert "every task failed with the same words" in state.end.cause


async def test_a_preempted_group_comes_back_for_free():
    world = World(job(workers=2, most=0))
    over = world.start()
    await world.until(in_generation(1))
    world.exit("worker:1", code=42)
    await world.until(in_generation(2))
    assert [order.counted for order in world.said(ev.RestartOrdered)] == [False]
    assert [order.grace for order in world.said(ev.StopOrdered)] == [10.0]  # the other is saving the same step
    for name in ("worker:0", "worker:1"):
        world.exit(name)
    assert (await over).phase is RunPhase.SUCCEEDED


async def test_a_stop_between_two_generations_ends_the_run():
    world = World(job(workers=2))
    over = world.start()
    for generation in (1, 2):
        await world.until(in_generation(generation))
        world.exit("worker:1", signal=9)
    await world.until(lambda state: len(state.past) == 2)
    world.lead.people.stop(by="a person", hard=False)
    state = await over
    assert (state.phase, state.end.exit_code) == (RunPhase.STOPPED, 4)


async def test_a_late_word_of_an_old_generation_changes_nothing():
    world = World(job(workers=2))
    world.start()
    await world.until(in_generation(1))
    world.exit("worker:1", signal=9)
    await world.until(in_generation(2))
    agent = world.agents[0]
    before = world.lead.state.tasks
    agent.link.say(
        ev.TaskExited(time=0.0, task=TaskId("worker", 0), host=0, generation=1, pid=1, code=1, last_lines=("old",))
    )
    await asyncio.sleep(5)
    assert world.lead.state.tasks == before


@pytest.mark.parametrize(
    ("how", "most", "grace"),
    [
        ({"signal": 9}, 3, 0.0),  # the kernel's word: nothing that a victim says could change it
        ({"signal": 11}, 3, 0.0),
        ({"code": 1, "said": ("ValueError: bad",)}, 3, 0.5),  # perhaps all fail alike
        ({"signal": 6, "said": MWMS_VICTIM}, 3, 0.5),  # it blames another: its words are wanted
        ({"signal": 9}, 0, 0.5),  # nothing follows that would have to wait
    ],
)
async def test_the_next_generation_waits_for_victims_only_where_their_words_may_matter(how, most, grace):
    world = World(job(workers=2, most=most))
    world.agents[0].deaf = True
    world.start()
    await world.until(in_generation(1))
    world.exit("worker:1", **how)
    await world.until(lambda _: bool(world.said(ev.CulpritNamed)))
    assert [stop.grace for stop in world.said(ev.StopOrdered)] == [grace]
    assert world.said(ev.CulpritNamed)[0].task == TaskId("worker", 1)


async def test_an_evaluator_keeps_its_grace_and_a_longer_one_that_was_asked_for_holds_for_all():
    patient = Policies(restart=Restart(max=3), grace=Grace(failure=4.0))
    for policies, graces in ((Policies(restart=Restart(max=3)), [0.0, 0.5]), (patient, [4.0])):
        world = World(outline(workers=2, evaluator=1, policies=policies))
        world.start()
        await world.until(in_generation(1))
        world.exit("worker:1", signal=9)
        await world.until(in_generation(2))
        assert [stop.grace for stop in world.said(ev.StopOrdered)] == graces


async def test_a_command_that_holds_the_generation_has_no_standby_and_that_is_said_once():
    changing = Role(type="worker", count=2, command=("python", "train.py", "--run-of", "{generation}"))
    world = World(dataclasses.replace(job(workers=2), roles=(changing,)))
    world.start()
    await world.until(in_generation(1))
    world.exit("worker:1", signal=9)
    await world.until(in_generation(2))
    notes = [note.message for note in world.said(ev.Noted)]
    assert notes == ["no standbys for worker: the command or environment holds {generation}"]
    assert not any(task.again for order in world.agents[0].orders for task in order.tasks)


async def test_who_is_preempted_in_its_first_seconds_again_and_again_is_let_go():
    """Exit 42 at once would else go round for ever, for free."""
    world = World(job(workers=1, most=0))
    over = world.start()
    for generation in range(1, 7):
        await world.until(in_generation(generation), within=100)
        world.exit("worker:0", code=42)
    state = await over
    assert state.phase is RunPhase.FAILED
    assert "in its first seconds 6 times in a row" in state.end.cause
    waits = [order.at - order.time for order in world.said(ev.RestartOrdered)]
    assert [round(wait) for wait in waits] == [0, 1, 2, 4, 9]


async def test_a_preempted_group_that_had_trained_meanwhile_comes_back_as_often_as_it_takes():
    world = World(job(workers=1, most=0))
    world.start()
    for generation in range(1, 12):
        await world.until(in_generation(generation), within=100)
        await asyncio.sleep(60)
        world.exit("worker:0", code=42)
    await world.until(in_generation(12), within=100)


async def test_a_task_that_is_frozen_while_the_job_succeeds_holds_nothing_up():
    world = World(job(workers=2))
    over = world.start()
    await world.until(in_generation(1))
    world.agents[0].deaf = True
    world.says(ev.TaskFroze, "worker:1", since=0.0)
    world.exit("worker:0")
    began = asyncio.get_running_loop().time()
    assert (await over).phase is RunPhase.SUCCEEDED
    assert asyncio.get_running_loop().time() - began < 5
