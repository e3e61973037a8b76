"""Whether the same failure has come before: by its words, and by its step where it has none."""

from __future__ import annotations

import pytest

from builders import History, running
from phalanx import events as ev
from phalanx.decide.restart import judge
from phalanx.plan.policies import Restart

NOISE = "I0000 00:00:{}.014306   {} coordination_service_agent.cc:245] Coordination agent has connected."


def falls(
    told: History, at: float, *, step: int | None, code: int = 1, said: str = NOISE, printed: str = "step 50, 12 ms"
) -> History:
    """Worker 1 fails long after its start."""
    told.at(at)
    if step is not None:
        told.lives(ev.TaskStepped, "worker:1", step=step)
    lines = (said.format(int(1_796_051_083 + at), int(at)),)
    told.at(at + 60).lives(ev.TaskExited, "worker:1", pid=7, code=code, last_lines=lines, last_output=printed)
    return told.culprit("worker:1", "worker:1 exited with code 1", "worker:0")


def why(told: History) -> str:
    return judge(told.state, Restart(), told.now).why


def twice(**second: object) -> str:
    told = falls(running(), 5, step=50).restarted()
    told.at(70).bound().started().listening()
    return why(falls(told, 75, **({"step": 50} | second)))


def test_who_leaves_twice_without_a_word_at_the_same_step_with_the_same_code_is_not_started_again():
    assert twice() == "it failed with the same code at the same step as before (50)"


@pytest.mark.parametrize("second", [{"step": 70}, {"code": 3}, {"said": "ValueError: x", "printed": ""}])
def test_another_step_another_code_or_a_word_is_another_failure(second):
    assert twice(**second) == "restart 2 of 3"


@pytest.mark.parametrize(("printed", "again"), [("step 50, 9 ms", False), ("step 60, 9 ms", True), ("", True)])
def test_where_steps_are_not_known_the_last_line_tells_how_far_it_came(printed, again):
    told = falls(running(), 5, step=None).restarted()
    told.at(70).bound().started().listening()
    assert judge(falls(told, 75, step=None, printed=printed).state, Restart(), told.now).again is again


def test_words_that_differ_in_their_time_alone_are_the_same_words():
    said = "2026-11-30 15:00:00.{}: E tensorflow/x.cc:3] cannot open /data (pid {})"
    told = falls(running(), 5, step=50, said=said, printed="").restarted()
    told.at(70).bound().started().listening()
    assert why(falls(told, 75, step=50, said=said, printed="")) == "it failed with the same words as before"
