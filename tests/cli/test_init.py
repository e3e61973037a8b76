"""`phalanx init` and `phalanx schema`."""

from __future__ import annotations

import json

import pytest

from phalanx.cli.init import init
from phalanx.cli.schema import schema
from phalanx.errors import InputError
from phalanx.job.load import load


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").write_text("raise SystemExit('run!')\nx = tf.distribute.ParameterServerStrategy(r)\n")
    return tmp_path


def test_init_writes_a_file_for_the_strategy_the_script_names(folder, capsys):
    assert init("train.py") == 0
    job = load(folder / "job.yaml").job
    assert (job.command, job.strategy) == (["python", "train.py"], "ps")
    assert {name: role.count for name, role in job.roles.items()} == {"chief": 1, "worker": 2, "ps": 1}
    assert "phalanx plan job.yaml" in capsys.readouterr().out


def test_init_never_overwrites(folder):
    (folder / "job.yaml").write_text("mine")
    with pytest.raises(InputError, match=r"job\.yaml exists and stays as it is"):
        init("train.py")
    assert (folder / "job.yaml").read_text() == "mine"


def test_init_takes_another_name_and_the_scripts_arguments(folder):
    assert init("train.py", "--lr", "1e-3", output=folder / "small.yaml") == 0
    assert load(folder / "small.yaml").job.command == ["python", "train.py", "--lr", "1e-3"]


def test_init_prints_to_a_pipe(folder, capsys):
    assert init("train.py", output=type(folder)("-")) == 0
    assert capsys.readouterr().out.startswith("# What to run")
    assert not (folder / "job.yaml").exists()


def test_init_of_a_script_that_is_not_there_writes_nothing(folder):
    with pytest.raises(InputError, match=r"no such file: trian.py; did you mean train.py\?"):
        init("trian.py")
    assert not (folder / "job.yaml").exists()


def test_init_into_a_folder_that_is_not_there_says_so(folder):
    with pytest.raises(InputError, match="cannot be written: No such file or directory"):
        init("train.py", output=folder / "nope" / "job.yaml")


def test_schema_prints_json(capsys):
    assert schema() == 0
    assert json.loads(capsys.readouterr().out)["title"] == "phalanx job"


def test_a_file_written_into_another_folder_starts_where_it_was_asked_for(folder):
    (folder / "jobs").mkdir()
    assert init("train.py", output=folder / "jobs" / "small.yaml") == 0
    assert load(folder / "jobs" / "small.yaml").job.folder == ".."


def test_a_file_written_here_names_no_folder(folder):
    assert init("train.py") == 0
    assert load(folder / "job.yaml").job.folder is None
