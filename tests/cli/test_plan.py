"""`phalanx plan` and the flags it shares with `run`."""

from __future__ import annotations

import dataclasses
import json
import re
import socket
from pathlib import Path

import cyclopts
import pytest

from environments import switch_on
from outlines import a_host
from phalanx.cli import jobflags, main
from phalanx.job.flags import Flags


@pytest.fixture
def folder(tmp_path, monkeypatch):
    (tmp_path / "train.py").write_text("import tensorflow as tf\n")
    switch_on(tmp_path, monkeypatch)
    monkeypatch.setattr(socket, "gethostname", lambda: "box.example")
    cores = (tuple((cpu,) for cpu in range(12)),)
    monkeypatch.setattr("phalanx.agent.facts.this_machine", lambda _environ: a_host(cpus=12, nodes=cores))
    return tmp_path


def page(phalanx, folder: Path, *words: str) -> str:
    code, out, err = phalanx("plan", *words)
    assert (code, err) == (0, "")
    return out.replace(str(folder), "/work")


def test_a_plan_shows_everything_that_would_be_started(phalanx, folder, golden):
    words = ["--workers", "2", "--ps", "1", "--evaluator", "--checkpoint", "ckpt", "train.py", "--dir", "{checkpoint}"]
    golden("job/plan-ps.txt", page(phalanx, folder, *words))


def test_a_plan_of_many_workers_stays_a_page(phalanx, folder, golden):
    golden(
        "job/plan-many.txt",
        page(phalanx, folder, "--workers", "200", "--hosts", "3", "--ports", "22000-22999", "train.py"),
    )


def test_a_plan_of_a_job_file_shows_its_notes(phalanx, folder, golden):
    (folder / "job.yaml").write_text(
        """\
command: [sh, -c, 'echo "$API_KEY"']
env: {API_KEY: hunter2, TWO: "a\\nb"}
roles: {worker: {cpus: 2}}
secrets: [{name: s3, env: S3_KEY, from: {file: /run/s3}}]
on: {slurm: {partition: gpu}}
"""
    )
    text = page(phalanx, folder, "job.yaml")
    assert "hunter2" not in text
    golden("job/plan-notes.txt", text)


def test_the_machine_readable_plan_has_each_tasks_own_environment(phalanx, folder):
    code, out, _ = phalanx("plan", "--json", "--workers", "2", "train.py", "--json")
    plan = json.loads(out)
    assert code == 0
    assert plan["interpreter"]["tensorflow"] == "2.21.0"
    assert [task["argv"][1:] for task in plan["tasks"]] == [["train.py", "--json"]] * 2
    configs = [json.loads(task["env"]["TF_CONFIG"]) for task in plan["tasks"]]
    assert configs[0]["cluster"] == configs[1]["cluster"] == plan["cluster"]
    assert [config["task"]["index"] for config in configs] == [0, 1]
    assert plan["tasks"][0]["env"]["PHALANX_TASK_DIR"].startswith(f"{folder}/runs/train-")


@pytest.mark.parametrize("words", [["train.py"], ["--json", "train.py"]])
def test_a_plan_leaves_nothing_behind(phalanx, folder, words):
    before = sorted(folder.rglob("*"))
    phalanx("plan", "--workers", "2", *words)
    assert sorted(folder.rglob("*")) == before


def test_flags_of_run_are_taken_so_that_the_verbs_may_be_swapped(phalanx, folder):
    code, out, _ = phalanx("plan", "--detach", "--quiet", "--runs", "elsewhere", "train.py")
    assert code == 0
    assert f"PHALANX_TASK_DIR={folder}/elsewhere/train-" in out


@pytest.mark.parametrize(
    ("words", "command"),
    [
        (["--workers", "2", "train.py", "--epochs", "3", "--help"], ["train.py", "--epochs", "3", "--help"]),
        (["--workers", "2", "--", "train.py", "--epochs", "3", "--help"], ["train.py", "--epochs", "3", "--help"]),
        (
            ["--workers=2", "train.py", "--workers", "9", "--", "--version"],
            ["train.py", "--workers", "9", "--", "--version"],
        ),
        (["--no-chief", "--evaluator", "--workers", "2", "train.py", "-h"], ["train.py", "-h"]),
        (["--workers", "2", "--json", "python", "train.py", "--json"], ["train.py", "--json"]),
        (["--workers", "2", "train.py", ""], ["train.py", ""]),
        (["--workers", "2", "--", "train.py", "--"], ["train.py", "--"]),
    ],
)
def test_everything_after_the_script_belongs_to_the_script(phalanx, folder, words, command):
    del folder
    code, out, err = phalanx("plan", *(["--json"] if "--json" not in words[:4] else []), *words)
    assert (code, err) == (0, "")
    assert json.loads(out)["tasks"][0]["argv"][1:] == command


def test_flags_may_follow_a_job_file_which_has_none_of_its_own(phalanx, folder):
    (folder / "job.yaml").write_text("command: [train.py]\n")
    code, out, _ = phalanx("plan", "job.yaml", "--workers", "3")
    assert code == 0
    assert "3 workers" in out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--wokers", "2", "train.py"], "Did you mean --workers?"),
        (["--workers", "two", "train.py"], "--workers: must be a whole number, not two"),
        (["--workers", "-2", "train.py"], "--workers: must be at least 0, not -2"),
        (["--workers"], "--workers"),
        ([], "nothing to run"),
        (["--on", "slurm", "train.py"], "--on slurm: slurm comes in a later release"),
        (["--silence", "soon", "train.py"], "--silence: "),
        (["--max-restarts", "-1", "train.py"], "--max-restarts: must be at least 0, not -1"),
        (["trian.py"], "no such file: trian.py; did you mean train.py?"),
        (["job.yaml"], "no such file: job.yaml"),
    ],
)
def test_a_wrong_word_is_one_clear_error_and_code_2(phalanx, folder, words, said):
    del folder
    code, out, err = phalanx("plan", *words)
    assert (code, out) == (2, "")
    assert said in err
    assert err.startswith("phalanx: ")


def test_every_mistake_of_a_file_is_printed_a_line_each(phalanx, folder):
    (folder / "job.yaml").write_text("command: train.py\nroles: {wroker: {count: -1}}\n")
    code, _, err = phalanx("plan", "job.yaml")
    assert code == 2
    assert re.findall(r"^job\.yaml:\d+:\d+: ", err, re.MULTILINE) == ["job.yaml:1:1: ", "job.yaml:2:18: "]


def test_every_flag_of_the_job_has_its_word_on_the_command_line():
    assert {field.name for field in dataclasses.fields(jobflags.JobFlags)} == {
        field.name for field in dataclasses.fields(Flags)
    }
    assert jobflags.JobFlags(workers=3, chief=False).flags() == Flags(workers=3, chief=False)


def test_run_knows_where_its_flags_end_without_being_told_them_twice():
    words = ["run", "--runs", "elsewhere", "--detach", "train.py", "--detach"]
    assert jobflags.delimit(main.app(), words) == [*words[:4], "--", *words[4:]]


@pytest.mark.parametrize("verb", ["run", "plan"])
@pytest.mark.parametrize(
    ("flag", "said"),
    [
        ("--epochs", "After a job.yaml come flags of phalanx; the script's arguments belong in its `command:`"),
        ("--wokers", "did you mean --workers?"),
    ],
)
def test_a_flag_of_the_script_after_a_job_file_is_told_where_it_belongs(phalanx, folder, verb, flag, said):
    (folder / "job.yaml").write_text("command: [train.py]\n")
    code, out, err = phalanx(verb, "job.yaml", flag, "3")
    assert (code, out) == (2, "")
    assert err.startswith(f"phalanx: {flag} is no flag of phalanx\n")
    assert said.lower() in err.lower()
    assert not (folder / "runs").exists()


@pytest.mark.parametrize("verb", ["run", "plan"])
def test_too_few_gpus_are_wrong_input_and_leave_no_run_behind(phalanx, folder, monkeypatch, verb):
    code, out, err = phalanx(verb, "--gpus-per-worker", "1", "train.py")
    assert (code, out) == (2, "")
    assert err.startswith("phalanx: worker:0 wants 1 GPU; box has none\n  leave --gpus-per-worker out")
    assert not (folder / "runs").exists()


def test_a_plan_says_where_the_commands_of_a_job_file_start(phalanx, folder, monkeypatch):
    (folder / "job.yaml").write_text("command: [train.py]\n")
    (folder / "below").mkdir()
    monkeypatch.chdir(folder / "below")
    code, out, _ = phalanx("plan", "../job.yaml")
    assert code == 0
    assert f"folder       {folder} (commands start and relative paths begin here)" in out


@pytest.mark.parametrize(
    "words", [[], ["check", "x.json", "--json"], ["run"], ["run", "--", "x"], ["run", "--workers"]]
)
def test_words_without_a_script_are_left_alone(words):
    assert jobflags.delimit(main.app(), words) == words


def test_the_help_of_plan_names_every_flag(phalanx):
    _, out, _ = phalanx("plan", "--help")
    flags = {f"--{field.name.replace('_', '-')}" for field in dataclasses.fields(Flags)}
    assert {flag for flag in flags if flag not in out} == set()
    assert isinstance(main.app()["plan"], cyclopts.App)


def test_a_plan_tells_its_budget_of_restarts(phalanx, folder):
    text = page(phalanx, folder, "--workers", "2", "--max-restarts", "2", "train.py")
    assert "2 after failures of one kind within 1h" in text
