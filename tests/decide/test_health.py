"""Who is stuck, by made-up histories: each kind told apart, and no alarm while signs come."""

from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from builders import DAWN, History, history, running
from phalanx import events as ev
from phalanx.decide.hang import AHEAD, STACKS, Dump
from phalanx.decide.health import patience, stacks_first, unhealthy
from phalanx.decide.next_step import Say, Stop, Wake, next_step
from phalanx.names import TaskId
from phalanx.plan.policies import Health, Policies

HEALTH = Health(start=60.0, silence=20.0, hang=30.0, finish=100.0)
BOUND = DAWN + 1.0


def up(*tasks: str, strategy: str) -> History:
    told = history(*tasks, strategy=strategy).at(0.5).joined().at(1.0).bound()
    return told.at(1.5).started().at(2.0).listening()


def named(told: History, seconds: float, health: Health = HEALTH) -> ev.CulpritNamed | None:
    found = unhealthy(told.state, health, DAWN + seconds)
    return found if isinstance(found, ev.CulpritNamed) else None


def dumped(told: History, seconds: float) -> History:
    """The stacks are asked for, as a hang wants them."""
    ids = tuple(TaskId.parse(task) for task in ("worker:0", "worker:1"))
    return told.at(seconds).say(ev.StacksOrdered(time=told.now, generation=1, tasks=ids, by="phalanx"))


def stepping(*, steps: int = 50, at: float = 100.0) -> History:
    """Two workers that have trained until then."""
    told = running().at(5).lives(ev.TaskStepped, "worker:0", step=1).lives(ev.TaskStepped, "worker:1", step=1)
    return told.at(at).lives(ev.TaskStepped, "worker:0", step=steps).lives(ev.TaskStepped, "worker:1", step=steps)


def stalled(told: History, task: str, *, since: float, waits: bool, step: int = 50, **more: object) -> History:
    about = {"step": step, "longest": 0.2} | more
    return told.lives(ev.TaskStalled, task, since=DAWN + since, waits=waits, **about)


# Frozen ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("task", ["worker:0", "worker:1"])
def test_a_frozen_task_is_the_culprit_after_a_moment(task):
    """Facts §3."""
    told = running().at(10).lives(ev.TaskFroze, task, since=DAWN + 8)
    assert named(told, 9.0) is None  # somebody may be about to continue it
    found = named(told, 10.0)
    assert found is not None
    assert (str(found.task), found.kind) == (task, "infrastructure")
    assert "state T" in found.cause


@pytest.mark.parametrize("task", ["chief:0", "worker:1", "ps:0"])
def test_a_frozen_task_of_a_parameter_server_job_is_too(task):
    """Facts §4: the coordinator hangs for ever, in silence."""
    told = up("chief:0", "worker:0", "worker:1", "ps:0", strategy="ps")
    found = named(told.at(10).lives(ev.TaskFroze, task, since=DAWN + 8), 10.0)
    assert found is not None
    assert str(found.task) == task


def test_one_that_goes_on_is_forgiven():
    told = running().at(10).lives(ev.TaskFroze, "worker:1", since=DAWN + 8).lives(ev.TaskAwake, "worker:1")
    assert named(told, 11.0) is None


def test_steps_that_are_read_from_a_frozen_process_do_not_thaw_it():
    told = running().at(10).lives(ev.TaskFroze, "worker:1", since=DAWN + 8)
    assert named(told.lives(ev.TaskStepped, "worker:1", step=7), 10.5) is not None


# Silent ------------------------------------------------------------------------------------------------------------


def test_silence_counts_from_the_last_sign_of_life():
    told = running().at(15).lives(ev.TaskQuiet, "worker:1", since=DAWN + 10)
    assert unhealthy(told.state, HEALTH, DAWN + 15) == DAWN + 30 - AHEAD
    assert isinstance(unhealthy(told.state, HEALTH, DAWN + 29), Dump)
    dumped(told, 29)
    assert unhealthy(told.state, HEALTH, DAWN + 29.5) == DAWN + 30
    found = named(told, 31.0)
    assert found is not None
    assert str(found.task) == "worker:1"
    assert "dead file system" in found.hint


def test_a_silent_task_whose_stacks_tell_where_it_is_does_not_hang_in_a_dead_file_system():
    told = running().at(15).lives(ev.TaskQuiet, "worker:1", since=DAWN + 10)
    dumped(told, 29).lives(ev.StacksWritten, "worker:1", path="stacks/b", waits=False, at="train.py:30 in load")
    told.lives(ev.StacksWritten, "worker:0", path="stacks/a", waits=True)
    found = named(told, 30.0)
    assert found is not None
    assert "(it is at train.py:30 in load)" in found.cause
    assert found.hint == "its stacks are in stacks/b; raise --silence if it may be quiet for so long"


def test_a_program_that_we_know_nothing_of_may_sleep_unless_the_job_says_otherwise():
    told = running()
    quiet = [r for r in told.records if not isinstance(r.event, ev.TaskListening)]
    told.records = quiet
    told.at(15).lives(ev.TaskQuiet, "worker:1", since=DAWN + 10)
    dumped(told, 490)
    assert named(told, 500.0, dataclasses.replace(HEALTH, silence=None)) is None
    assert named(told, 500.0) is not None
    assert named(told, 500.0, dataclasses.replace(HEALTH, silence=0.0)) is None


def test_before_it_has_come_to_listen_no_silence_is_shorter_than_the_start():
    told = running()
    told.records = [r for r in told.records if not isinstance(r.event, ev.TaskListening)]
    told.at(5).lives(ev.TaskQuiet, "worker:1", since=DAWN + 2)
    assert unhealthy(told.state, HEALTH, DAWN + 30) == BOUND + 60 - AHEAD
    assert named(dumped(told, 60), 62.0) is not None


# Not listening -------------------------------------------------------------------------------------------------------


def half_up(*, waits: bool = True) -> History:
    """Nobody knows what the script does; worker 0 listens, and is stuck."""
    told = history(workers=2).at(0.5).joined().at(1.0).bound().at(1.5).started().at(2.0).listening("worker:0")
    return stalled(told.at(17), "worker:0", since=2, waits=waits, step=0)


def test_one_that_listens_and_waits_proves_that_the_others_must_come():
    """R20: the strategy is made where nobody reads its name; TensorFlow would wait for an hour."""
    told = half_up()
    asked = next_step(told.state, Policies(health=HEALTH), BOUND + 60 - AHEAD)
    assert any(isinstance(action, Dump) for action in asked)
    dumped(told, 60).lives(ev.StacksWritten, "worker:1", path="stacks/b", waits=False, at="lib.py:4 in make")
    told.lives(ev.StacksWritten, "worker:0", path="stacks/a", waits=True)
    (say,) = next_step(told.state, Policies(health=HEALTH), BOUND + 60)
    assert isinstance(say, Say)
    assert isinstance(say.event, ev.CulpritNamed)
    assert (str(say.event.task), say.event.sign) == ("worker:1", "start")
    assert "(it is at lib.py:4 in make)" in say.event.cause


def test_the_proof_may_come_after_the_note_that_nobody_listens():
    told = half_up().at(70).noted("not listening 60 s after the start: worker:1 (10.0.0.1:22101)")
    (say,) = next_step(dumped(told, 70).state, Policies(health=HEALTH), DAWN + 72.5)
    assert isinstance(say, Say)
    assert isinstance(say.event, ev.CulpritNamed)


@pytest.mark.parametrize("sign", ["nothing", "at work", "steps"])
def test_a_server_of_the_scripts_own_proves_nothing(sign):
    told = half_up(waits=sign != "at work")
    if sign == "nothing":
        told.lives(ev.TaskAwake, "worker:0")
    if sign == "steps":
        told.lives(ev.TaskStepped, "worker:0", step=1)
    (say,) = next_step(told.state, Policies(health=HEALTH), BOUND + 60)
    assert isinstance(say, Say)
    assert isinstance(say.event, ev.Noted)


# Hung --------------------------------------------------------------------------------------------------------------


def test_the_one_that_does_not_wait_is_the_culprit_of_a_hang():
    """R21: a worker in an endless loop; the others wait in a collective."""
    told = stalled(stalled(stepping().at(108), "worker:0", since=100, waits=True), "worker:1", since=101, waits=False)
    assert unhealthy(told.state, HEALTH, DAWN + 110) == DAWN + 131 - AHEAD
    asked = unhealthy(told.state, HEALTH, DAWN + 131 - AHEAD)
    assert isinstance(asked, Dump)
    dumped(told, 130)
    assert unhealthy(told.state, HEALTH, DAWN + 130.2) == DAWN + 131
    found = named(told, 130 + STACKS)
    assert found is not None
    assert (str(found.task), found.victims) == ("worker:1", (TaskId("worker", 0),))


def test_stacks_tell_a_sleeper_from_one_that_waits():
    """Both look alike from outside: blocked, no CPU, no bytes."""
    told = stalled(stalled(stepping().at(108), "worker:0", since=100, waits=True), "worker:1", since=100, waits=True)
    dumped(told, 129).lives(ev.StacksWritten, "worker:0", path="a", waits=True, at="train.py:9 in step")
    told.lives(ev.StacksWritten, "worker:1", path="b", waits=False, at="train.py:30 in load")
    found = named(told, 130.0)
    assert found is not None
    assert str(found.task) == "worker:1"
    assert "train.py:30 in load" in found.cause


def test_who_has_left_its_program_is_the_one_the_others_wait_for():
    """R60."""
    told = stalled(
        stepping().at(101).lives(ev.TaskDone, "worker:1", since=DAWN + 101).at(108), "worker:0", since=100, waits=True
    )
    found = named(dumped(told, 129), 131.0)
    assert found is not None
    assert str(found.task) == "worker:1"
    assert "end of its program" in found.cause


def test_one_that_exited_early_is_the_suspect_when_all_others_wait():
    """R60."""
    told = stalled(stepping().at(101).exited("worker:1").at(108), "worker:0", since=100, waits=True)
    found = named(dumped(told, 129), 131.0)
    assert found is not None
    assert str(found.task) == "worker:1"
    assert "finished early" in found.cause


def test_ten_times_the_longest_gap_before_is_no_hang():
    told = stepping().at(108)
    for task, waits in (("worker:0", True), ("worker:1", False)):
        stalled(told, task, since=100, waits=waits, longest=12.0)
    assert named(dumped(told, 200), 219.0) is None
    assert named(told, 221.0) is not None


@pytest.mark.parametrize("doing", ["tracing", "validation", "saving"])
def test_a_pause_that_the_runtime_knows_may_take_ten_times_as_long(doing):
    """Must show 5: long validation, long checkpoint; and what hangs within one is found all the same."""
    told = stalled(stepping().at(108), "worker:0", since=100, waits=False, doing=doing)
    stalled(told, "worker:1", since=100, waits=True)
    limit = 100 + 10 * HEALTH.hang
    assert named(dumped(told, limit - 2), limit - 0.5) is None
    assert named(dumped(told, limit - 0.5), limit + 2) is not None


def test_nobody_hangs_where_nobody_waits():
    """Each works by itself for long: an evaluation of its own."""
    told = stepping().at(108)
    for task in ("worker:0", "worker:1"):
        stalled(told, task, since=100, waits=False)
    assert named(dumped(told, 9000), 9999.0) is None


def test_before_the_first_step_only_the_start_deadline_counts():
    """Must show 5: 60 s of pause before the first step, slow start."""
    told = running().at(8)
    for task, waits in (("worker:0", True), ("worker:1", False)):
        stalled(told, task, since=2, waits=waits, step=0)
    health = dataclasses.replace(HEALTH, start=90.0)
    dumped(told, 88)
    assert named(told, 62.0, health) is None
    assert named(told, 91.5, health) is not None


def test_one_that_never_does_its_first_step_is_named_by_the_start_deadline():
    told = running().at(8).lives(ev.TaskStepped, "worker:0", step=1)
    stalled(told, "worker:0", since=8, waits=True, step=1)
    stalled(told, "worker:1", since=2, waits=False, step=0)
    dumped(told, 60)
    assert named(told, 60.9) is None
    found = named(told, 61.0 + STACKS)
    assert found is not None
    assert str(found.task) == "worker:1"


def test_tasks_that_do_not_know_each_other_never_hang():
    told = up("worker:0", "worker:1", strategy="none")
    for task in ("worker:0", "worker:1"):
        stalled(told, task, since=2, waits=task == "worker:0")
    assert named(dumped(told, 900), 999.0) is None


# Finishing ---------------------------------------------------------------------------------------------------------


def test_an_uneven_but_healthy_finish_is_no_alarm_within_its_window():
    """Must show 5."""
    told = stepping().at(110).exited("worker:1")
    assert named(told, 209.0) is None
    assert unhealthy(told.state, HEALTH, DAWN + 209.5) == Dump(tasks=(TaskId("worker", 0),))
    found = named(dumped(told, 209.5), 212.0)
    assert found is not None
    assert (str(found.task), "worker:1 had finished" in found.cause) == ("worker:0", True)


@pytest.mark.parametrize(("inside", "suspect"), [(True, "worker:1"), (None, "worker:1"), (False, "worker:0")])
def test_one_that_left_early_is_the_suspect_of_who_still_waits_for_it(inside, suspect):
    """R60: its peer is not late, it is kept waiting, unless its stacks show it somewhere else."""
    told = stalled(stepping().at(110).exited("worker:1").at(125), "worker:0", since=110, waits=True)
    health = dataclasses.replace(HEALTH, hang=0.0)
    dumped(told, 209.5).lives(ev.StacksWritten, "worker:0", path="a", waits=inside)
    found = named(told, 212.0, health)
    assert found is not None
    assert str(found.task) == suspect
    assert ("finished early" in found.cause) is (suspect == "worker:1")


def test_one_that_still_computes_long_after_its_peer_has_finished_is_late():
    told = stalled(stepping().at(110).exited("worker:1").at(125), "worker:0", since=110, waits=False)
    found = named(dumped(told, 209.5), 212.0, dataclasses.replace(HEALTH, hang=0.0))
    assert found is not None
    assert (str(found.task), "still ran" in found.cause) == ("worker:0", True)


def test_an_early_end_is_said_once_with_how_long_the_others_may_go_on():
    told = stepping().at(110).exited("worker:1")
    policies = Policies(health=dataclasses.replace(HEALTH, finish=600.0))
    assert not any(isinstance(one, Say) for one in next_step(told.state, policies, DAWN + 114))
    assert Wake(at=DAWN + 115) in next_step(told.state, policies, DAWN + 114)
    [said] = [one.event for one in next_step(told.state, policies, DAWN + 115) if isinstance(one, Say)]
    assert said.message == "worker:1 has finished (exit 0); worker:0 may go on for 10 min (--finish)"
    assert not any(isinstance(one, Say) for one in next_step(told.at(115).say(said).state, policies, DAWN + 130))


def test_a_leader_whose_program_has_ended_and_whose_process_stays_is_named():
    """R72."""
    told = stepping().at(110).lives(ev.TaskDone, "worker:0", since=DAWN + 110).at(111).exited("worker:1")
    found = named(dumped(told, 209.5), 212.0)
    assert found is not None
    assert str(found.task) == "worker:0"
    assert "end of its program 102 s ago, and its process is still there" in found.cause


def test_how_long_ago_a_program_ended_counts_from_its_end_and_not_from_the_word_of_it():
    told = stepping().at(115).lives(ev.TaskDone, "worker:0", since=DAWN + 110)
    found = named(dumped(told, 209.5), 212.0)
    assert found is not None
    assert "102 s ago" in found.cause


def test_after_success_a_program_that_has_ended_gets_the_grace_of_a_stop():
    told = stepping().at(110).lives(ev.TaskDone, "worker:1", since=DAWN + 110).exited("worker:0").succeeded()
    assert next_step(told.state, Policies(), DAWN + 112) == (Wake(at=DAWN + 115),)
    [say] = next_step(told.state, Policies(), DAWN + 115)
    assert isinstance(say, Say)
    assert isinstance(say.event, ev.Noted)
    assert "waits for worker:1 (for 5 s more at most): a thread that is no daemon" in say.event.message
    told.say(say.event)
    assert next_step(told.state, Policies(), DAWN + 115) == (Wake(at=DAWN + 120),)
    say, stop = next_step(told.state, Policies(), DAWN + 120)
    assert isinstance(stop, Stop)
    assert isinstance(say, Say)
    assert isinstance(say.event, ev.Noted)
    assert say.event.message.startswith("worker:1 ended by phalanx 10 s after the success: a thread that is no daemon")


@pytest.mark.parametrize("over", [True, False])
def test_the_finishing_window_is_kept_also_by_a_program_that_has_ended(over):
    told = stepping().at(110).exited("worker:0").succeeded()
    if over:
        told.at(114).lives(ev.TaskDone, "worker:1", since=DAWN + 114)
    policies = Policies(health=dataclasses.replace(HEALTH, finish=6.0))
    told.noted("the job has succeeded, and waits for worker:1")
    assert next_step(told.state, policies, DAWN + 115) == (Wake(at=DAWN + 116),)
    assert isinstance(next_step(told.state, policies, DAWN + 116)[-1], Stop)


# Acting ------------------------------------------------------------------------------------------------------------


def test_stacks_come_before_the_end_and_are_not_waited_for_longer_than_two_seconds():
    told = running().at(10).lives(ev.TaskFroze, "worker:1", since=DAWN + 8)
    [say] = next_step(told.state, Policies(), DAWN + 10)
    assert isinstance(say, Say)
    told.say(say.event)
    [dump] = next_step(told.state, Policies(), DAWN + 10)
    assert dump == Dump(tasks=(TaskId("worker", 0), TaskId("worker", 1)))
    dumped(told, 10)
    assert stacks_first(told.state, DAWN + 10) == DAWN + 10 + STACKS
    told.lives(ev.StacksWritten, "worker:0", path="a")
    assert next_step(told.state, Policies(), DAWN + 11) == (Wake(at=DAWN + 10 + STACKS),)
    [stop] = next_step(told.state, Policies(), DAWN + 10 + STACKS)
    assert isinstance(stop, Stop)


def test_the_agent_speaks_early_enough_for_every_limit():
    assert patience(Health()) == 15.0
    assert patience(Health(hang=8.0)) == 2.0
    assert patience(Health(silence=0.0, hang=0.0)) == 15.0


@settings(deadline=None)
@given(
    st.lists(st.tuples(st.floats(0.1, 15.0), st.sampled_from(["step", "quiet", "stall", "validation"])), max_size=30)
)
def test_while_signs_come_there_is_never_an_alarm(story):
    """Whatever is said about a task, a sign within each limit keeps it from blame."""
    told, now, step = stepping(at=10), 10.0, 50
    for pause, what in story:
        now += pause
        told.at(now)
        for task in ("worker:0", "worker:1"):
            match what:
                case "step":
                    step += 1
                    told.lives(ev.TaskStepped, task, step=step).lives(ev.TaskAwake, task)
                case "quiet":
                    told.lives(ev.TaskQuiet, task, since=DAWN + now - 5).lives(ev.TaskAwake, task)
                case "stall":
                    stalled(told, task, since=now - 5, waits=task == "worker:0", step=step)
                    told.at(now + 0.1).lives(ev.TaskAwake, task)
                case "validation":
                    stalled(told, task, since=now - 5, waits=task == "worker:0", step=step, doing=what)
        assert named(dumped(told, now + 0.1), now + 0.1) is None
