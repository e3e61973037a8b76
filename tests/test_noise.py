"""What counts as noise: lines as TensorFlow 2.21 prints them, and what must never be taken for it."""

from __future__ import annotations

import pytest

from phalanx.noise import is_noise, own_words, telling

NOISE = [
    "WARNING: All log messages before absl::InitializeLog() is called are written to STDERR",
    "I0000 00:00:1796029155.014306   11370 port.cc:153] oneDNN custom operations are on. You may see slightly",
    "W0000 00:00:1796029155.014306   11370 computation_placer.cc:177] computation placer already registered.",
    "E0000 00:00:1796029155.014306   11370 cuda_executor.cc:1228] failed call to cuInit: INTERNAL: CUDA error",
    "2026-11-30 07:00:01.123456: I tensorflow/core/platform/cpu_feature_guard.cc:210] This TensorFlow binary",
    "2026-11-30 07:00:01.123456: W external/local_xla/xla/tsl/framework/cpu_allocator_impl.cc:83] Allocation of",
    "/job:worker/replica:0/task:1",  # what a message before it is about
    "To enable the following instructions: AVX2 FMA, in other operations, rebuild TensorFlow with the appropriate",
]
TELLING = [
    "epoch 1 loss 0.3",
    "KeyError: 'nope'",
    "I1130 07:00:01.000000 140 train.py:33] step 400",  # a program that logs with absl
    "F0000 00:00:1796029155.014306   11370 status.cc:10] Check failed: it says why the process was aborted",
    "2026-11-30 07:00:01.123456: E tensorflow/core/distributed_runtime/x.cc:1] Socket closed",
    "2026-11-30 07:00:01 INFO training starts",
    "Info: I0000 is a name",
    "",
]


@pytest.mark.parametrize("line", NOISE)
def test_native_code_talks_in_every_run(line: str):
    assert is_noise(line)
    assert is_noise("  " + line)


@pytest.mark.parametrize("line", TELLING)
def test_a_programs_own_words_are_no_noise(line: str):
    assert not is_noise(line)


def test_noise_is_left_out_where_something_else_is_said():
    assert telling([NOISE[0], "Traceback", NOISE[1], "", "KeyError"]) == ("Traceback", "", "KeyError")
    assert telling([*NOISE, ""]) == (*NOISE, "")
    assert telling([]) == ()


def test_who_prints_nothing_but_noise_has_no_words_of_its_own():
    assert own_words([NOISE[0], " Traceback", "", "KeyError"]) == (" Traceback", "KeyError")
    assert own_words([*NOISE, ""]) == ()
