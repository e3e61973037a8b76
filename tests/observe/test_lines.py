"""Views for pipes: what is written, in which order, and what is not."""

from __future__ import annotations

import io
import json
import resource
import shutil
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from builders import History, killed, running
from phalanx import events as ev
from phalanx.errors import InputError
from phalanx.names import TaskId
from phalanx.observe import logtail, timeline
from phalanx.observe.follow import lost
from phalanx.observe.ink import Ink
from phalanx.observe.lines import JsonView, LinesView, QuietView
from phalanx.observe.logtail import GrowingFile
from phalanx.observe.views import view_for
from phalanx.records.folder import RunFolder
from phalanx.states import RunState

Golden = Callable[[str, str], None]


def wrote(folder: RunFolder, task: str, data: bytes, *, stream: str = "out") -> None:
    path = folder.log(TaskId.parse(task), generation=1, attempt=1, stream=stream)
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("ab") as log:
        log.write(data)


def told_to(view: LinesView, told: History, *, upto: int | None = None) -> None:
    view.update(told.state, told.records[:upto])


def test_a_run_as_lines(tmp_path: Path, golden: Golden):
    told = killed()
    folder = told.write(tmp_path)
    out = io.StringIO()
    view = LinesView(folder, out)
    view.update(running().state, running().records)
    wrote(folder, "worker:0", b"epoch 1\nepo")
    wrote(folder, "worker:1", b"epoch 1\n", stream="err")
    view.update(running().state, [])
    wrote(folder, "worker:0", b"ch 2")
    view.say("SIGINT: stopping all tasks")
    view.update(told.state, told.records[len(running().records) :])
    view.close(told.state)
    golden("observe/lines_killed.txt", out.getvalue().replace(str(tmp_path), "RUNS"))


def test_what_a_task_wrote_stands_above_its_end(tmp_path: Path):
    told = running().at(5).exited("worker:1", code=1)
    folder = told.write(tmp_path)
    wrote(folder, "worker:1", b"last words\n")
    out = io.StringIO()
    LinesView(folder, out).update(told.state, told.records)
    text = out.getvalue()
    assert text.index("worker:1 started") < text.index("worker:1 | last words") < text.index("worker:1 exited")


def test_progress_bars_colours_and_junk_become_plain_lines(tmp_path: Path):
    folder = running().write(tmp_path)
    out = io.StringIO()
    view = LinesView(folder, out)
    told_to(view, running(), upto=0)
    wrote(folder, "worker:0", b"10%\r50%\r100%\n\x1b[32mok\x1b[0m\n\xff\x00junk\x07\n\n\x1b]0;title\x07tab\there\r\n")
    view.update(running().state, [])
    assert out.getvalue() == (
        "worker:0 | 100%\nworker:0 | ok\nworker:0 | \ufffdjunk\nworker:0 | \nworker:0 | tab\there\n"
    )


def test_a_flood_in_one_task_does_not_hide_another(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(logtail, "STEP", 1000)
    folder = running().write(tmp_path)
    wrote(folder, "worker:0", b"flood\n" * 1000)
    wrote(folder, "worker:1", b"here\n")
    out = io.StringIO()
    view = LinesView(folder, out)
    view.update(running().state, [])
    assert out.getvalue().count("flood") == 166
    assert "worker:1 | here" in out.getvalue()
    ended = running().at(9).exited().ended("succeeded", 0, "done")
    view.update(ended.state, [])
    assert out.getvalue().count("worker:0 | flood\n") == 1000


def flooded(folder: RunFolder, task: str, size: int) -> bytes:
    """Lines of 100 bytes with their number."""
    data = b"".join(b"%098d\n\n" % n for n in range(size // 100))
    wrote(folder, task, data)
    return data


def test_a_view_that_lags_goes_on_near_the_end_and_says_what_it_left_out(tmp_path: Path):
    folder = running().write(tmp_path)
    data = flooded(folder, "worker:0", 5 << 20)
    wrote(folder, "worker:1", b"here\n")
    out = io.StringIO()
    view = LinesView(folder, out)
    view.update(running().state, [])
    lines = out.getvalue().splitlines()
    assert lines[0] == (
        "phalanx | 5.2 MB of worker:0's output left out here, it writes faster than can be shown; "
        f"all of it: {folder.path}/logs/worker_0/g1.a1.out"
    ).replace("phalanx |", "phalanx  |")
    shown = [line.removeprefix("worker:0 | ") for line in lines if line.startswith("worker:0 | ")]
    assert "\n".join(shown).encode() in data  # whole lines, the newest
    assert int(shown[-2]) == len(data) // 100 - 1
    assert lines[-1] == "worker:1 | here"
    ended = running().at(9).exited().ended("succeeded", 0, "done")
    view.update(ended.state, ended.records[-1:])
    assert "run succeeded" in out.getvalue().splitlines()[-1]


def test_at_the_end_a_flood_does_not_hold_the_report_up(tmp_path: Path):
    """Two tasks wrote 100 MB each, and their launcher told of the end a minute late."""
    folder = running().write(tmp_path)
    for task in ("worker:0", "worker:1"):
        flooded(folder, task, 3 << 20)  # less than what a look would skip
    ticks = iter(range(1000))
    output = logtail.RunOutput(folder, clock=lambda: next(ticks) * logtail.LAST_LOOK * 0.7)
    chunks = list(output.new(running().state, last=True))
    assert sum(len(chunk.data) + chunk.skipped for chunk in chunks) == 2 * (3 << 20) // 100 * 100
    assert sum(len(chunk.data) for chunk in chunks) < 3 * logtail.STEP
    assert {str(chunk.log.task) for chunk in chunks if chunk.skipped} == {"worker:0", "worker:1"}


def test_a_look_ends_in_time_and_the_next_one_begins_where_it_ended(tmp_path: Path):
    told = running(workers=8)
    folder = told.write(tmp_path)
    for task in told.tasks:
        wrote(folder, str(task), b"here\n")
    now = 0.0

    def clock() -> float:
        nonlocal now
        now += logtail.LOOK / 8
        return now

    output = logtail.RunOutput(folder, clock=clock)
    looks = [[str(chunk.log.task) for chunk in output.new(told.state)] for _ in range(8)]
    assert 0 < len(looks[0]) < 8
    assert sorted(task for look in looks for task in look) == sorted(map(str, told.tasks))


def test_a_folder_that_is_taken_away_harms_no_view(tmp_path: Path):
    told = running()
    folder = told.write(tmp_path)
    wrote(folder, "worker:0", b"here\n")
    view = LinesView(folder, io.StringIO())
    file = GrowingFile(folder.log(TaskId("worker", 0), generation=1, attempt=1, stream="out"))
    view.update(told.state, told.records)
    shutil.rmtree(folder.path)
    assert file.read() == b""
    view.update(told.state, [])
    out = io.StringIO()
    LinesView(folder, out).close(killed().state)
    assert "digits-1130-070000 failed" in out.getvalue()


def test_many_tasks_do_not_need_as_many_open_files(tmp_path: Path):
    told = running(workers=100)
    folder = told.write(tmp_path)
    for task in told.tasks:
        wrote(folder, str(task), b"here\n")
        wrote(folder, str(task), b"and here\n", stream="err")
    out = io.StringIO()
    logs = folder.log_files()
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (len(list(Path("/proc/self/fd").iterdir())) + 10, hard))
    try:
        LinesView(folder, out).update(told.state, [])
        merged = list(timeline.merged(logs))
        followed = list(timeline.Growing().new(logs, now=time.time_ns(), last=True))
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert out.getvalue().count("here\n") == len(merged) == len(followed) == 200


def test_a_line_without_end_comes_in_pieces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(logtail, "LONGEST", 10)
    path = tmp_path / "log"
    path.write_bytes(b"x" * 25)
    file = GrowingFile(path)
    assert file.read() == b"x" * 25
    path.write_bytes(b"x" * 25 + b"y" * 4)
    assert file.read() == b""
    assert file.read(last=True) == b"yyyy"


def test_a_second_attempt_is_shown_too(tmp_path: Path):
    folder = running().write(tmp_path)
    out = io.StringIO()
    view = LinesView(folder, out)
    wrote(folder, "worker:1", b"first\n")
    view.update(running().state, [])
    again = running().bound(port=30000)
    path = folder.log(TaskId("worker", 1), generation=2, attempt=1, stream="out")
    path.write_text("second\n")
    view.update(again.state, [])
    assert out.getvalue() == "worker:1 | first\nworker:1 | second\n"


def test_json_is_the_events_and_nothing_else(tmp_path: Path):
    told = killed()
    out = io.StringIO()
    view = JsonView(out)
    view.update(told.state, told.records)
    view.say("SIGINT")
    view.close(told.state)
    assert out.getvalue() == told.text


def test_json_of_a_lost_run_ends_with_an_end(tmp_path: Path):
    out = io.StringIO()
    view = JsonView(out)
    view.update(running().state, running().records)
    view.close(lost(running().state, "gone", 3.0))
    last = json.loads(out.getvalue().splitlines()[-1])
    assert (last["event"], last["outcome"], last["exit_code"]) == ("run-ended", "lost", 3)


def test_quiet_says_the_result_alone(tmp_path: Path):
    told = running().at(9).exited("worker:0").succeeded().exited("worker:1").ended("succeeded", 0, "done")
    out = io.StringIO()
    view = QuietView(told.write(tmp_path), out)
    view.update(told.state, told.records)
    view.say("SIGINT")
    view.close(told.state)
    assert out.getvalue() == "digits-1130-070000 succeeded after 9.0 s\n"


def test_a_view_that_is_left_before_the_end_has_no_report(tmp_path: Path):
    folder = running().write(tmp_path)
    out = io.StringIO()
    for view in (QuietView(folder, out), LinesView(folder, out), JsonView(out)):
        view.close(running().state)
    assert out.getvalue() == ""


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("out", "how", "environ", "kind"),
    [
        (io.StringIO(), {}, {}, "LinesView"),
        (Terminal(), {}, {}, "LiveView"),
        (Terminal(), {}, {"TERM": "dumb"}, "LinesView"),
        (Terminal(), {"quiet": True}, {}, "QuietView"),
        (Terminal(), {"json": True}, {}, "JsonView"),
    ],
)
def test_the_view_fits_the_other_end(tmp_path: Path, out: io.StringIO, how: dict, environ: dict, kind: str):
    view: object = view_for(RunFolder(tmp_path), out, environ=environ, **how)
    assert type(view).__name__ == kind


def test_quiet_and_json_exclude_each_other(tmp_path: Path):
    with pytest.raises(InputError, match="--quiet and --json"):
        view_for(RunFolder(tmp_path), io.StringIO(), quiet=True, json=True)


def test_no_color_is_obeyed():
    assert Ink.of(Terminal(), {}).on
    assert not Ink.of(Terminal(), {"NO_COLOR": "1"}).on
    assert Ink.of(Terminal(), {"NO_COLOR": ""}).on
    assert not Ink.of(io.StringIO(), {}).on


def test_lines_close_to_the_end_of_a_state_are_seen(tmp_path: Path):
    """The end may be folded in before the first look: everything is shown all the same."""
    told = killed()
    folder = told.write(tmp_path)
    wrote(folder, "worker:0", b"no newline at the end")
    out = io.StringIO()
    view = LinesView(folder, out)
    state: RunState = told.state
    view.update(state, told.records)
    assert "worker:0 | no newline at the end\n" in out.getvalue()


def test_who_has_finished_or_validates_is_not_said_to_do_no_step(tmp_path: Path):
    for doing, said in (("finished", False), ("validation", False), ("", True), ("tracing", True)):
        told = running(hosts=2)
        folder = told.write(tmp_path / (doing or "nothing"))
        told.lives(ev.TaskStalled, "worker:0", since=told.now, step=240, longest=0.1, doing=doing, waits=False)
        told.lives(ev.TaskAwake, "worker:0")
        LinesView(folder, out := io.StringIO()).update(told.state, told.records)
        assert ("has done no step" in out.getvalue(), "goes on" in out.getvalue()) == (said, said), doing
