"""ps, report, events, attach and stop: on runs that go on, have ended, are lost, or are gone."""

from __future__ import annotations

import http.server
import json
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from builders import History, killed, running
from phalanx import events as ev
from phalanx.cli.main import app
from phalanx.errors import InputError, PlaceError, RunNotFoundError
from phalanx.names import TaskId
from phalanx.observe import follow
from phalanx.protocol import people
from phalanx.records.folder import RunFolder
from phalanx.records.index import Entry, Index

pytestmark = pytest.mark.usefixtures("home")
TOKEN = "t0ken"


def phalanx(*words: str) -> int:
    return app()(list(words), exit_on_error=False, print_error=False)


class FakeLead:
    """Answers people as a lead does; ends the run when it is told to stop."""

    def __init__(self, folder: RunFolder, ends: History) -> None:
        self.folder, self.ends = folder, ends
        self.asked: list[dict] = []
        lead = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self._answer({"run": folder.run})

            def do_POST(self) -> None:
                lead.asked.append(json.loads(self.rfile.read(int(self.headers["content-length"]))))
                self._answer({"run": folder.run})
                folder.events.write_text(lead.ends.text)

            def _answer(self, data: dict) -> None:
                text = json.dumps(data).encode()
                known = self.headers["authorization"] == f"Bearer {TOKEN}"
                self.send_response(200 if known else 401)
                self.send_header("content-length", str(len(text)))
                self.end_headers()
                self.wfile.write(text)

            def log_message(self, *args: object) -> None:
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.address = f"127.0.0.1:{self.server.server_port}"
        self.thread = threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.01})
        self.thread.start()

    def close(self) -> None:
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()


def stopped(run: str) -> History:
    told = running(run=run).at(9).stop("me").ordered(reason="stop requested by me")
    told.at(9.4).exited("worker:0", code=143, stopped=True).at(19).exited("worker:1", signal=9, stopped=True)
    return told.ended("stopped", 4, "stopped: me")


Begin = Callable[..., RunFolder]


@pytest.fixture
def begin(tmp_path: Path) -> Iterator[Begin]:
    """`begin(history, lead=True)`: the run's folder, its entry in the index, and somebody who leads it."""
    leads: list[FakeLead] = []
    age = 100.0

    def make(told: History, *, lead: bool = False, created: float | None = None) -> RunFolder:
        nonlocal age
        age -= 1
        folder = told.write(tmp_path / "runs")
        address = "127.0.0.1:9"
        if lead:
            leads.append(FakeLead(folder, stopped(folder.run)))
            address = leads[-1].address
        Index().add(
            Entry(
                run=folder.run,
                folder=str(folder.path),
                engine="local",
                lead=address,
                token=TOKEN,
                created=time.time() - age if created is None else created,
                launcher=1,
            )
        )
        return folder

    yield make
    for each in leads:
        each.close()


# ps ------------------------------------------------------------------------------------------------------------------


def test_ps_tells_running_ended_and_lost_apart(begin: Begin, capsys: pytest.CaptureFixture[str]):
    begin(running(run="old-1101-070000"), created=1.0)
    begin(killed(run="older-1101-070000"), created=1.0)
    begin(running(run="lost-1130-070000"))
    begin(killed())
    folder = begin(running(run="ctr-1130-080000"), lead=True)
    assert phalanx("ps") == 0
    rows = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert [row[:4] for row in rows] == [
        ["run", "state", "tasks", "age"],
        ["old-1101-070000", "lost", "2", "lost"],  # what has no end is shown whatever its age
        ["lost-1130-070000", "lost", "2", "lost"],
        ["digits-1130-070000", "failed", "1", "victim,"],
        ["ctr-1130-080000", "running", "2/2", "running"],
    ]
    assert rows[-1][-1] == str(folder.path)


def test_ps_all_has_ended_and_deleted_runs_too(begin: Begin, capsys: pytest.CaptureFixture[str]):
    begin(killed(), created=1.0)
    shutil.rmtree(begin(running(run="gone-1130-070000")).path)
    assert phalanx("ps") == 0
    assert capsys.readouterr().out == ""
    assert phalanx("ps", "--all", "--json") == 0
    captured = capsys.readouterr()
    assert [(run["run"], run["state"]) for run in json.loads(captured.out)] == [
        ("digits-1130-070000", "failed"),
        ("gone-1130-070000", "gone"),
    ]
    assert TOKEN not in captured.out


def test_ps_shows_a_run_whose_folder_was_deleted_while_it_goes_on(begin: Begin, capsys: pytest.CaptureFixture[str]):
    shutil.rmtree(begin(running(), lead=True).path)
    assert phalanx("ps") == 0
    row = capsys.readouterr().out.splitlines()[1]
    assert row.split()[:3] == ["digits-1130-070000", "running", "-"]
    assert row.endswith("(folder gone)")
    assert phalanx("ps", "--json") == 0
    assert json.loads(capsys.readouterr().out)[0]["folder_gone"] is True


def test_ps_shows_what_goes_on_at_the_end_and_nothing_else_on_request(begin: Begin, capsys: pytest.CaptureFixture[str]):
    begin(running(run="ctr-1130-080000"), lead=True)
    begin(killed())
    assert phalanx("ps") == 0
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == [
        "run",
        "digits-1130-070000",
        "ctr-1130-080000",
    ]
    assert phalanx("ps", "--running") == 0
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == ["run", "ctr-1130-080000"]


def test_a_finished_run_counts_what_is_done(begin: Begin, capsys: pytest.CaptureFixture[str]):
    begin(running().at(9).exited("worker:0").succeeded().exited("worker:1").ended("succeeded", 0, "done"))
    begin(running(run="ctr-1130-080000").at(3).exited("worker:1"), lead=True)
    assert phalanx("ps") == 0
    _, done, going = capsys.readouterr().out.splitlines()
    assert "  2 done  " in done
    assert "  1/2 running  " in going


def test_ps_without_runs_says_so(capsys: pytest.CaptureFixture[str]):
    assert phalanx("ps") == 0
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "no runs" in captured.err


def test_ps_of_one_run_lists_its_tasks(begin: Begin, capsys: pytest.CaptureFixture[str]):
    begin(running().at(5).exited("worker:1"), lead=True)
    assert phalanx("ps", "last") == 0
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert lines[0] == ["digits-1130-070000", "running"]
    assert lines[1] == ["task", "host", "state", "pid", "up", "silent", "step", "address"]
    assert lines[2][:4] == ["worker:0", "n0", "running", "1000"]
    assert lines[3][:4] == ["worker:1", "n0", "succeeded", "-"]
    assert phalanx("ps", "digits", "--json") == 0
    assert [task["task"] for task in json.loads(capsys.readouterr().out)] == ["worker:0", "worker:1"]


def test_ps_and_report_tell_the_step_of_the_run(begin: Begin, capsys: pytest.CaptureFixture[str]):
    told = running().lives(ev.CheckpointSaved, "worker:0", path="/ckpt/ckpt-300", step=300)
    told.culprit("worker:1", "worker:1 crashed").restarted().bound().started().listening()
    told.lives(ev.CheckpointRestored, "worker:0", path="/ckpt/ckpt-300").lives(ev.TaskStepped, "worker:0", step=26)
    told.lives(ev.CheckpointRestored, "worker:1", path="/old").lives(ev.TaskStepped, "worker:1", step=26)
    begin(told, lead=True)
    assert phalanx("ps", "last") == 0
    assert [line.split()[-2] for line in capsys.readouterr().out.splitlines()[1:]] == ["step", "326", "+26"]
    assert phalanx("report", "last") == 0
    assert "running, generation 2, at step 326" in capsys.readouterr().out


def test_ps_warns_of_an_index_file_that_others_can_read(begin: Begin, home: Path, capsys: pytest.CaptureFixture[str]):
    begin(running(), lead=True)
    next((home / ".local/state/phalanx/runs").glob("*.json")).chmod(0o644)
    assert phalanx("ps") == 0
    assert "can be read by others" in capsys.readouterr().err


# report, events ------------------------------------------------------------------------------------------------------


def test_report_of_the_last_run(begin: Begin, capsys: pytest.CaptureFixture[str]):
    begin(running(run="other-1130-060000"))
    begin(killed())
    assert phalanx("report") == 0
    assert capsys.readouterr().out.startswith("digits-1130-070000 failed after 7.5 s (exit code 1)\n")
    assert phalanx("report", "other") == 0
    assert "nobody wrote how it ended" in capsys.readouterr().out


def test_report_as_json(begin: Begin, capsys: pytest.CaptureFixture[str]):
    begin(killed())
    assert phalanx("report", "--json") == 0
    data = json.loads(capsys.readouterr().out)
    assert (data["result"], data["culprit"], data["victims"]) == ("failed", "worker:1", ["worker:0"])


def test_a_run_whose_folder_is_gone_is_said_clearly(begin: Begin):
    shutil.rmtree(begin(killed()).path)
    with pytest.raises(RunNotFoundError, match="the folder of digits-1130-070000 is gone"):
        phalanx("report")


def test_a_folder_copied_from_elsewhere_can_be_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    folder = killed().write(tmp_path / "copied")
    assert phalanx("report", str(folder.path)) == 0
    assert "worker:1 was killed by SIGKILL" in capsys.readouterr().out


def test_events_are_told_in_words_and_as_they_are(begin: Begin, capsys: pytest.CaptureFixture[str]):
    begin(killed())
    assert phalanx("events") == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == len(killed().records)
    assert "host n0 joined (10.0.0.1, 8 CPUs)" in lines[1]
    assert phalanx("events", "--json", "-f") == 0
    assert capsys.readouterr().out == killed().text


def test_events_skips_and_counts_what_it_cannot_read(begin: Begin, capsys: pytest.CaptureFixture[str]):
    with begin(killed()).events.open("a") as events:
        events.write("junk\n")
    assert phalanx("events") == 0
    assert "1 line of events.jsonl could not be read" in capsys.readouterr().err


def test_a_run_whose_folder_is_gone_but_whose_lead_lives_can_be_ended(begin: Begin):
    shutil.rmtree(begin(running(), lead=True).path)
    for verb in ("attach", "report", "logs", "events"):
        with pytest.raises(RunNotFoundError, match="the folder of digits-1130-070000 is gone") as wrong:
            phalanx(verb)
        assert wrong.value.hint == "its lead still answers: phalanx stop digits-1130-070000"


# attach --------------------------------------------------------------------------------------------------------------


def test_attach_exits_as_the_run_did(begin: Begin, capsys: pytest.CaptureFixture[str]):
    begin(killed())
    assert phalanx("attach") == 1
    assert "digits-1130-070000 failed" in capsys.readouterr().out
    assert phalanx("attach", "--json") == 1
    assert capsys.readouterr().out == killed().text


@pytest.mark.parametrize("how", [[], ["--quiet"]])
def test_attach_to_a_run_that_has_ended_shows_its_report_alone(
    begin: Begin, capsys: pytest.CaptureFixture[str], how: list[str]
):
    log = begin(killed()).log(TaskId("worker", 0), generation=1, attempt=1, stream="out")
    log.parent.mkdir()
    log.write_text("step\n" * 1000)
    assert phalanx("attach", *how) == 1
    text = capsys.readouterr().out
    assert text.startswith("digits-1130-070000 failed")
    assert "worker:0 |" not in text


def test_ctrl_c_detaches_and_says_so(begin: Begin, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    folder = begin(running(), lead=True)

    def interrupt(seconds: float) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(follow.time, "sleep", interrupt)
    assert phalanx("attach") == 0
    captured = capsys.readouterr()
    assert "detached, the run goes on; again: phalanx attach digits-1130-070000" in captured.err
    assert folder.events.read_text() == running().text


# stop ----------------------------------------------------------------------------------------------------------------


def test_stop_waits_and_says_what_became_of_each_task(begin: Begin, capsys: pytest.CaptureFixture[str]):
    begin(killed(run="done-1130-060000"))
    begin(running(), lead=True)
    assert phalanx("stop") == 0
    assert capsys.readouterr().out.splitlines() == [
        "  ending worker:0, worker:1 (TERM, then KILL after 10 s): stop requested by me",
        "  worker:0 exited with code 143 (as a program leaves that handles SIGTERM) 0.4 s after it was told to",
        "  worker:1 ended by SIGKILL 10.0 s after it was told to",
        "digits-1130-070000 has ended: stopped, me",
    ]


def test_stop_now_asks_for_a_kill_and_no_wait_returns_at_once(begin: Begin, capsys: pytest.CaptureFixture[str]):
    begin(running(), lead=True)
    assert phalanx("stop", "digits", "--now", "--no-wait") == 0
    assert "is being killed" in capsys.readouterr().out


def test_stopping_a_run_that_has_ended_is_no_mistake(begin: Begin, capsys: pytest.CaptureFixture[str]):
    begin(killed())
    assert phalanx("stop", "digits") == 0
    assert "digits-1130-070000 has ended already: failed, worker:1 was killed" in capsys.readouterr().out


def test_a_run_is_stopped_by_its_lead_alone_where_its_folder_was_deleted(
    begin: Begin, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    folder = begin(running(), lead=True)
    shutil.rmtree(folder.path)
    asked = []
    monkeypatch.setattr(people, "stop", lambda *_, **how: asked.append(how["hard"]))
    assert phalanx("stop", "--no-wait") == 0  # the only one that goes on is found, too
    assert "is being stopped; its folder is gone" in capsys.readouterr().out
    monkeypatch.setattr(people, "state", Answers("stopping"))
    assert phalanx("stop", folder.run, "--now") == 0
    assert "digits-1130-070000 has ended; its folder is gone" in capsys.readouterr().out
    assert asked == [False, True]


class Answers:
    """A lead that answers so often, and then no more."""

    def __init__(self, *phases: str) -> None:
        self.phases = list(phases)

    def __call__(self, *_: str) -> dict[str, str]:
        if not self.phases:
            raise people.LeadUnreachableError
        return {"phase": self.phases.pop(0)}


def test_a_run_without_folder_and_lead_has_nothing_to_stop(begin: Begin):
    shutil.rmtree(begin(running()).path)
    with pytest.raises(RunNotFoundError, match="no lead answers: nothing of it runs"):
        phalanx("stop", "digits")


def test_stop_without_a_name_wants_one_running_run(begin: Begin):
    with pytest.raises(InputError, match="no run goes on"):
        phalanx("stop")
    begin(running(), lead=True)
    begin(running(run="ctr-1130-080000"), lead=True)
    with pytest.raises(InputError, match="2 runs go on") as wrong:
        phalanx("stop")
    assert wrong.value.hint == "say which: digits-1130-070000, ctr-1130-080000"


def test_a_lost_run_cannot_be_stopped_and_that_is_said(begin: Begin):
    begin(running())
    with pytest.raises(PlaceError, match="digits-1130-070000 cannot be asked to stop"):
        phalanx("stop", "last")


def test_a_run_that_is_known_by_its_folder_alone_cannot_be_stopped(tmp_path: Path):
    folder = running().write(tmp_path / "copied")
    with pytest.raises(PlaceError, match="is not in this user's index"):
        phalanx("stop", str(folder.path))
