"""What becomes of a run when a task outside its cluster falls, ends, or never listens (R96)."""

from __future__ import annotations

import pytest

from builders import History, history
from phalanx import events as ev
from phalanx.decide.culprit import name_culprit
from phalanx.decide.listening import deserted, not_listening
from phalanx.decide.next_step import Say, Stop, Wake, next_step
from phalanx.decide.restart import judge
from phalanx.decide.unit import failing_unit, only_looks_on, purse
from phalanx.names import TaskId
from phalanx.plan.policies import Health, Policies, Restart

HUB = TaskId("dispatcher", 0)
ONE = Restart(max=1)


def served(failure: str = "alone", *, must_listen: bool = False, strategy: str = "mwms") -> History:
    """Two workers that train, and a dispatcher."""
    tasks = ("worker:0", "worker:1", "dispatcher:0")
    told = history(*tasks, strategy=strategy, must_listen=must_listen, outside={"dispatcher": failure})
    return told.joined().bound().started().at(10)


def fell(told: History, task: str = "dispatcher:0") -> History:
    told.exited(task, signal=9)
    named = name_culprit(told.state, told.now)
    assert named is not None
    return told.say(named)


@pytest.mark.parametrize("failure", ["alone", "ignore"])
def test_it_falls_alone_under_any_strategy(failure):
    for strategy in ("mwms", "ps", "none"):
        assert failing_unit(fell(served(failure, strategy=strategy)).state) == {HUB}


def test_it_takes_everybody_where_the_job_says_so():
    state = fell(served("group")).state
    assert failing_unit(state) == frozenset(state.tasks)


def test_one_that_the_job_can_do_without_only_looks_on():
    assert only_looks_on(served("ignore").state, frozenset({HUB}))
    assert not only_looks_on(served("alone").state, frozenset({HUB}))


def test_it_pays_for_its_restarts_and_leaves_the_training_its_own():
    told = fell(served())
    told.restarted("dispatcher:0", why=judge(told.state, ONE, told.now).why).started("dispatcher:0")
    worker = fell(told.at(20), "worker:1")
    assert judge(worker.state, ONE, worker.now).again
    assert purse(worker.state, failing_unit(worker.state)) == frozenset()


def test_without_a_restart_left_it_ends_the_job():
    told = fell(served()).restarted("dispatcher:0", why="restart 1 of 1").started("dispatcher:0").at(20)
    verdict = judge(fell(told).state, ONE, told.now)
    assert not verdict.again
    assert "its budget is spent" in verdict.why
    [stop] = next_step(told.state, Policies(restart=ONE), told.now)
    assert isinstance(stop, Stop)
    assert set(stop.tasks) == {TaskId("worker", 0), TaskId("worker", 1)}


def test_without_a_restart_left_the_job_goes_on_where_it_can_do_without():
    told = fell(served("ignore")).restarted("dispatcher:0", why="restart 1 of 1").started("dispatcher:0").at(20)
    [said] = next_step(fell(told).state, Policies(restart=ONE), told.now)
    assert isinstance(said, Say)
    assert isinstance(said.event, ev.TaskGivenUp)


def test_that_it_does_not_listen_is_noted_and_nobody_is_blamed():
    told = served(must_listen=True).listening("worker:0", "worker:1").at(400)
    said = not_listening(told.state, Health(start=300), told.now)
    assert isinstance(said, ev.Noted)
    assert "dispatcher:0" in said.message
    assert not_listening(told.say(said).state, Health(start=300), told.now) is None


def test_a_worker_that_does_not_listen_is_blamed_and_not_the_dispatcher():
    told = served(must_listen=True).at(400)
    told.say(ev.StacksOrdered(time=told.now - 3, generation=1, tasks=(), by="phalanx"))
    blamed = not_listening(told.state, Health(start=300), told.now)
    assert isinstance(blamed, ev.CulpritNamed)
    assert (blamed.task, blamed.alike) == (TaskId("worker", 0), (TaskId("worker", 1),))


def test_a_server_that_ends_well_while_others_need_it_is_noted_once():
    told = served().exited("dispatcher:0")
    said = deserted(told.state, told.now)
    assert said is not None
    assert said.message.startswith("dispatcher:0 has ended (exit 0): nobody answers at 10.0.0.1:22102")
    assert deserted(told.say(said).state, told.now) is None


def test_after_success_it_serves_whoever_still_trains_and_is_ended_then():
    told = served().exited("worker:0")
    told.say(ev.LeaderSucceeded(time=told.now, generation=1, task=TaskId("worker", 0)))
    assert all(isinstance(action, Wake) for action in next_step(told.state, Policies(), told.now + 0.1))
    told.at(12).exited("worker:1")
    [stop] = next_step(told.state, Policies(), told.now + 0.1)
    assert isinstance(stop, Stop)
    assert stop.tasks == (HUB,)


def test_after_success_a_worker_that_would_not_die_keeps_nobody():
    told = served().exited("worker:0")
    told.say(ev.LeaderSucceeded(time=told.now, generation=1, task=TaskId("worker", 0)))
    told.say(
        ev.StopOrdered(
            time=told.now, generation=1, tasks=(TaskId("worker", 1),), grace=10, reason="the job has succeeded"
        )
    )
    assert HUB not in [
        t for a in next_step(told.state, Policies(), told.now + 1) if isinstance(a, Stop) for t in a.tasks
    ]
    [stop] = next_step(told.state, Policies(), told.now + 20)
    assert isinstance(stop, Stop)
    assert stop.tasks == (HUB,)


def test_servers_that_never_end_by_themselves_are_ended_without_a_word_about_the_time_they_took():
    told = history("chief:0", "worker:0", "ps:0", strategy="ps").joined().bound().started().at(10).exited("chief:0")
    told.say(ev.LeaderSucceeded(time=told.now, generation=1, task=TaskId("chief", 0)))
    [stop] = next_step(told.state, Policies(), told.now + 0.01)
    assert isinstance(stop, Stop)
