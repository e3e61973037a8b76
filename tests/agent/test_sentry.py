"""A reaper that is stopped is continued; one that is kept stopped is given up, and leaves nothing behind."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator

import pytest

from phalanx.agent import sentry as module
from phalanx.agent import tree
from phalanx.agent.children import Exited, Started
from phalanx.agent.sentry import Roused, Sentry, Spent


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """The signals that were sent to a reaper which somebody always stops again."""
    found: list[int] = []
    monkeypatch.setattr(module.tree, "send", lambda _, number: found.append(number))
    monkeypatch.setattr(module.tree, "state", lambda _: "T")
    return found


def test_a_reaper_that_runs_is_left_alone(sent: list[int], monkeypatch: pytest.MonkeyPatch):
    for state in ("S", "R", "D", "t", "Z", ""):
        monkeypatch.setattr(module.tree, "state", lambda _, state=state: state)
        assert Sentry(7).look() is None
    assert not sent


def test_one_that_is_stopped_too_often_is_given_up_with_a_reason(sent: list[int], monkeypatch: pytest.MonkeyPatch):
    now = 0.0
    monkeypatch.setattr(module.time, "monotonic", lambda: now)
    sentry = Sentry(7)
    for _ in range(module.TRIES):
        assert isinstance(sentry.look(), Roused)
        now += 1
    last = sentry.look()
    assert isinstance(last, Spent)
    assert "its reaper (pid 7) was found stopped by a signal 6 times within 60 s" in last.reason
    assert sent == [signal.SIGCONT] * module.TRIES


def test_one_that_is_stopped_now_and_then_is_continued_for_ever(sent: list[int], monkeypatch: pytest.MonkeyPatch):
    now = 0.0
    monkeypatch.setattr(module.time, "monotonic", lambda: now)
    sentry = Sentry(7)
    for _ in range(50):
        now += module.WITHIN / module.TRIES
        assert isinstance(sentry.look(), Roused)
    assert len(sent) == 50


@pytest.mark.real
def test_what_ended_while_the_reaper_was_stopped_is_told_once_it_is_continued(desk):
    child = desk.python("import time; time.sleep(0.5)")
    desk.until(Started)
    os.kill(desk.reaper.pid, signal.SIGSTOP)
    desk.wait(lambda: tree.state(desk.reaper.pid) == "T")
    desk.wait(lambda: tree.state(child.pid) == "Z")
    assert isinstance(Sentry(desk.reaper.pid).look(), Roused)
    assert desk.until(Exited).code == 0


@pytest.mark.real
def test_a_reaper_that_is_stopped_when_it_should_leave_is_continued_and_ends_its_children(desk):
    child = desk.spawn("sleep", "600")
    desk.until(Started)
    os.kill(desk.reaper.pid, signal.SIGSTOP)
    desk.reaper.close()
    assert desk.dead(child.pid, desk.reaper.pid)


@pytest.mark.real
def test_a_reaper_that_somebody_keeps_stopped_is_killed_in_the_end_with_its_children(
    desk, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("phalanx.agent.children._PATIENCE", 0.5)
    child = desk.spawn("sh", "-c", "setsid sleep 600 & exec sleep 600")
    desk.until(Started)
    with subprocess.Popen(["sh", "-c", f"while kill -STOP {desk.reaper.pid}; do :; done"], stderr=subprocess.DEVNULL):
        desk.wait(lambda: tree.state(desk.reaper.pid) == "T")
        desk.reaper.close()
    desk.wait(lambda: desk.dead(child.pid))
    marked = [pid for pid in tree.processes() if tree.carries(pid, child.marker)]
    assert not marked
