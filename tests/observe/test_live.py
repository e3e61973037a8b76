"""The live table: what is on it, what is left out when the terminal is small, how often it is drawn."""

from __future__ import annotations

import io
import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from rich.console import Console

from builders import DAWN, History, history, killed, running
from phalanx.names import TaskId
from phalanx.observe.live import LiveView
from phalanx.records.folder import RunFolder

Golden = Callable[[str, str], None]


class Screen:
    """A view on a terminal of a given size, at a given time of the run."""

    def __init__(self, folder: RunFolder, *, width: int = 80, height: int = 24, seconds: float = 10.0) -> None:
        self.out = io.StringIO()
        console = Console(file=self.out, force_terminal=True, width=width, height=height, highlight=False)
        self.seconds = seconds
        footer = "Ctrl-C stops it; logs: phalanx logs -f digits"
        self.view = LiveView(folder, self.out, footer=footer, clock=lambda: DAWN + self.seconds, console=console)

    def text(self, told: History) -> str:
        return "".join(text.plain + "\n" for text in self.view.picture(told.state))


def wrote(folder: RunFolder, task: str, text: str, *, stream: str = "out") -> None:
    path = folder.log(TaskId.parse(task), generation=1, attempt=1, stream=stream)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    os.utime(path, (DAWN + 7, DAWN + 7))


def test_a_running_job(tmp_path: Path, golden: Golden):
    folder = running().write(tmp_path)
    wrote(folder, "worker:0", "epoch 1\nepoch 2  10%\repoch 2  20%")
    wrote(
        folder,
        "worker:1",
        "W a warning of TensorFlow that is much too long for what is left of the line\n",
        stream="err",
    )
    golden("observe/live_running.txt", Screen(folder).text(running()))


def test_waiting_for_hosts(tmp_path: Path, golden: Golden):
    told = history(hosts=3).at(1).joined(0)
    golden("observe/live_waiting.txt", Screen(told.write(tmp_path)).text(told))


def test_in_a_small_terminal_failed_tasks_come_first_and_the_rest_is_counted(tmp_path: Path, golden: Golden):
    told = running(workers=100).at(5).exited("worker:77", code=1).exited("worker:3").started("worker:50")
    screen = Screen(told.write(tmp_path), height=12, width=60)
    screen.view.update(told.state, told.records)
    golden("observe/live_many.txt", screen.text(told))


@pytest.mark.parametrize(("width", "height"), [(20, 5), (40, 10), (200, 60), (1, 1)])
def test_the_picture_fits_any_terminal(tmp_path: Path, width: int, height: int):
    told = running(workers=30)
    folder = told.write(tmp_path)
    wrote(folder, "worker:0", "x" * 500)
    lines = Screen(folder, width=width, height=height).text(told).splitlines()
    assert len(lines) <= max(height - 1, 5)
    wide = "worker:29  n0    running  0:00  silent  "
    assert all(len(line) <= max(width, len(wide)) for line in lines)


def test_a_message_of_the_launcher_stands_under_the_table(tmp_path: Path):
    screen = Screen(running().write(tmp_path))
    screen.view.say("SIGINT: stopping all tasks")
    assert screen.text(running()).splitlines()[-1] == "SIGINT: stopping all tasks"


def test_once_a_stop_is_on_its_way_no_line_says_how_to_stop(tmp_path: Path):
    told = running()
    screen = Screen(told.write(tmp_path))
    assert "Ctrl-C stops it" in screen.text(told)
    assert "Ctrl-C stops it" not in screen.text(told.at(5).stop("me"))


def test_a_standby_that_prints_before_it_has_its_identity_is_warming_up(tmp_path: Path):
    told = history().at(1).joined()
    folder = told.write(tmp_path)
    wrote(folder, "worker:1", "importing\n", stream="err")
    lines = Screen(folder).text(told).splitlines()
    assert lines[2].split() == ["worker:0", "waiting"]
    assert lines[3].split() == ["worker:1", "warming", "up", "importing"]


def test_the_last_line_is_one_that_tells_something(tmp_path: Path):
    told = running()
    folder = told.write(tmp_path)
    noise = "I0000 00:00:1796029155.054277   11370 cpu_feature_guard.cc:227] This TensorFlow binary is optimized\n"
    wrote(folder, "worker:0", "epoch 1\n")
    wrote(folder, "worker:0", noise, stream="err")
    wrote(folder, "worker:1", noise, stream="err")
    screen = Screen(folder, width=200)
    assert "epoch 1" in screen.text(told)
    assert screen.text(told).count("cpu_feature_guard") == 1  # where there is nothing else
    wrote(folder, "worker:0", noise + noise, stream="err")
    assert "epoch 1" in screen.text(told)


def test_it_draws_four_times_a_second_and_only_what_has_changed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    now = 0.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    folder = running().write(tmp_path)
    screen = Screen(folder)
    told = running()
    sizes = []
    for look in range(100):  # five seconds at the Follower's pace
        now = 100 + look * 0.05
        if look == 50:
            wrote(folder, "worker:0", "news\n")
        screen.view.update(told.state, [])
        sizes.append(screen.out.tell())
    drawn = sum(after > before for before, after in zip([0, *sizes], sizes, strict=False))
    assert drawn == 2
    screen.seconds += 1  # a second passes on the clock: the uptime has changed
    now += 1
    screen.view.update(told.state, [])
    assert screen.out.tell() > sizes[-1]
    screen.view.close(told.state)


def test_at_the_end_the_table_gives_way_to_the_report(tmp_path: Path):
    told = killed()
    screen = Screen(told.write(tmp_path))
    screen.view.update(running().state, [])
    screen.view.close(told.state)
    text = screen.out.getvalue()
    assert text.index("\x1b[?25l") < text.index("\x1b[?25h")  # the cursor is hidden, and shown again
    report = text[text.index("\x1b[?25h") :]
    assert "digits-1130-070000 failed" in report
    assert "worker:1 was killed by SIGKILL" in report


def test_a_view_that_is_left_early_gives_the_terminal_back(tmp_path: Path):
    told = running()
    screen = Screen(told.write(tmp_path))
    screen.view.update(told.state, [])
    screen.view.close(told.state)
    text = screen.out.getvalue()
    assert text.index("\x1b[?25l") < text.index("\x1b[?25h")
    assert text.endswith("\x1b[?1049l")  # the table is gone
    assert "logs and records" not in text
