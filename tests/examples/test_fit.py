"""Keras' own fit on several workers: by phalanx and by hand the same numbers."""

from __future__ import annotations

import pytest

from byhand import EXAMPLES, epochs, figures, finish, start, threads, together

KERAS_3 = EXAMPLES / "keras_fit" / "train.py"
TF_KERAS = EXAMPLES / "legacy_keras" / "train.py"

pytestmark = [pytest.mark.real, pytest.mark.tensorflow, pytest.mark.timeout(600)]


def test_tf_keras_fits_digits_on_two_workers_by_phalanx_as_by_hand_to_the_last_digit(here):
    by_hand = together({"worker": 2}, TF_KERAS, "--epochs", 3)
    done = here.call("run", "--workers", 2, TF_KERAS, "--epochs", 3)
    assert done.returncode == 0, done.stdout + done.stderr
    for task, lines in by_hand.items():
        assert epochs(here.said(task)) == lines
        assert figures(lines, "accuracy")[-1] >= 0.9


def test_keras_3_fits_digits_on_two_workers_by_phalanx_as_alone_by_hand(here):
    """R89: two workers by hand fail."""
    alone = finish(start(KERAS_3, "--epochs", 3, **threads(2)))
    done = here.call("run", "--workers", 2, KERAS_3, "--epochs", 3)
    assert done.returncode == 0, done.stdout + done.stderr
    for task in ("worker:0", "worker:1"):
        lines = epochs(here.said(task))
        assert figures(lines, "loss") == pytest.approx(figures(alone, "loss"), abs=1e-5)
        assert figures(lines, "accuracy")[-1] >= 0.9
