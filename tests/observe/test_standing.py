"""The records with what the agents say of this second laid over them."""

from __future__ import annotations

import pytest

from builders import running
from phalanx import events as ev
from phalanx.names import TaskId
from phalanx.observe import standing
from phalanx.protocol.people import LeadUnreachableError
from phalanx.records.index import Entry

ZERO, ONE = TaskId("worker", 0), TaskId("worker", 1)


def entry(tmp_path):
    return Entry(run="r", folder=str(tmp_path), engine="local", lead="127.0.0.1:1", token="t", created=0.0, launcher=0)


def told(**more):
    return {"task": "worker:0", "generation": 1, "attempt": 1, "at": 1.0, "steps": 57, "age": 0.2} | more


@pytest.mark.parametrize(
    ("said", "step"),
    [
        ([told()], 57),
        ([told(steps=3)], 40),  # a poll that was older than the records
        ([told(attempt=2)], 40),  # an attempt that the records do not know yet
        ([told(generation=2)], 40),
        ([told(steps=None), told(task=7), {}], 40),
        ([], 40),
    ],
)
def test_newer_steps_of_the_same_attempt_are_taken_and_nothing_else(tmp_path, monkeypatch, said, step):
    state = running().lives(ev.TaskStepped, "worker:0", step=40).state
    monkeypatch.setattr(standing.people, "steps", lambda *_: said)
    found = standing.counted(state, entry(tmp_path))
    assert (found.tasks[ZERO].step, found.tasks[ONE].step) == (step, 0)


def test_a_lead_that_does_not_answer_leaves_the_records_as_they_are(tmp_path, monkeypatch):
    def silent(*_):
        raise LeadUnreachableError("no")

    state = running().state
    monkeypatch.setattr(standing.people, "steps", silent)
    assert standing.counted(state, entry(tmp_path)) is state


def test_of_a_run_that_has_ended_nobody_is_asked(tmp_path, monkeypatch):
    monkeypatch.setattr(standing.people, "steps", None)
    state = running().ended("succeeded", 0, "x").state
    assert standing.counted(state, entry(tmp_path)) is state
