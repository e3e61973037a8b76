"""Before a run ends, what it has left behind is looked for; nothing about that can keep it from ending."""

from __future__ import annotations

import dataclasses

import pytest

from builders import History, history
from phalanx import events as ev
from phalanx.decide.ending import PATIENCE, step
from phalanx.decide.next_step import Say, Wake
from phalanx.names import TaskId
from phalanx.plan.bind import bind
from phalanx.plan.host import Host
from phalanx.plan.outputs import Output, outputs_of
from phalanx.plan.policies import Policies, Restart
from phalanx.records.produced import produced, shortcomings
from simulated import outline

WANTED = ("model.keras",)


def won() -> History:
    told = history(workers=2).joined(name="n7").bound().started().at(10).exited("worker:0", "worker:1")
    return told.say(ev.LeaderSucceeded(time=told.now, generation=1, task=TaskId("worker", 0)))


def next_event(told: History, wanted=WANTED) -> ev.Event:
    [action] = step(told.state, Policies(restart=Restart(max=0)), wanted, told.now)
    assert isinstance(action, Say)
    return action.event


def asked(told: History) -> History:
    event = next_event(told)
    assert isinstance(event, ev.OutputsAsked)
    return told.say(event)


def found(told: History, **output) -> History:
    told.say(ev.OutputsFound(time=told.now, host=0, outputs=(Output(path="model.keras", **output),)))
    end = next_event(told)
    assert isinstance(end, ev.RunEnded)
    return told.say(end)


def test_the_leaders_host_is_asked_and_its_answer_ends_the_run():
    told = asked(won())
    assert told.events[-1] == ev.OutputsAsked(time=told.now, host=0, patterns=WANTED)
    assert found(told, count=1, bytes=5, newest=told.now).state.end.outcome == "succeeded"


def test_a_job_that_declares_none_ends_at_once():
    assert isinstance(next_event(won(), ()), ev.RunEnded)


def test_an_answer_that_does_not_come_is_waited_for_a_few_seconds():
    told = asked(won())
    [wake] = step(told.state, Policies(), WANTED, told.now + 1)
    assert wake == Wake(at=told.now + PATIENCE)
    told.at(10 + PATIENCE)
    told.say(next_event(told))
    _, output = produced(told.state, plan())
    assert (output.path, output.there, output.why) == ("model.keras", None, "its host has not answered in time")


def test_a_host_that_is_gone_is_not_asked():
    told = won().lost()
    assert isinstance(next_event(told), ev.RunEnded)


def test_a_run_that_has_started_nothing_has_left_nothing():
    told = history(workers=2).joined().bound().at(1).say(ev.StopRequested(time=0, by="me"))
    told.say(ev.StopOrdered(time=told.now, generation=1, tasks=told.tasks, grace=1, reason="x"))
    told.at(30)
    assert isinstance(next_event(told), ev.RunEnded)


def test_of_a_run_that_failed_it_is_told_as_well_and_nothing_is_said_of_it():
    told = history(workers=1).joined().bound().started().at(10).exited("worker:0", code=1)
    told.say(next_event(told))
    state = found(asked(told), count=0).state
    [output] = produced(state, None)
    assert output.there is False
    assert shortcomings(state, (output,)) == []


@pytest.mark.parametrize(
    ("output", "there", "fresh", "said"),
    [
        ({"count": 1, "bytes": 3, "newest": 2_000_000_000.0}, True, True, []),
        ({"count": 1, "newest": 5.0}, True, False, ["model.keras is older than this run"]),
        ({"count": 0}, False, None, ["worker:0 has ended well and left no model.keras"]),
        ({"wrong": "no path"}, None, None, []),
    ],
)
def test_a_success_tells_what_it_has_not_left_behind(output, there, fresh, said):
    state = found(asked(won()), **output).state
    [told] = produced(state, None)
    assert (told.there, told.fresh) == (there, fresh)
    assert shortcomings(state, (told,)) == said


def plan():
    job = dataclasses.replace(outline(workers=2), outputs=("{checkpoint}/{run}-*", *WANTED), checkpoint="/ckpt")
    return bind(job, [Host(id=0, name="n7", address="10.0.0.1", ports=(1, 2))], run="r1", generation=1)


def test_placeholders_are_filled_as_the_leader_sees_them():
    assert outputs_of(plan()) == ("/ckpt/r1-*", "model.keras")
