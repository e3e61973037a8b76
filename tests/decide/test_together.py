"""Several tasks fall at once, and their restarts are ordered one after the other: one event of the world is one."""

from __future__ import annotations

from builders import History, history
from phalanx import events as ev
from phalanx.decide.culprit import name_culprit
from phalanx.decide.restart import Verdict, judge
from phalanx.decide.together import TOGETHER
from phalanx.plan.policies import Restart

TASKS = ("chief:0", "worker:0", "worker:1", "ps:0", "ps:1")
FOLLOWS = ("UnavailableError: Socket closed",)
ONE = Restart(max=1, within=3600.0)


def trained(*tasks: str) -> History:
    """A ParameterServer job that has trained for a minute."""
    told = history(*(tasks or TASKS), strategy="ps").joined().bound().started().listening()
    return told.at(60.0)


def fell(told: History, task: str, at: float, **how: object) -> History:
    """It ends, and is named."""
    told.at(at).exited(task, **({"signal": 9} | how))
    named = name_culprit(told.state, told.now)
    assert named is not None
    assert str(named.task) == task
    return told.say(named)


def restarted(told: History, *tasks: str, policy: Restart = ONE) -> Verdict:
    """As the lead orders it."""
    verdict = judge(told.state, policy, told.now)
    assert verdict.again
    told.restarted(*tasks, why=verdict.why, wait=verdict.at - told.now, counted=verdict.counted, along=verdict.along)
    return verdict


def verdict(told: History, policy: Restart = ONE) -> Verdict:
    return judge(told.state, policy, told.now)


def first(told: History | None = None, **how: object) -> History:
    """worker:0 is killed, and its next attempt is ordered at once."""
    told = fell(told or trained(), "worker:0", 60.0, **how)
    restarted(told, "worker:0")
    return told


def test_a_worker_and_a_ps_that_are_killed_at_once_cost_one_restart():
    told = fell(first(), "ps:0", 60.4)
    found = verdict(told)
    assert (found.again, found.counted, found.along) == (True, False, True)
    assert found.at == told.now
    assert found.why == "it fell with worker:0: restart 1 of 1"


def test_all_tasks_of_a_job_that_are_killed_one_after_the_other_cost_one_restart():
    told = first()
    for number, task in enumerate(("worker:1", "ps:1", "ps:0", "chief:0")):
        fell(told, task, 60.3 + 0.1 * number)
        assert not restarted(told, task).counted
    assert sum(past.restart.counted for past in told.state.past) == 1


def test_those_that_fall_together_wait_together():
    """The pause before a second restart is that of the first of them, and no longer one."""
    told, twice = first(), Restart(max=3)
    told.at(90.0).started("worker:0")
    fell(told, "worker:0", 100.0)
    pause = restarted(told, "worker:0", policy=twice).at
    assert pause > told.now
    fell(told, "ps:0", 100.4)
    assert verdict(told, twice).at == pause


def test_what_falls_later_is_another_event():
    assert not verdict(fell(first(), "ps:0", 60.0 + TOGETHER + 0.1)).again


def test_who_was_started_again_meanwhile_and_falls_anew_is_another_event():
    told = first().at(60.5).started("worker:0")
    assert not verdict(fell(told, "worker:0", 61.0)).again


def test_a_new_attempt_that_falls_beside_another_does_not_ride_along():
    told = first().at(60.2).started("worker:0").at(60.5).exited("worker:0", signal=9)
    told.exited("ps:0", signal=9)
    told.say(name_culprit(told.state, told.now))
    assert not verdict(told).again


def test_each_task_rides_along_once():
    told = first()
    fell(told, "worker:1", 60.4)
    restarted(told, "worker:1")
    told.at(60.6).started("worker:1")
    assert not verdict(fell(told, "worker:1", 60.9)).again


def test_another_kind_of_failure_is_another_event_unless_it_blames_a_peer():
    """What a ps that was killed did to a worker is no fault of the worker's program."""
    assert verdict(fell(first(), "worker:1", 60.5, signal=None, code=1, said=("ValueError: x",))).counted
    assert verdict(fell(first(), "worker:1", 60.5, signal=None, code=1, said=FOLLOWS)).along


def test_the_same_words_of_two_tasks_at_once_are_one_failure_and_said_again_later_the_programs_own():
    said = {"signal": None, "code": 1, "said": ("OSError: [Errno 116] Stale file handle",)}
    told = fell(first(**said), "worker:1", 60.5, **said)
    assert restarted(told, "worker:1", policy=Restart(max=3)).along
    told.at(61.0).started("worker:0", "worker:1")
    found = verdict(fell(told, "worker:0", 62.0, **said), Restart(max=3))
    assert (found.again, found.why) == (False, "it failed with the same words as before")


def test_a_program_that_cannot_be_read_is_no_event_of_the_world():
    said = {"signal": None, "code": 1, "said": ("SyntaxError: invalid syntax",)}
    assert verdict(fell(first(), "worker:1", 60.5, **said)).why == "no restart mends that"


def test_tasks_that_were_frozen_before_the_first_was_restarted_are_of_the_same_event():
    """The second one's end comes when it has been found, its stacks are written and it was killed."""
    told = trained()
    for task in ("worker:0", "ps:0"):
        told.lives(ev.TaskFroze, task, since=told.now)
    fell(told, "worker:0", 65.0)
    restarted(told, "worker:0")
    assert verdict(fell(told, "ps:0", 72.0)).along


def test_two_tasks_that_never_listened_are_one_failure_and_one_that_does_not_start_again_is_past_help():
    told = trained()
    for number, task in enumerate(("worker:0", "worker:1")):
        told.at(70.0 + number).culprit(task, "never listened", sign="start").exited(task, signal=9, stopped=True)
        assert restarted(told, task).along is bool(number)
    told.at(75.0).started("worker:0").at(140.0).culprit("worker:0", "never listened", sign="start")
    told.exited("worker:0", signal=9, stopped=True)
    assert verdict(told).why == "it did not start the time before either"


def test_an_evaluator_and_a_worker_pay_from_budgets_of_their_own():
    told = trained(*TASKS, "evaluator:0")
    fell(told, "evaluator:0", 60.0)
    restarted(told, "evaluator:0")
    found = verdict(fell(told, "worker:0", 60.4))
    assert (found.again, found.counted, found.along) == (True, True, False)


def test_workers_that_are_preempted_together_are_in_no_circle():
    """Seven that leave at once in their first seconds have left once."""
    workers = [f"worker:{number}" for number in range(7)]
    told = history("chief:0", *workers, "ps:0", strategy="ps").joined().bound().at(1.0).started()
    for number, task in enumerate(workers):
        fell(told, task, 2.0 + 0.1 * number, signal=None, code=143)
        found = restarted(told, task)
        assert (found.counted, found.along, found.at) == (False, number > 0, told.now)


def test_the_steps_that_a_failure_cost_are_known_though_the_chief_fell_twice():
    told = trained().at(59.0).lives(ev.TaskStepped, "chief:0", step=42)
    fell(told, "chief:0", 60.0)
    restarted(told, "chief:0")
    fell(told.at(60.1).started("chief:0"), "ps:0", 60.4)
    restarted(told, "chief:0", "ps:0")
    assert [past.step for past in told.state.past] == [42, 42]
