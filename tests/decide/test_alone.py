"""A collective that one worker alone calls is told apart from uneven data, and from a peer that is late."""

from __future__ import annotations

import pytest

from builders import DAWN, History, running
from phalanx import events as ev
from phalanx.decide.culprit import name_culprit
from phalanx.decide.health import unhealthy
from phalanx.decide.restart import judge
from phalanx.names import TaskId
from phalanx.plan.policies import Health, Restart

HEALTH = Health(start=60.0, silence=20.0, hang=30.0, finish=100.0)
ABORTED = "UnavailableError: Collective ops is aborted by: Connection refused"


def stepped(*steps: int) -> History:
    """Workers that have done so many steps, each."""
    told = running(len(steps)).at(5)
    for index, step in enumerate(steps):
        told.lives(ev.TaskStepped, f"worker:{index}", step=step)
    return told


def aborted(told: History, *, inside: bool | None, at: str = "/job/train.py:37 in main") -> History:
    """Worker 1 has ended well, and worker 0 falls since it waited for it."""
    told.at(20).exited("worker:1").at(20.4)
    return told.lives(
        ev.TaskExited, "worker:0", pid=1, code=1, last_lines=(ABORTED,), raised=ABORTED, raised_at=at, inside=inside
    )


def culprit(told: History) -> ev.CulpritNamed:
    found = name_culprit(told.state, told.now)
    assert found is not None
    return found


def test_one_that_waits_between_steps_for_who_has_ended_after_as_many_calls_a_collective_alone():
    """R60."""
    found = culprit(aborted(stepped(12, 12), inside=False))
    assert (str(found.task), found.kind, found.sign) == ("worker:0", "user", "alone")
    assert "worker:0 waits at train.py:37 in main, outside of any training step" in found.cause
    assert "worker:1 does not enter: after the same 12 steps it has come to the end of the program" in found.cause
    assert "every worker must do what that line does" in found.hint


@pytest.mark.parametrize(
    ("steps", "inside"), [((12, 12), True), ((12, 12), None), ((13, 12), False)], ids=["in a step", "unknown", "ahead"]
)
def test_one_that_waits_in_a_step_or_is_ahead_has_more_data(steps, inside):
    found = culprit(aborted(stepped(*steps), inside=inside))
    assert (str(found.task), found.sign) == ("worker:1", "")
    assert "uneven data" in found.cause


def test_no_restart_follows_where_the_program_would_wait_there_again():
    told = aborted(stepped(12, 12), inside=False)
    told.say(culprit(told))
    verdict = judge(told.state, Restart(), told.now)
    assert (verdict.again, verdict.why) == (False, "the program would come to the same place again")


@pytest.mark.parametrize("unsure", ["asked", "nowhere"])
def test_one_restart_follows_where_the_other_may_have_been_on_its_way_and_no_second_one(unsure):
    told = stepped(12, 12)
    if unsure == "asked":
        told.lives(ev.TaskAsked, "worker:1")
    aborted(told, inside=False, at="" if unsure == "nowhere" else "train.py:37 in main")
    told.say(culprit(told))
    assert told.state.culprit is not None
    assert told.state.culprit.sign == "alone"
    assert judge(told.state, Restart(), told.now).again
    told.say(ev.RestartOrdered(time=told.now, generation=1, at=told.now, why="restart 1 of 3"))
    told.at(30).bound().at(31).started().at(32).listening().at(33)
    for task in ("worker:0", "worker:1"):
        told.lives(ev.TaskStepped, task, step=12)
    told.lives(ev.TaskAsked, "worker:1").at(40).exited("worker:1").at(40.4)
    told.lives(ev.TaskExited, "worker:0", pid=1, code=1, last_lines=(ABORTED,), raised_at="t.py:1 in f", inside=False)
    told.say(culprit(told))
    verdict = judge(told.state, Restart(), told.now)
    assert (verdict.again, verdict.why) == (False, "one waited so the time before as well")


def hangs(told: History, **about: dict[str, object]) -> ev.CulpritNamed:
    for task, more in about.items():
        told.lives(ev.TaskStalled, task, **({"since": DAWN + 100, "longest": 0.2, "waits": True} | more))
    running_ = tuple(TaskId.parse(task) for task in about)
    told.at(129).say(ev.StacksOrdered(time=told.now, generation=1, tasks=running_, by="phalanx"))
    for task in about:
        told.lives(ev.StacksWritten, task, path=task, waits=True, at=f"train.py:{30 + int(task[-1])} in main")
    found = unhealthy(told.state, HEALTH, DAWN + 132)
    assert isinstance(found, ev.CulpritNamed)
    return found


def test_two_that_wait_in_different_collectives_are_told_apart_from_a_hang_of_all():
    told = stepped(50, 50).at(108)
    found = hangs(told, **{"worker:0": {"step": 50, "inside": False}, "worker:1": {"step": 50, "inside": True}})
    assert (str(found.task), found.sign) == ("worker:0", "alone")
    assert "waits at train.py:30 in main" in found.cause
    assert "after the same 50 steps it is at another place (it is at train.py:31 in main)" in found.cause
    told.say(found).at(140).exited("worker:0", "worker:1", signal=9, stopped=True)
    assert judge(told.state, Restart(), told.now).again, "who has not ended may have been on its way"


def test_one_whose_peer_is_at_the_end_of_its_program_calls_a_collective_alone():
    told = stepped(50, 50).at(101).lives(ev.TaskDone, "worker:1", since=DAWN + 101).at(108)
    found = hangs(told, **{"worker:0": {"step": 50, "inside": False}})
    assert (str(found.task), found.sign) == ("worker:0", "alone")


def test_a_peer_that_is_late_between_two_steps_is_still_the_one_to_blame():
    told = stepped(50, 50).at(108)
    found = hangs(
        told,
        **{"worker:0": {"step": 50, "inside": False}, "worker:1": {"step": 50, "inside": False, "waits": False}},
    )
    assert (str(found.task), found.sign) == ("worker:1", "hang")
