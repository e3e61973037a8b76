"""Following: to the end that is written, to the end that nobody wrote, and never past either."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from builders import DAWN, History, killed, running
from phalanx import events as ev
from phalanx.events import Record
from phalanx.names import TaskId
from phalanx.observe import follow
from phalanx.observe.follow import Follower, lost
from phalanx.observe.standing import broken_after, standing
from phalanx.protocol import people
from phalanx.records.folder import RunFolder
from phalanx.records.index import Entry
from phalanx.states import RunPhase, RunState
from phalanx.taskstate import TaskPhase


class Witness:
    """A view that notes what it is shown, and is the world as well: after each look something happens."""

    def __init__(self, happens: Callable[[int], None] = lambda _: None) -> None:
        self.phases: list[str] = []
        self.seqs: list[int] = []
        self.closed: list[RunState] = []
        self._happens = happens

    def update(self, state: RunState, records: Sequence[Record]) -> None:
        self.phases.append(state.phase.value)
        self.seqs += [record.seq for record in records]
        self._happens(len(self.phases))

    def say(self, message: str) -> None:
        raise AssertionError(message)

    def close(self, state: RunState) -> None:
        self.closed.append(state)


def grow(told: History, folder: RunFolder) -> Callable[[int], None]:
    """One more event after each look."""
    lines = told.text.splitlines(keepends=True)

    def happens(look: int) -> None:
        folder.events.write_text("".join(lines[:look]))

    return happens


def passing(monkeypatch: pytest.MonkeyPatch, seconds: float) -> Callable[[int], None]:
    """So much time passes with each look."""
    now = 0.0
    monkeypatch.setattr(follow.time, "monotonic", lambda: now)

    def happens(look: int) -> None:
        nonlocal now
        now = look * seconds

    return happens


def test_each_event_is_shown_once_up_to_the_end(tmp_path: Path):
    folder = RunFolder(tmp_path)
    told = killed()
    view = Witness(grow(told, folder))
    state = Follower(folder, view, poll=0.0).run()
    assert state == told.state
    assert view.seqs == [record.seq for record in told.records]
    assert view.phases[-1] == "failed"
    assert view.closed == [state]


def test_a_run_without_a_lead_ends_as_lost(tmp_path: Path):
    folder = running().write(tmp_path)
    view = Witness()
    state = Follower(folder, view, broken=lambda: "every agent has ended", poll=0.0, ask=0.0).run()
    assert state.phase is RunPhase.LOST
    assert state.end is not None
    assert (state.end.exit_code, state.end.cause) == (
        3,
        "nobody wrote how it ended: every agent has ended",
    )
    assert {task.phase for task in state.tasks.values()} == {TaskPhase.LOST}
    assert view.phases == ["lost"]


def test_a_lead_that_still_answers_may_write_the_end(tmp_path: Path):
    folder = running().write(tmp_path)

    def happens(look: int) -> None:
        if look == 3:
            folder.events.write_text(killed().text)

    view = Witness(happens)
    state = Follower(folder, view, broken=lambda: "agents gone", alive=lambda: True, poll=0.0, ask=0.0).run()
    assert state.phase is RunPhase.FAILED
    assert view.phases == ["running", "running", "running", "failed"]


def test_a_lead_that_writes_no_end_is_not_awaited_for_ever(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    folder = running().write(tmp_path)
    view = Witness(passing(monkeypatch, follow.ENDING / 3))
    state = Follower(folder, view, broken=lambda: "agents gone", alive=lambda: True, poll=0.0, ask=0.0).run()
    assert view.phases == ["running", "running", "running", "lost"]
    assert state.end is not None
    assert state.end.exit_code == 3
    assert "agents gone; the lead still answers, but has written no end into" in state.end.cause


def test_a_lost_run_says_what_its_agents_said_last(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    folder = running(hosts=3).write(tmp_path)
    folder.agents.mkdir()
    for host in (0, 1):
        folder.agent_log(host).write_text("Traceback\nOSError: [Errno 24] Too many open files\n")
    folder.agent_log(2).write_text("lead of digits-1130-070000: running\n")
    answer(monkeypatch, "-")
    end = standing(entry(folder)).end
    assert end is not None
    assert end.cause.endswith(
        "no lead answers at 127.0.0.1:9; an agent's last line: OSError: [Errno 24] Too many open files"
    )


def test_an_end_written_before_the_processes_went_is_the_end(tmp_path: Path):
    folder = running().write(tmp_path)

    def broken() -> str:
        folder.events.write_text(killed().text)
        return "every agent has ended"

    assert Follower(folder, Witness(), broken=broken, poll=0.0, ask=0.0).run().phase is RunPhase.FAILED


def test_lines_that_could_not_be_read_are_told_at_the_end(tmp_path: Path):
    folder = killed().write(tmp_path)
    folder.events.write_text("junk\n" + folder.events.read_text())
    state = Follower(folder, Witness(), poll=0.0).run()
    assert [note.message for note in state.notes] == [
        "1 line of events.jsonl could not be read: torn, or of a newer phalanx"
    ]


def test_an_interrupted_view_is_closed(tmp_path: Path):
    folder = running().write(tmp_path)

    def interrupt(look: int) -> None:
        if look == 3:
            raise KeyboardInterrupt

    view = Witness(interrupt)
    with pytest.raises(KeyboardInterrupt):
        Follower(folder, view, poll=0.0).run()
    assert [state.phase for state in view.closed] == [RunPhase.RUNNING]


def entry(folder: RunFolder, lead: str = "127.0.0.1:9") -> Entry:
    return Entry(run=folder.run, folder=str(folder.path), engine="local", lead=lead, token="t", created=5.0, launcher=1)


def answer(monkeypatch: pytest.MonkeyPatch, there: str, end: ev.RunEnded | None = None) -> None:
    """Whether a lead answers, a sign each time, the last again and again; and the end that it tells of."""
    answers = list(there)

    def state(*_: str) -> dict[str, object]:
        if (answers.pop(0) if len(answers) > 1 else answers[0]) == "-":
            raise people.LeadUnreachableError
        return {"end": ev.event_to_json(end) if end else None}

    monkeypatch.setattr(people, "state", state)


def well(time: float) -> ev.RunEnded:
    return ev.RunEnded(time=time, outcome="succeeded", exit_code=0, cause="worker:0 exited with code 0")


def test_an_end_that_its_lead_tells_of_and_cannot_write_is_the_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    folder = running().write(tmp_path)
    view = Witness(passing(monkeypatch, follow.UNWRITTEN / 2))
    state = Follower(folder, view, broken=lambda: well(DAWN + 9), poll=0.0, ask=0.0).run()
    assert view.phases == ["running", "running", "succeeded"]
    assert state.end == well(DAWN + 9)
    assert {task.phase for task in state.tasks.values()} == {TaskPhase.ENDED}
    assert [note.message for note in state.notes] == [
        "warning: the records lack how it ended, its lead has told it: their disk takes nothing"
    ]


def test_an_end_that_comes_late_into_the_records_is_theirs(tmp_path: Path):
    folder = running().write(tmp_path)

    def happens(look: int) -> None:
        if look == 3:
            folder.events.write_text(killed().text)

    state = Follower(folder, Witness(happens), broken=lambda: well(DAWN + 9), poll=0.0, ask=0.0).run()
    assert state.phase is RunPhase.FAILED
    assert not state.notes


def test_an_end_that_was_told_is_the_end_also_when_its_lead_has_gone(tmp_path: Path):
    words = iter([well(DAWN + 9), "every agent has ended"])
    folder = running().write(tmp_path)
    state = Follower(folder, Witness(), broken=lambda: next(words), poll=0.0, ask=0.0).run()
    assert state.phase is RunPhase.SUCCEEDED


def test_an_end_that_only_the_lead_knows_is_how_the_run_stands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    folder = running().write(tmp_path)
    answer(monkeypatch, "+", end=well(DAWN + 9))
    assert standing(entry(folder)).phase is RunPhase.SUCCEEDED


def test_a_lead_must_be_silent_twice_to_count_as_gone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    answer(monkeypatch, "+-+--")
    broken = broken_after(entry(running().write(tmp_path)))
    assert [broken() for _ in range(5)] == [None, None, None, None, "no lead answers at 127.0.0.1:9"]


def test_standing_is_what_the_records_say_while_somebody_leads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    folder = running().write(tmp_path)
    answer(monkeypatch, "+")
    assert standing(entry(folder)).phase is RunPhase.RUNNING
    answer(monkeypatch, "-")
    found = standing(entry(folder))
    assert found.phase is RunPhase.LOST
    assert found.ended == found.tasks[min(found.tasks)].listening  # the last that was heard of it
    assert standing(entry(killed().write(tmp_path))).phase is RunPhase.FAILED


def test_a_run_known_by_its_folder_alone_is_lost_unless_it_has_ended(tmp_path: Path):
    found = standing(entry(running().write(tmp_path), lead=""))
    assert found.phase is RunPhase.LOST
    assert "does not know where it is led" in (found.end.cause if found.end else "")


def test_lost_leaves_ended_tasks_as_they_are():
    state = lost(running().at(5).exited("worker:1", code=3).state, "why", 10.0)
    assert [task.phase for task in state.tasks.values()] == [TaskPhase.LOST, TaskPhase.FAILED]


def test_the_launcher_and_the_verbs_agree_when_a_lost_run_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    folder = running().write(tmp_path)
    log = folder.log(TaskId("worker", 0), generation=1, attempt=1, stream="out")
    log.parent.mkdir(parents=True, exist_ok=True)
    log.write_text("epoch 7\n")
    os.utime(log, (DAWN + 3600, DAWN + 3600))
    followed = Follower(folder, Witness(), broken=lambda: "gone", poll=0.0, ask=0.0).run()
    answer(monkeypatch, "-")
    asked = standing(entry(folder))
    assert followed.ended == asked.ended == DAWN + 3600
    assert {task.ended for task in asked.tasks.values()} == {DAWN + 3600}  # `ps` counts `up` to then
