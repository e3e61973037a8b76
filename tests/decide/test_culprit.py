"""Who failed first, in which words, and who only failed alike: by made-up histories."""

from __future__ import annotations

import pytest

from builders import DAWN, History, history, running
from phalanx import events as ev
from phalanx.decide.culprit import name_culprit
from phalanx.decide.next_step import Say, next_step
from phalanx.names import TaskId
from phalanx.plan.policies import Health, Policies
from phalanx.taskstate import TaskPhase

TERM = 15
MISSING = ("Traceback (most recent call last):", "ModuleNotFoundError: No module named 'nope'")
NOISE = (
    "I0000 00:00:1796051083.014306   11370 coordination_service_agent.cc:245] Coordination agent has connected.",
    "2026-11-30 15:00:00.000000: I tensorflow/core/platform/cpu_feature_guard.cc:210] This TensorFlow binary",
)


def named(told: History) -> ev.CulpritNamed:
    found = name_culprit(told.state, told.now)
    assert found is not None
    return found


def judged(told: History) -> dict[str, TaskPhase]:
    return {str(task.id): task.phase for task in told.say(named(told)).state.tasks.values()}


def test_the_cause_gives_the_reason_where_the_exception_has_none():
    said = (
        'File "keras/src/backend/tensorflow/optimizer.py", line 134, in _distributed_tf_update_step',
        "    distribution.extended.update(",
        "AssertionError",
    )
    told = running().at(5)
    about = {"raised": "AssertionError: ", "raised_at": "/job/train.py:9"}
    told.lives(ev.TaskExited, "worker:0", pid=1, code=1, last_lines=said, **about)
    found = named(told)
    assert found.cause.endswith("AssertionError (train.py:9): the model was built outside strategy.scope()")
    assert found.hint.startswith("build and compile the model within `with strategy.scope():`")


# Asked to leave -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("first", ["worker:0", "worker:1"])
def test_who_got_the_signal_is_named_whoever_came_to_its_end_first(first):
    other = "worker:0" if first == "worker:1" else "worker:1"
    blames = ("The following tasks are unhealthy (stopped sending heartbeats):", "/job:worker/replica:0/task:1")
    told = running().at(5).lives(ev.TaskAsked, "worker:1")
    for task in ("worker:0", "worker:1"):
        told.lives(ev.TaskLeaves, task, step=50, peers=1)
    told.at(6).exited(first, code=143, said=blames).at(6.1).exited(other, code=143, said=blames)
    found = named(told)
    assert found.cause == "worker:1 was asked to leave (SIGTERM), and all left at the agreed step"
    assert (str(found.task), found.kind, [str(one) for one in found.victims]) == (
        "worker:1",
        "preemption",
        ["worker:0"],
    )


def test_who_was_asked_and_left_without_the_others_word_is_not_said_to_have_agreed():
    told = (
        running().at(5).lives(ev.TaskAsked, "worker:1").lives(ev.TaskLeaves, "worker:1", step=5, peers=1, agreed=False)
    )
    found = named(told.at(9).exited("worker:1", code=143).exited("worker:0", code=1, said=("Socket closed",)))
    assert found.cause == "worker:1 was asked to leave (SIGTERM)"


def test_a_failure_of_another_before_is_no_consequence_of_the_signal():
    told = running().at(5).lives(ev.TaskAsked, "worker:1").exited("worker:0", code=1, said=("ValueError: x",))
    assert str(named(told.at(6).exited("worker:1", code=143)).task) == "worker:0"


def test_a_log_of_native_code_is_no_cause_of_a_preemption():
    """One that handles the signal itself says nothing to us; the first that left is all there is."""
    told = running().at(5).exited("worker:0", code=143, said=(*NOISE, "/job:worker/replica:0/task:1"))
    assert named(told).cause.endswith("(as a program leaves that handles SIGTERM) 3.5 s after its start")


# Without a word -----------------------------------------------------------------------------------------------------


def exits(told: History, task: str, *, code: int = 1, said: tuple[str, ...] = NOISE, printed: str = "") -> History:
    return told.lives(ev.TaskExited, task, pid=7, code=code, last_lines=said, last_output=printed)


def test_what_native_code_logs_in_every_run_is_no_word_of_a_task():
    assert named(exits(running().at(5), "worker:1", printed="step 50 loss 0.3")).cause == (
        "worker:1 exited with code 1 3.5 s after its start, without a word of its own; last line: step 50 loss 0.3"
    )
    assert named(exits(running().at(5), "worker:1")).cause.endswith("its start, without a word of its own")


def test_an_exception_is_a_word_wherever_it_was_printed():
    told = exits(running().at(5), "worker:1", said=("ValueError: x",), printed="ValueError: x")
    assert named(told).cause.endswith(": ValueError: x")


# Alike --------------------------------------------------------------------------------------------------------------


def test_who_had_said_the_same_before_our_signal_met_it_has_failed_alike():
    told = running().at(5).exited("worker:0", code=1, said=MISSING).ordered("worker:1")
    told.at(5.2).exited("worker:1", signal=TERM, said=MISSING, stopped=True)
    found = named(told)
    assert (found.victims, [str(one) for one in found.alike]) == ((), ["worker:1"])
    assert judged(told) == {"worker:0": TaskPhase.FAILED, "worker:1": TaskPhase.FAILED}


def test_who_failed_alike_and_ended_by_itself_after_the_order_has_failed():
    told = running().at(5).exited("worker:0", code=1, said=MISSING).ordered("worker:1")
    told.at(5.2).exited("worker:1", code=1, said=MISSING, stopped=True)
    assert judged(told)["worker:1"] is TaskPhase.FAILED


def test_who_said_nothing_before_our_signal_met_it_is_a_victim():
    told = exits(running().at(5), "worker:0", printed="step 50").ordered("worker:1")
    told.at(5.2).exited("worker:1", signal=TERM, said=NOISE, stopped=True)
    assert judged(told)["worker:1"] is TaskPhase.VICTIM


def test_addresses_and_times_do_not_tell_two_failures_apart():
    told = running().at(5)
    for task, place in (("worker:0", "0x7f3a12 at 10.0.0.1:22100"), ("worker:1", "0x7e0044 at 10.0.0.1:22101")):
        told.exited(task, code=1, said=(f"ValueError: <Thing {place} pid {len(place)}>",))
    assert [str(one) for one in named(told).alike] == ["worker:1"]


def test_a_task_that_was_named_while_it_ran_has_failed_and_its_victims_are_victims():
    """A hang: both end by our hand, after it is settled who is who."""
    told = running().at(90).culprit("worker:1", "worker:1 does not take part", "worker:0", sign="hang")
    told.ordered("worker:0", "worker:1").at(91)
    for task in ("worker:0", "worker:1"):
        told.exited(task, signal=TERM, stopped=True)
    phases = {str(task.id): task.phase for task in told.state.tasks.values()}
    assert phases == {"worker:0": TaskPhase.VICTIM, "worker:1": TaskPhase.FAILED}


# Never listened -----------------------------------------------------------------------------------------------------


def says(told: History, seconds: float) -> ev.Event | None:
    steps = next_step(told.state, Policies(health=Health(start=3600.0)), DAWN + seconds)
    return next((step.event for step in steps if isinstance(step, Say)), None)


def test_who_never_listened_is_named_with_the_line_it_is_at_and_the_file_of_its_stacks():
    told = history(must_listen=True).at(0.5).joined().at(1).bound().at(1.5).started().at(2).listening("worker:0")
    order = ev.StacksOrdered(time=DAWN + 3600.5, generation=1, tasks=(TaskId("worker", 1),), by="phalanx")
    told.at(3600.5).say(order).lives(ev.StacksWritten, "worker:1", path="stacks/a.txt", at="train.py:9 in load")
    told.lives(ev.StacksWritten, "worker:0", path="stacks/b.txt")
    found = says(told, 3601.0)
    assert isinstance(found, ev.CulpritNamed)
    assert "never listened on 10.0.0.1:22101 within 1 h (it is at train.py:9 in load)" in found.cause
    assert found.hint.startswith("its stacks are in stacks/a.txt; raise --start-timeout")
