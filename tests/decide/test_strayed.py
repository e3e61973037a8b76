"""A flag of phalanx after the script: each parser's words for it, and what is none of our business."""

from __future__ import annotations

import pytest

from builders import running
from phalanx.cli import main
from phalanx.decide.culprit import name_culprit
from phalanx.decide.strayed import FLAGS, strayed


@pytest.mark.parametrize(
    ("line", "part"),
    [
        ("train.py: error: unrecognized arguments: --max-restarts 0", "--max-restarts is a flag of phalanx: write it"),
        ("train.py: error: unrecognized arguments: --max-restarts=0 x", "before train.py"),
        ("train.py: error: unrecognized arguments: --hang 3m --detach", "--hang, --detach are flags of phalanx"),
        ("Error: No such option: --max-restarts", "before the script"),
        ("FATAL Flags parsing error: Unknown command line flag 'max_restarts'. Did you mean: x", "--max-restarts"),
        ("train: unrecognized option '--workers'", "--workers"),
    ],
)
def test_a_flag_that_the_script_refuses_and_phalanx_knows_is_told(line, part):
    assert part in strayed(("usage: train.py [-h] [--workers-dir X]", line))


@pytest.mark.parametrize(
    "line",
    [
        "train.py: error: unrecognized arguments: --learning-rate 0.1",
        "train.py: error: argument --hang: invalid float value: 'x'",
        "usage: train.py [-h] [--max-restarts N]",
        "ValueError: unknown option x in --name",
    ],
)
def test_what_is_the_scripts_own_stays_its_own(line):
    assert strayed((line,)) == ""


def test_the_hint_of_the_failure_says_it():
    said = ("usage: train.py [-h]", "train.py: error: unrecognized arguments: --max-restarts 0")
    found = name_culprit(running().at(5).exited("worker:0", code=2, said=said).state, 1.0)
    assert found is not None
    assert "before train.py" in found.hint


def test_the_names_are_those_of_the_command_line():
    known = main.app()["run"].assemble_argument_collection()
    assert {name.removeprefix("--") for argument in known for name in argument.names if name.startswith("--")} == FLAGS
