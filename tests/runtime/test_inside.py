"""Whether the main thread is in a training step: what tells a lack of data from a collective that one calls alone."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from phalanx.runtime.boot.phalanx_life import INSIDE
from phalanx.runtime.boot.phalanx_steps import Steps

TRAINS, OTHER = object(), object()


class OutOfRangeError(Exception):
    """As TensorFlow calls the end of the data."""


class Loop:
    """A program of one function that trains and one that does not."""

    def __init__(self) -> None:
        self.words = [0] * 32
        line = SimpleNamespace(words=self.words, main_thread=0, now=lambda: 1, say=lambda *_: None)
        self.steps = Steps(line)
        self.steps.trains(TRAINS)

    @property
    def inside(self) -> bool:
        return bool(self.words[INSIDE])

    def call(self, function: object, ends: Exception | None = None) -> None:
        self.steps.before(function)
        done = False
        try:
            if ends is not None:
                raise ends
            done = True
        finally:
            self.steps.after(function, done)


def test_a_step_is_inside_from_its_beginning_to_its_end():
    loop = Loop()
    loop.steps.before(TRAINS)
    assert loop.inside
    loop.steps.after(TRAINS, True)  # noqa: FBT003 - it is done
    assert not loop.inside


def test_the_first_step_is_known_for_one_as_soon_as_gradients_are_taken_in_it():
    loop, first = Loop(), lambda: None
    loop.steps.before(first)
    loop.steps.trains(first)
    assert loop.inside


def test_a_step_that_an_exception_has_ended_is_where_the_program_has_come_to():
    loop = Loop()
    with pytest.raises(ValueError, match="a peer"):
        loop.call(TRAINS, ValueError("a peer is gone"))
    assert loop.inside
    loop.steps.before(OTHER)
    assert not loop.inside, "it was caught, and the program went on to something else"


@pytest.mark.parametrize("end", [OutOfRangeError(), StopIteration()])
def test_a_step_that_finds_no_more_data_is_over(end):
    loop = Loop()
    with pytest.raises(type(end)):
        loop.call(TRAINS, end)
    assert not loop.inside


def test_a_program_without_gradients_is_inside_while_it_is_in_what_is_counted():
    """Its peer that has come to the end is waited for; it does not wait alone (R60)."""
    loop = Loop()
    loop.steps._training.clear()
    for _ in range(30):
        loop.call(OTHER)
    assert not loop.inside
    loop.steps.before(OTHER)
    assert loop.inside
