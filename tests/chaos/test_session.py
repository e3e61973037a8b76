"""A session over a run that is only written down."""

from __future__ import annotations

import json

import pytest

from builders import DAWN, History, history, running
from phalanx import events as ev
from phalanx.chaos import session
from phalanx.chaos.fault import Fault, Moment
from phalanx.chaos.session import Session
from phalanx.chaos.watch import Outcome, Told
from phalanx.chaos.whereabouts import CannotError
from phalanx.records.folder import RunFolder
from phalanx.records.index import Entry

STALL = Fault(kind="stall", target="worker:0")


def entry_of(folder: RunFolder) -> Entry:
    return Entry(
        run=folder.run, folder=str(folder.path), engine="local", lead="127.0.0.1:1", token="t", created=0.0, launcher=0
    )


def test_a_fault_of_a_run_that_ends_while_it_starts_is_not_said_to_have_come_too_late(tmp_path):
    told = history().joined().bound().at(1).ended("failed", 3, "no such program")
    fault = Fault(kind="kill", target="worker:1", when=Moment(after=0.0))
    [found] = Session(entry_of(told.write(tmp_path)), (fault,), launched=Launched()).run()
    assert (found.outcome, found.why) == (Outcome.MISSED, "the run ended before all trained")


@pytest.mark.parametrize(("ends", "outcome"), [(True, Outcome.MISSED), (False, Outcome.REFUSED)])
def test_what_cannot_be_done_since_the_program_is_over_was_not_reached(tmp_path, monkeypatch, ends, outcome):
    told = running()
    folder = told.write(tmp_path)
    entry = entry_of(folder)

    def cannot(*_: object) -> None:
        if ends:
            told.exited("worker:0", "worker:1").ended("succeeded", 0, "worker:0 exited with code 0").write(tmp_path)
        raise CannotError("its process is no Python")

    monkeypatch.setitem(session.STRIKES, "stall", cannot)
    monkeypatch.setattr(session.people, "alive", lambda *_: True)
    launched = Launched() if ends else None
    [found] = Session(entry, (STALL,), launched=launched).run()
    assert found.outcome is outcome


def ended_after(tmp_path, monkeypatch, *faults: Fault, later: History) -> tuple[list[Told], list[str]]:
    """The first fault is done to a run that trains; what happens next is `later`."""
    folder = later.write(tmp_path)
    text = later.text.splitlines(keepends=True)
    before = "".join(line for line in text if json.loads(line)["time"] < DAWN + 5)
    folder.events.write_text(before)
    said: list[str] = []

    def strike(*_: object) -> None:
        folder.events.write_text("".join(text))

    monkeypatch.setitem(session.STRIKES, "kill", strike)
    monkeypatch.setattr(session.people, "alive", lambda *_: True)
    return list(Session(entry_of(folder), faults, launched=Launched(), say=said.append).run()), said


def test_a_fault_that_waited_for_another_until_the_run_ended_is_not_said_to_have_had_no_moment(tmp_path, monkeypatch):
    told = running().at(6).exited("worker:1", signal=9).culprit("worker:1", "killed")
    told.exited("worker:0", signal=9, stopped=True).ended("failed", 1, "worker:1 was killed")
    kill, second = Fault(kind="kill", target="worker:1"), Fault(kind="kill", target="worker:0", when=Moment(after=0.0))
    third = Fault(kind="kill", target="worker:0", when=Moment(after=99.0))
    found, _ = ended_after(tmp_path, monkeypatch, kill, second, third, later=told)
    assert [one.outcome for one in found] == [Outcome.ENDED, Outcome.MISSED, Outcome.MISSED]
    assert found[1].why == "its moment came while kill worker:1 was not over, and the run ended meanwhile"
    assert found[2].why == "the run ended before its moment"


def test_a_fault_whose_moment_comes_while_the_group_starts_again_is_told_as_that(tmp_path, monkeypatch):
    told = running().at(6).exited("worker:1", signal=9).culprit("worker:1", "killed").restarted()
    told.at(7).bound().started().listening().at(8).culprit(None, "nobody", host=0).ended("failed", 1, "nobody")
    kill, second = Fault(kind="kill", target="worker:1"), Fault(kind="kill", target="worker:0", when=Moment(after=0.0))
    found, _ = ended_after(tmp_path, monkeypatch, kill, second, later=told)
    assert [one.outcome for one in found] == [Outcome.RECOVERED, Outcome.MISSED]
    assert found[1].why == "its moment came while not all trained, and the run ended meanwhile"


def test_a_fault_that_waits_for_the_first_step_says_so(tmp_path, monkeypatch):
    monkeypatch.setattr(session, "SILENT", 0.0)
    told, said = history().joined().bound().at(7), []
    watching = Session(entry_of(told.write(tmp_path)), (Fault(kind="kill", target="worker:1"),), say=said.append)
    assert not watching._look()
    assert said == ["digits-1130-070000: still starting, 0 s; kill worker:1 waits until all train"]


def test_what_is_waited_for_is_said_now_and_then(tmp_path, monkeypatch):
    monkeypatch.setattr(session, "SILENT", 0.0)
    told = running().lives(ev.TaskStepped, "worker:0", step=7).at(6)
    kill = Fault(kind="kill", target="worker:1", when=Moment(after=0.05))
    _, said = ended_after(tmp_path, monkeypatch, kill, later=told.ended("succeeded", 0, "worker:0 exited with code 0"))
    assert said[0] == "digits-1130-070000: still running, 0 s, step 7; kill worker:1 is to come"
    assert any(line.endswith("not shown (the run ended before it showed)") for line in said)


class Launched:
    """Somebody who follows the run."""

    def lives(self) -> bool:
        return True

    def end(self) -> None:
        return
