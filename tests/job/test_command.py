from __future__ import annotations

import os

import pytest

from phalanx.job.command import default_name, mistakes, script_at, wants_interpreter, with_interpreter


@pytest.mark.parametrize(
    ("words", "argv"),
    [
        ("train.py --epochs 3", "PY train.py --epochs 3"),
        ("./sub/train.py", "PY ./sub/train.py"),
        ("python train.py", "PY train.py"),
        ("python3 -u -m pkg.train", "PY -u -m pkg.train"),
        ("python3.11 train.py", "python3.11 train.py"),
        ("/usr/bin/python3 train.py", "/usr/bin/python3 train.py"),
        ("bash launch.sh python", "bash launch.sh python"),
    ],
)
def test_bare_python_runs_under_the_chosen_interpreter_and_all_else_as_written(words, argv):
    given = words.split()
    assert " ".join(with_interpreter(given, "PY")) == argv
    assert wants_interpreter(given) is (argv.startswith("PY"))


@pytest.mark.parametrize(
    ("words", "script"),
    [
        ("train.py x.py", "train.py"),
        ("python train.py", "train.py"),
        ("python -u -W error -X dev train.py -c", "train.py"),
        ("/opt/bin/python3.12 -Werror train.py", "train.py"),
        ("python -m train", None),
        ("python -c 1", None),
        ("python -", None),
        ("python", None),
        ("bash train.py", None),
    ],
)
def test_the_script_is_found_behind_pythons_own_flags(words, script):
    argv = words.split()
    at = script_at(argv)
    assert (argv[at] if at is not None else None) == script


@pytest.mark.parametrize(
    ("words", "name"),
    [
        ("train.py", "train"),
        ("python jobs/Train_CTR.v2.py", "train-ctr-v2"),
        ("python -m pkg.fit", "fit"),
        ("python -c 1", "python"),
        ("./launch.sh", "launch-sh"),
        ("2024.py", "job-2024"),
        ("python " + "x" * 90 + ".py", "x" * 40),
        ("--- ", "job"),
    ],
)
def test_a_job_is_named_after_its_script(words, name):
    assert default_name(words.split()) == name


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "train.py").touch()
    (tmp_path / "launch.sh").touch()
    (tmp_path / "go").touch(0o755)
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "__main__.py").touch()
    (tmp_path / "empty").mkdir()
    return tmp_path


@pytest.mark.parametrize(
    ("words", "at", "said"),
    [
        ("trian.py", 0, "no such file: trian.py; did you mean train.py?"),
        ("python -u trian.py", 2, "no such file: trian.py; did you mean train.py?"),
        (
            "nope/train.py",
            0,
            "no such file: nope/train.py; there is no folder nope either: name the file by a path that `ls` finds",
        ),
        ("python empty", 1, "empty is a folder without __main__.py; name the script in it"),
        ("./launch.sh", 0, "./launch.sh may not be executed; chmod +x ./launch.sh, or name its interpreter first"),
        ("launch.sh", 0, "no program `launch.sh` on PATH; for the file in this folder write ./launch.sh"),
        ("empty", 0, "empty is a folder; name the script in it"),
        ("/", 0, "/ is a folder; name the script in it"),
        ("./og", 0, "no such file: ./og in FOLDER; name it by its path from there"),
        ("./goo", 0, "no such file: ./goo; did you mean ./go?"),
        ("zebra.py", 0, "no such file: zebra.py in FOLDER; name it by its path from there"),
        ("/zebra.py", 0, "no such file: /zebra.py; `ls` that folder"),
        ("zebra", 0, "no program `zebra` on PATH; install it, or write its path (a Python script ends in .py)"),
        ("train", 0, "no program `train` on PATH; did you mean train.py?"),
        ("python", 0, "`python` reads its program from standard input, which tasks do not have; name a script"),
        ("python -", 0, "`python -` reads its program from standard input, which tasks do not have; name a script"),
        ("python -m", 1, "`-m` wants a word after it"),
    ],
)
def test_what_will_not_start_is_said_before_it_does(folder, words, at, said):
    found = mistakes(words.split(), cwd=folder, path=str(folder))
    assert found == [(at, said.replace("FOLDER", str(folder)))]


@pytest.mark.parametrize(
    "words",
    ["train.py --x", "python train.py", "python package", "python -m x", "./go", "go", "{task_dir}/x.py", "{run}/go"],
)
def test_what_will_start_is_no_mistake(folder, words):
    assert mistakes(words.split(), cwd=folder, path=str(folder)) == []


def test_a_missing_interpreter_and_a_missing_script_are_both_said(folder):
    assert mistakes(["python9", "trian.py"], cwd=folder, path="") == [
        (0, "no program `python9` on PATH; install it, or write its path (a Python script ends in .py)"),
        (1, "no such file: trian.py; did you mean train.py?"),
    ]


def test_a_script_that_cannot_be_read_is_said(folder, monkeypatch):
    monkeypatch.setattr(os, "access", lambda _, mode: mode != os.R_OK)
    assert mistakes(["train.py"], cwd=folder, path="") == [(0, "train.py cannot be read; ls -l train.py shows who may")]


def test_an_empty_first_word_is_a_mistake(folder):
    assert mistakes(["", "x"], cwd=folder, path="") == [(0, "the first word of a command is empty")]
