"""From readings to words: said once, at the right moment, and not at every look."""

from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from phalanx.agent.pulse import HEARTBEAT, Awake, Froze, Pulse, Quiet, Reading, Stalled, Word
from phalanx.agent.stacks import telling


@dataclasses.dataclass(frozen=True)
class Told:
    step: int | None = None
    stepped: float | None = None
    longest: float = 0.0
    doing: str = ""
    inside: bool | None = None


class Film:
    """One task, looked at each second."""

    def __init__(self, *, patience: float = 5.0) -> None:
        self.pulse, self.look, self.words = Pulse(0.0, patience=patience), Reading(now=0.0, listens=True), []

    def run(self, seconds: int, *, cpu: float = 0.0, **more: object) -> list[Word]:
        words = []
        for _ in range(seconds):
            self.look = dataclasses.replace(self.look, now=self.look.now + 1, cpu=self.look.cpu + cpu, **more)
            if (word := self.pulse.see(self.look)) is not None:
                words.append(word)
        return words

    def train(self, seconds: int, *, doing: str = "") -> list[Word]:
        words = []
        for _ in range(seconds):
            old = self.look.sign
            step = ((old.step if old else 0) or 0) + 10
            sign = Told(step=step, stepped=self.look.now + 1, longest=0.1, doing=doing)
            words += self.run(1, cpu=1.0, sign=sign, carried=HEARTBEAT + 1)
        return words


def test_a_process_is_frozen_when_two_looks_see_it_stopped():
    film = Film()
    assert film.run(1, frozen=True) == []
    assert film.pulse.suspects
    assert film.run(3, frozen=True) == [Froze(1.0)]
    assert film.run(1, frozen=False) == [Awake()]


def test_heartbeats_are_no_training_and_an_answer_is_life():
    """Facts §11."""
    film = Film()
    film.train(3)
    words = film.run(30, carried=130, answers=True, waits=True)
    assert words == [Stalled(3.0, 30, 0.1, "", waits=True)]


@pytest.mark.parametrize(
    "sign", [{"cpu": 0.01}, {"answers": True}, {"carried": 10_000}], ids=["CPU", "an answer", "bytes"]
)
def test_any_sign_keeps_a_task_from_being_silent(sign):
    assert not any(isinstance(word, Quiet) for word in Film().run(300, **sign))


def test_silence_is_said_once_and_only_when_its_server_was_asked_in_vain():
    film = Film()
    assert film.run(20, answers=None) == [Stalled(0.0, 0, 0.0, "", waits=True)]
    assert film.run(20, answers=False) == [Quiet(0.0)]
    assert film.run(20, answers=None) == []


def test_who_pauses_often_is_told_of_less_and_less():
    film = Film()
    said = []
    for _ in range(20):
        said += film.run(12, listens=False)
        said += film.run(1, cpu=1.0)
    assert sum(isinstance(word, Quiet) for word in said) == 2


def test_a_stall_tells_whether_it_computes_or_waits():
    for cpu, waits in ((1.0, False), (0.001, True)):
        film = Film()
        film.train(5)
        [word] = film.run(10, cpu=cpu, waits=True, answers=True)
        assert isinstance(word, Stalled)
        assert (word.waits, word.step, word.since) == (waits, 50, 5.0)
        assert film.train(1) == [Awake()]


def test_a_gap_is_worth_a_word_only_when_it_is_unusual():
    film = Film()
    film.run(1, sign=Told(step=1, stepped=1.0, longest=30.0), cpu=1.0)
    assert film.run(58, cpu=1.0) == []
    assert isinstance(film.run(5, cpu=1.0)[0], Stalled)


def test_without_the_runtime_traffic_stands_for_steps():
    film = Film()
    film.run(20, cpu=1.0, carried=9000)
    [word] = film.run(10, cpu=0.0, carried=100, answers=True, waits=True)
    assert word == Stalled(20.0, 0, 0.0, "", waits=True)


def test_before_it_listens_nobody_says_that_it_stalls():
    assert Film().run(100, cpu=1.0, listens=False) == []


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(1, 4), st.floats(0.01, 1.0)), max_size=40))
def test_while_each_gap_is_short_nothing_is_said(story):
    film = Film()
    for gap, cpu in story:
        assert film.run(gap, cpu=0.0) == []
        assert film.train(1) == []
        film.run(1, cpu=cpu)


STACKS = """Thread 0x00007f1 (most recent call first):
  File "/usr/lib/python3.11/threading.py", line 324 in wait

Current thread 0x00007f2 (most recent call first):
{}
"""
TF = '  File "/v/lib/python3.11/site-packages/tensorflow/python/eager/execute.py", line 53 in quick_execute'
OWN = '  File "/home/me/train.py", line 14 in step'
OURS = '  File "/c/agent-1/phalanx/runtime/boot/phalanx_keras3.py", line 128 in _of_this_worker'
QUEUE = '  File "/usr/lib/python3.11/queue.py", line 171 in get'
BACK = '  File "/v/lib/python3.11/site-packages/tensorflow/python/ops/script_ops.py", line 147 in __call__'


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (STACKS.format(f"{TF}\n{OWN}"), ("train.py:14 in step", True)),
        (STACKS.format(f"{TF}\n{OURS}\n{OWN}"), ("train.py:14 in step", True)),
        (STACKS.format(OWN), ("train.py:14 in step", False)),
        (STACKS.format(f"{QUEUE}\n{OWN}"), ("train.py:14 in step", False)),
        (STACKS.format(f"{QUEUE}\n{TF}\n{OWN}"), ("train.py:14 in step", True)),
        (
            STACKS.replace(
                "Thread 0x00007f1",
                f"Thread 0x00007f3 (most recent call first):\n{OWN.replace('14', '3')}\n{BACK}\n\nThread 0x00007f1",
            ).format(f"{TF}\n{OWN}"),
            ("train.py:3 in step", False),
        ),
        ("", ("", None)),
    ],
    ids=[
        "in a collective",
        "through phalanx",
        "in the program",
        "a queue",
        "TensorFlow's own queue",
        "input of its own",
        "nothing",
    ],
)
def test_stacks_tell_where_it_is_and_whether_it_waits(text, found):
    assert telling(text) == found


def test_writing_its_stacks_is_no_sign_of_life():
    """Somebody looks at a task that sleeps, and the clock of its silence goes on."""
    film = Film()
    assert film.run(10, listens=False) == [Quiet(0.0)]
    assert film.run(1, cpu=0.01, disturbed=True) == []
    assert film.run(10, disturbed=False) == []
    assert film.run(1, cpu=0.01) == [Awake()]
