"""What became of a fault, from made-up histories."""

from __future__ import annotations

import pytest

from builders import DAWN, History, history, running
from phalanx import events as ev
from phalanx.chaos.compare import Comparison
from phalanx.chaos.fault import Fault
from phalanx.chaos.story import Story
from phalanx.chaos.watch import Outcome, Told, Watch, missed, refused
from phalanx.chaos.words import render
from phalanx.names import TaskId
from phalanx.states import fold_all


def told_of(
    fault: Fault, history: History, *, at: float = 5.0, waited: float = 0.0, lifted: float | None = None
) -> Told:
    """The fault comes `at` seconds after dawn; each later event is seen as it happens."""
    before = [record for record in history.records if record.event.time <= DAWN + at]
    state = fold_all(before)
    watch = Watch(fault, state, now=at, since=2.0)
    if lifted is not None:
        watch.lifted(lifted)
    for number, record in enumerate(history.records[len(before) :], start=len(before) + 1):
        watch.see(record.event, fold_all(history.records[:number]), record.event.time - DAWN)
    if waited:
        watch.wait(at + waited, settle=3.0, patience=30.0)
    return watch.told


KILL = Fault(kind="kill", target="worker:1")


def after_kill(culprit: str = "worker:1") -> History:
    told = running().at(5.1).exited("worker:1", signal=9).ordered("worker:0")
    return told.at(5.2).exited("worker:0", signal=9, stopped=True).culprit(culprit, "killed")


def test_a_killed_worker_is_detected_by_its_exit_and_has_recovered_when_all_listen_again():
    told = told_of(KILL, after_kill().restarted().at(6).bound().at(6.5).started().at(7).listening())
    assert (told.outcome, told.sign, told.blamed) == (Outcome.RECOVERED, "exit", "worker:1")
    assert (told.detected, told.recovered, told.struck) == (pytest.approx(0.1), pytest.approx(2.0), 3.0)


def test_where_steps_are_told_it_has_recovered_with_the_first_new_one():
    before = running().at(4).lives(ev.TaskStepped, "worker:0", step=9).at(5.1).exited("worker:1", signal=9)
    again = before.culprit("worker:1", "killed").restarted().at(6).bound().started().at(7).listening()
    assert told_of(KILL, again).outcome is Outcome.OPEN
    assert told_of(KILL, again.at(8).lives(ev.TaskStepped, "worker:0", step=1)).recovered == pytest.approx(3.0)


def test_the_end_of_a_run_without_a_budget_is_the_one_expected_cause():
    told = told_of(KILL, after_kill().ended("failed", 1, "worker:1 was killed"))
    assert (told.outcome, told.why) == (Outcome.ENDED, "worker:1 was killed")
    assert told.outcome.good


def test_another_culprit_is_not_what_was_done():
    ended = told_of(KILL, after_kill("worker:0").ended("failed", 1, "worker:0 failed"))
    back = told_of(KILL, after_kill("worker:0").restarted().at(6).bound().started().listening())
    assert (ended.outcome, back.outcome, back.blamed) == (Outcome.MISBLAMED, Outcome.MISBLAMED, "worker:0")


def test_a_lone_attempt_that_comes_back_while_the_others_go_on_is_a_recovery():
    told = running().at(5.1).exited("worker:1", signal=9).culprit("worker:1", "killed")
    alone = ev.RestartOrdered(time=told.now, generation=1, at=told.now, why="alone", tasks=(TaskId("worker", 1),))
    told.say(alone).at(6).again("worker:1").started("worker:1")
    assert told_of(KILL, told).outcome is Outcome.OPEN, "it has listened before"
    assert told_of(KILL, told.at(7).listening("worker:1")).outcome is Outcome.RECOVERED


def beside_a_server() -> History:
    """Two workers and a ps, of which the chief alone makes steps, as `ParameterServerStrategy` has it."""
    told = history("chief:0", "worker:0", "worker:1", "ps:0", strategy="ps").at(0.5).joined()
    told.at(1.0).bound().at(1.5).started().at(2.0).listening()
    return told.at(4).lives(ev.TaskStepped, "chief:0", step=40)


def test_a_worker_beside_a_server_has_recovered_when_it_listens_since_it_makes_no_steps_of_its_own():
    told = beside_a_server().at(5.1).exited("worker:1", signal=9).culprit("worker:1", "killed").restarted("worker:1")
    told.at(5.3).started("worker:1")
    assert told_of(KILL, told).outcome is Outcome.OPEN, "it has listened before"
    found = told_of(KILL, told.at(5.5).listening("worker:1"))
    assert (found.outcome, found.recovered) == (Outcome.RECOVERED, pytest.approx(0.5))


def test_a_server_has_recovered_with_the_next_step_of_the_chief_that_starts_again_with_it():
    told = beside_a_server().at(5.1).exited("ps:0", signal=9).exited("chief:0", signal=15, stopped=True)
    told.culprit("ps:0", "killed").restarted("chief:0", "ps:0").at(6).started("chief:0", "ps:0")
    told.listening("chief:0", "ps:0")
    kill = Fault(kind="kill", target="ps:0")
    assert told_of(kill, told).outcome is Outcome.OPEN
    assert told_of(kill, told.at(7).lives(ev.TaskStepped, "chief:0", step=1)).recovered == pytest.approx(2.0)


def test_a_run_that_succeeds_before_all_run_again_has_recovered_and_was_not_unharmed():
    told = beside_a_server().at(5.1).exited("worker:1", signal=9).culprit("worker:1", "killed").restarted("worker:1")
    found = told_of(KILL, told.at(5.2).ended("succeeded", 0, "chief:0 exited with code 0"))
    assert (found.outcome, found.blamed, found.recovered) == (Outcome.RECOVERED, "worker:1", None)


def test_an_onlooker_that_is_given_up_is_over_though_nothing_starts_again():
    told = history("worker:0", "worker:1", "evaluator:0").joined().bound().started().at(2).listening()
    told.at(5.1).exited("evaluator:0", signal=9).culprit("evaluator:0", "killed")
    told.say(ev.TaskGivenUp(time=told.now, generation=1, task=TaskId("evaluator", 0), why="no restart is left"))
    found = told_of(Fault(kind="kill", target="evaluator:0"), told)
    assert (found.outcome, found.blamed) == (Outcome.RECOVERED, "evaluator:0")


@pytest.mark.parametrize(
    ("fault", "lifted", "outcome"),
    [
        (Fault(kind="stop", target="worker:1"), None, "not shown"),
        (Fault(kind="stall", target="worker:1"), None, "not shown"),
        (Fault(kind="stop", target="worker:1", value=2.0), None, "not shown"),
        (Fault(kind="stop", target="worker:1", value=0.2), 5.2, "unharmed"),
        (Fault(kind="agent", target="0"), None, "not shown"),
        (Fault(kind="scale", value=1.0), None, "not shown"),
        (Fault(kind="lead"), None, "not shown"),
        (Fault(kind="refuse", target="worker:0-worker:1"), None, "unharmed"),
        (Fault(kind="disk"), None, "unharmed"),
        (Fault(kind="launcher"), None, "unharmed"),
    ],
)
def test_what_has_to_show_and_has_not_before_the_run_succeeds_is_not_told_as_unharmed(fault, lifted, outcome):
    told = running().at(6).succeeded().ended("succeeded", 0, "worker:0 exited with code 0")
    found = told_of(fault, told, lifted=lifted)
    assert found.outcome.value == outcome
    assert found.outcome.good
    assert bool(found.why) == (outcome == "not shown")


def stopped_and_back(name: str = "worker:0") -> History:
    told = running().at(5.5).lives(ev.TaskFroze, "worker:0", since=DAWN + 5).culprit(name, "state T", sign="frozen")
    told.exited("worker:0", "worker:1", signal=9, stopped=True).restarted()
    return told.at(6).bound().started()


@pytest.mark.parametrize("own", ["worker:0", "worker:1"])
def test_a_fault_that_was_rightly_named_is_not_charged_with_what_the_script_does_after_the_restart(own):
    told = stopped_and_back().at(8).exited(own, code=1, said=("NameError: no",)).culprit(own, "exited with code 1")
    found = told_of(Fault(kind="stop", target="worker:0"), told.ended("failed", 1, f"{own}: NameError: no"))
    assert (found.outcome, found.blamed, found.sign) == (Outcome.FOUND, "worker:0", "stopped")
    assert found.why == "rightly named; what failed after the restart is the run's own"
    assert not story(found, result="failed").good, "a run that fails by itself is not as it should be"


def test_a_wrong_name_stays_wrong_whatever_is_named_later():
    told = stopped_and_back("worker:1").at(8).exited("worker:0", code=1).culprit("worker:0", "exited with code 1")
    found = told_of(Fault(kind="stop", target="worker:0"), told.ended("failed", 1, "worker:0: NameError: no"))
    assert (found.outcome, found.blamed) == (Outcome.MISBLAMED, "worker:1")


def test_a_host_that_the_next_generation_waits_for_in_vain_is_what_ended_the_run():
    told = running(hosts=2).at(5.1).lost(1, "its agent has ended").culprit(None, "host lost", host=1)
    told.exited("worker:0", signal=9, stopped=True).restarted().at(9).culprit(None, "no such host came", host=None)
    found = told_of(Fault(kind="agent", target="1"), told.ended("failed", 3, "1 of 2 hosts"))
    assert (found.outcome, found.blamed) == (Outcome.ENDED, "host 1")


def test_a_lost_host_is_the_agents_death():
    told = running(hosts=2).at(5.1).lost(1, "its agent has ended").culprit(None, "host lost", host=1)
    found = told_of(Fault(kind="agent", target="1"), told.ended("failed", 3, "host n1 was lost"))
    assert (found.outcome, found.sign, found.blamed) == (Outcome.ENDED, "host lost", "host 1")


def test_a_stop_that_ends_by_itself_may_pass_and_one_that_does_not_must_be_found():
    brief = Fault(kind="stop", target="worker:1", value=1.0)
    assert told_of(brief, running(), lifted=6.0, waited=3.5).outcome is Outcome.OPEN
    assert told_of(brief, running(), lifted=6.0, waited=4.5).outcome is Outcome.UNHARMED
    for_ever = Fault(kind="stop", target="worker:1")
    assert told_of(for_ever, running(), waited=29.0).outcome is Outcome.OPEN
    assert told_of(for_ever, running(), waited=31.0).outcome is Outcome.HUNG
    assert told_of(for_ever, running().at(7).lives(ev.TaskFroze, "worker:1", since=DAWN + 5)).sign == "stopped"


@pytest.mark.parametrize("kind", ["clock", "disk"])
def test_what_nobody_should_notice_is_a_disturbance_when_something_ends_of_it(kind):
    fault = Fault(kind=kind)
    assert told_of(fault, running(), lifted=7.0, waited=6.0).outcome is Outcome.UNHARMED
    told = running(hosts=2).at(6).lost(1).culprit(None, "host lost", host=1)
    assert told_of(fault, told.ended("failed", 3, "lost")).outcome is Outcome.DISTURBED


def test_a_launchers_death_ends_an_attached_run_and_no_detached_one():
    fault = Fault(kind="launcher")
    assert told_of(fault, running().at(6).stop("its launcher").at(9).ended("stopped", 4, "x")).outcome is Outcome.ENDED
    assert told_of(fault, running(), waited=4.0).outcome is Outcome.UNHARMED


def test_a_lead_that_nobody_replaces_is_not_taken_for_unharmed():
    watch = Watch(Fault(kind="lead"), running().state, now=5.0, since=2.0)
    watch.wait(20.0, settle=3.0, patience=30.0)
    assert watch.told.outcome is Outcome.OPEN
    watch.lost("no lead has answered")
    assert watch.told.outcome is Outcome.LOST
    assert not watch.told.outcome.good


def test_a_cut_after_which_a_task_stands_still_has_not_passed_yet():
    """TensorFlow raises at once, and may take longer than the settling time to end."""
    cut = Fault(kind="refuse", target="worker:0-worker:1")
    still = running().at(7).lives(ev.TaskStalled, "worker:1", since=DAWN + 5, step=43, longest=0.1)
    assert told_of(cut, still, waited=9.0).outcome is Outcome.OPEN
    assert told_of(cut, still.at(8).lives(ev.TaskAwake, "worker:1"), waited=16.0).outcome is Outcome.UNHARMED
    gone = running().at(7).lives(ev.TaskStalled, "worker:1", since=DAWN + 5, step=43, longest=0.1)
    gone.at(9).exited("worker:1", code=1).culprit("worker:1", "exited with code 1").restarted()
    assert told_of(cut, gone.at(10).bound().started().listening()).outcome is Outcome.RECOVERED


def taken_over() -> History:
    told = running()
    told.epoch = 2
    return told.at(9).say(
        ev.RunStarted(time=told.now, run=told.run, name="digits", tasks=told.tasks, strategy="mwms", hosts=1)
    )


def test_a_new_lead_is_the_recovery_from_a_lost_one_once_training_has_not_noticed_for_a_while():
    lead = Fault(kind="lead")
    assert told_of(lead, taken_over(), waited=6.0).outcome is Outcome.OPEN
    found = told_of(lead, taken_over(), waited=8.0)
    assert (found.outcome, found.sign, found.recovered) == (Outcome.RECOVERED, "new lead", pytest.approx(4.0))
    ended = told_of(lead, taken_over().at(9.5).ended("succeeded", 0, "worker:0 exited with code 0"))
    assert (ended.outcome, ended.recovered) == (Outcome.RECOVERED, pytest.approx(4.0))


def test_a_new_lead_under_which_training_starts_again_is_a_disturbance():
    told = taken_over().at(9.5).exited("worker:1", signal=9).culprit("worker:1", "killed").restarted()
    assert told_of(Fault(kind="lead"), told.at(10).bound().started().listening()).outcome is Outcome.DISTURBED


def resized(workers: int) -> History:
    told = running().at(5.5)
    told.say(ev.ResizeOrdered(time=told.now, generation=1, before=2, workers=workers, why="scaled"))
    told.ordered("worker:0", "worker:1").at(6).exited("worker:0", "worker:1", code=143, stopped=True).restarted()
    told.tasks = told.tasks[:workers]
    return told.at(7).bound().at(8).started().at(9).listening()


def test_a_scaled_run_has_recovered_in_the_size_that_was_asked_for_and_in_no_other():
    found = told_of(Fault(kind="scale", value=1.0), resized(1))
    assert (found.outcome, found.sign, found.recovered) == (Outcome.RECOVERED, "resize", pytest.approx(4.0))
    assert told_of(Fault(kind="scale", value=3.0), resized(1)).outcome is Outcome.DISTURBED
    assert told_of(Fault(kind="scale", value=1.0), running(), waited=20.0).outcome is Outcome.OPEN


def test_a_host_that_nobody_misses_is_hung_even_where_another_one_joins():
    assert (
        told_of(Fault(kind="agent", target="0", value=1.0), running(), lifted=6.0, waited=31.0).outcome is Outcome.HUNG
    )


def story(*told: Told, result: str = "succeeded", comparison: Comparison | None = None, cause: str = "") -> Story:
    return Story(
        run="digits-1130-070000",
        folder="/runs/digits-1130-070000",
        seed=7,
        result=result,
        cause=cause,
        told=told,
        restarts=1,
        took=34.1,
        reference="digits-1130-065900",
        reference_result="succeeded",
        reference_took=21.0,
        comparison=comparison,
    )


GOOD = told_of(KILL, after_kill().restarted().at(6).bound().at(6.5).started().at(7).listening())


def test_the_report_of_a_good_and_of_a_bad_run(golden):
    same = Comparison(lines=12, last="accuracy 0.972")
    other = Comparison(lines=12, last="accuracy 0.972", difference="`accuracy 0.9` instead of `accuracy 0.972`")
    bad = told_of(KILL, after_kill("worker:0").restarted().at(6).bound().started().listening())
    never = missed(Fault(kind="clock", value=-60.0), "the run ended before its moment")
    cannot = refused(Fault(kind="stall", target="worker:0"), "worker:0 cannot be made to stall")
    golden("chaos/good.txt", render(story(GOOD, comparison=same)))
    golden("chaos/bad.txt", render(story(GOOD, bad, never, cannot, comparison=other)))
    stop = Fault(kind="stop", target="worker:0")
    failed = stopped_and_back().at(8).exited("worker:1", code=1).culprit("worker:1", "exited with code 1")
    found = told_of(stop, failed.ended("failed", 1, "worker:1 exited with code 1"))
    unshown = told_of(Fault(kind="lead"), running().at(6).ended("succeeded", 0, "worker:0 exited with code 0"))
    golden("chaos/own.txt", render(story(unshown, found, result="failed", cause="worker:1 exited with code 1")))


def test_a_story_is_good_only_when_every_fault_and_the_result_are():
    same, other = Comparison(lines=1, last="x"), Comparison(lines=1, last="x", difference="y")
    ended = told_of(KILL, after_kill().ended("failed", 1, "worker:1 was killed"))
    assert story(GOOD, comparison=same).good
    assert not story(GOOD, comparison=other).good
    assert not story(GOOD, result="failed").good, "it failed, and no fault is the cause"
    assert story(GOOD, ended, result="failed").good
    assert not story(GOOD, missed(KILL)).good
    plain = story(GOOD, comparison=same).to_json()
    assert (plain["version"], plain["good"], plain["faults"][0]["outcome"]) == (1, True, "recovered")
