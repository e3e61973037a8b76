"""Whether two runs came to the same."""

from __future__ import annotations

from phalanx.chaos.compare import compare

CALM = """hello
epoch 1/3 loss 0.5 accuracy 0.8
epoch 2/3 loss 0.25 accuracy 0.9
epoch 3/3 loss 0.125 accuracy 1.0
end 1.0
"""


def test_an_epoch_that_was_done_twice_with_the_same_digits_is_the_same():
    twice = CALM.replace("epoch 2", "resumed\nepoch 1/3 loss 0.5 accuracy 0.8\nepoch 2", 1)
    found = compare(CALM, twice, pattern="^epoch")
    assert (found.equal, found.lines, found.last) == (True, 4, "end 1.0")


def test_one_digit_is_a_difference_and_is_shown():
    found = compare(CALM, CALM.replace("0.25", "0.26"), pattern="^epoch")
    assert found.difference == "`epoch 2/3 loss 0.26 accuracy 0.9` instead of `epoch 2/3 loss 0.25 accuracy 0.9`"
    assert compare(CALM, CALM.replace("0.25", "0.26")).equal, "only the last line was asked for"


def test_a_second_time_that_differs_is_a_difference_even_where_the_last_is_right():
    again = "epoch 2/3 loss 0.3 accuracy 0.9\n" + CALM
    assert not compare(CALM, again, pattern="^epoch").equal


def test_within_the_tolerance_numbers_may_differ_and_epochs_may_not():
    assert compare(CALM, CALM.replace("0.25", "0.2501"), pattern="^epoch", tolerance=1e-3).equal
    assert not compare(CALM, CALM.replace("0.25", "0.26"), pattern="^epoch", tolerance=1e-3).equal
    assert not compare(CALM, CALM.replace("epoch 2/3", "epoch 4/3"), pattern="^epoch", tolerance=9).equal


def test_a_missing_line_and_a_silent_run_are_differences():
    short = CALM.replace("epoch 2/3 loss 0.25 accuracy 0.9\n", "")
    assert compare(CALM, short, pattern="^epoch").difference == "`epoch 2/3 loss 0.25 accuracy 0.9` is missing"
    assert compare(CALM, "").difference == "the run printed nothing"
    assert "matches" in compare(CALM, CALM, pattern="^nothing").difference
    assert "instead of `end 1.0`" in compare(CALM, CALM + "and more\n").difference
