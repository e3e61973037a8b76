"""How fast a task trains, by its samples."""

from __future__ import annotations

import dataclasses

from hypothesis import given
from hypothesis import strategies as st

from phalanx.names import TaskId
from phalanx.sample import TaskSample
from phalanx.speed import WIDER, WINDOW, Speed, seconds_left, speed_between, speed_now, speeds

START = TaskSample(task=TaskId("worker", 0), generation=1, attempt=1, at=1000.0, steps=0, collective=0.0)


def later(seconds: float, **more: object) -> TaskSample:
    return dataclasses.replace(START, at=START.at + seconds, **more)


def test_a_speed_is_that_of_the_last_seconds():
    samples = [later(3.0 * n, steps=3 * n if n < 10 else 27 + 30 * (n - 9), collective=1.5 * n) for n in range(20)]
    assert speed_now(samples) == Speed(steps_per_second=10.0, collective_share=0.5)


def test_where_a_step_takes_longer_than_the_window_a_wider_one_is_looked_at():
    samples = [later(3.0 * n, steps=n // 10) for n in range(20)]
    assert WINDOW < 27 < WIDER
    assert speed_now(samples).steps_per_second == 1 / 57


def test_one_sample_alone_has_no_speed():
    assert speed_now([]) == speed_now([START]) == Speed()
    assert speeds([START]) == []


def test_a_share_is_known_where_both_ends_are_and_never_more_than_all():
    assert speed_between(START, later(1.0, collective=None)).collective_share is None
    assert speed_between(later(0.0, collective=None), later(1.0, collective=1.0)).collective_share is None
    assert speed_between(START, later(1.0, collective=1.2)).collective_share == 1.0


@given(st.integers(1, 20), st.integers(1, 1000), st.floats(0.01, 1000.0))
def test_what_is_left_at_a_steady_pace_is_what_is_left(epochs: int, each: int, rate: float):
    total = epochs * each
    first = later(0.0, epoch=1, epochs=epochs, steps_per_epoch=each, epoch_step=0)
    for done in {0, total // 3, total - 1} - {0}:
        now = later(
            done / rate,
            steps=done,
            epoch=done // each + 1,
            epochs=epochs,
            steps_per_epoch=each,
            epoch_step=done % each,
        )
        left = seconds_left(first, now)
        assert left is not None
        assert abs(left - (total - done) / rate) < 1e-6 * total / rate + 1e-6


def test_nobody_can_tell_what_is_left_of_a_loop_or_of_epochs_of_unknown_length_or_while_nothing_moves():
    known = {"epoch": 1, "epochs": 2, "steps_per_epoch": 10, "epoch_step": 5}
    assert seconds_left(START, later(5.0, steps=5, **known)) == 15.0
    for name in known:
        assert seconds_left(START, later(5.0, steps=5, **{**known, name: None})) is None
    assert seconds_left(START, later(5.0, steps=0, **known)) is None
