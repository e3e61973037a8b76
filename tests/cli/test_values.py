"""How the values of options are read, the same by every verb."""

from __future__ import annotations

import pytest

from phalanx.cli import main
from phalanx.cli.arguments import ARGUMENTS
from phalanx.cli.values import choice, whole

VERBS = [verb for group in main.VERBS.values() for verb in group]


@pytest.fixture
def phalanx(phalanx, monkeypatch, tmp_path):
    """The same in a folder with a script."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").touch()
    return phalanx


@pytest.mark.parametrize("verb", VERBS)
def test_every_number_and_every_choice_of_every_verb_is_read_by_the_same_two_functions(verb):
    for argument in main.app()[verb].assemble_argument_collection():
        kinds = str(argument.hint)
        if "Literal" in kinds:
            assert argument.parameter.converter is choice, argument.name
        elif "int" in kinds.replace("print", ""):
            assert argument.parameter.converter is whole, argument.name


@pytest.mark.parametrize(
    "value", ["2.5", "2.0", "2_0", "0x4", "0b1", "1e3", "two", "010", "+2", " 2", "٢", "", "9" * 30]
)
@pytest.mark.parametrize(
    "words",
    [
        ["run", "--workers={}", "train.py"],
        ["plan", "--workers", "{}", "train.py"],
        ["generate", "--workers", "{}"],
        ["generate", "--workers", "2", "--port={}"],
        ["check", "--hosts", "{}"],
        ["explain", "--width", "{}"],
        ["logs", "--generation", "{}"],
    ],
)
def test_what_is_no_plain_whole_number_is_refused_and_starts_nothing(phalanx, tmp_path, words, value):
    code, out, err = phalanx(*(word.replace("{}", value) for word in words))
    assert (code, out) == (2, "")
    assert ": must be a whole number, not " in err
    assert [path.name for path in tmp_path.iterdir()] == ["train.py"]


def test_a_wrong_number_is_named_with_its_flag(phalanx):
    assert phalanx("run", "--workers", "2.5", "train.py")[2] == "phalanx: --workers: must be a whole number, not 2.5\n"


@pytest.mark.parametrize("words", [["plan", "train.py"], ["generate"], ["check"]])
def test_a_wrong_choice_is_answered_with_all_of_them(phalanx, words):
    code, _, err = phalanx(words[0], "--strategy", "mirrored", *words[1:])
    assert code == 2
    assert err.startswith("phalanx: --strategy: `mirrored` is none of ")
    assert all(word in err for word in ("mwms", "ps", "estimator", "auto"))


def test_a_slip_in_a_choice_is_answered_with_the_nearest(phalanx):
    assert "did you mean mwms?" in phalanx("plan", "--strategy", "mwsm", "train.py")[2]


def test_no_machines_at_all_are_no_number_of_hosts(phalanx):
    code, _, err = phalanx("check", "--hosts", "0")
    assert (code, err.splitlines()[0]) == (2, "phalanx: --hosts: must be at least 1, not 0")


@pytest.mark.parametrize("flag", [["-o", "-"], ["--output", "-"], ["--output=-"], ["-o=-"]])
def test_a_dash_as_the_file_to_write_prints_it(phalanx, tmp_path, flag):
    code, out, err = phalanx("init", *flag, "train.py")
    assert (code, err) == (0, "")
    assert out.startswith("# What to run")
    assert [path.name for path in tmp_path.iterdir()] == ["train.py"]


def test_a_flag_is_not_taken_for_the_file_to_write(phalanx, tmp_path):
    code, _, err = phalanx("init", "-o", "--workers", "train.py")
    assert (code, err.splitlines()[0]) == (2, "phalanx: -o: wants a file, not --workers")
    assert [path.name for path in tmp_path.iterdir()] == ["train.py"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["generate", "--workers", "2", "--out", "-"], "--out wants a folder"),
        (["run", "-"], "a job is not read from standard input"),
        (["plan", "--runs", "-", "train.py"], "--runs requires an argument"),
        (["ps", "-"], "Unknown option"),
    ],
)
def test_a_dash_that_means_nothing_is_refused(phalanx, tmp_path, words, said):
    code, out, err = phalanx(*words)
    assert (code, out) == (2, "")
    assert said in err
    assert [path.name for path in tmp_path.iterdir()] == ["train.py"]


@pytest.mark.parametrize("verb", VERBS)
def test_the_usage_line_of_a_verb_names_what_its_table_names(phalanx, verb):
    _, out, _ = phalanx(verb, "--help")
    first = out.splitlines()[0]
    assert first.startswith(f"Usage: phalanx {verb}")
    assert "[ARGS]" not in first
    for argument in main.app()[verb].assemble_argument_collection():
        if argument.index is not None:
            assert argument.names[0].strip("[]").partition("]")[0] in first


def test_every_verb_says_what_it_takes():
    assert list(ARGUMENTS) == VERBS


@pytest.mark.parametrize(
    ("words", "expected"), [(["run", "--workers", "2", "train.py"], 4), (["bench", "train.py"], 4), (["ps"], 130)]
)
def test_a_ctrl_c_before_anything_has_begun_is_one_line(phalanx, monkeypatch, words, expected):
    def pressed(**how: bool) -> None:
        del how
        raise KeyboardInterrupt

    monkeypatch.setattr(main, "app", pressed)
    assert phalanx(*words) == (expected, "", "phalanx: interrupted\n")
