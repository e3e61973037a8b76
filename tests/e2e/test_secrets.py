"""A declared secret reaches the task, and nothing else of the run."""

from __future__ import annotations

from pathlib import Path

import pytest

from launched import processes_with, wait_for

pytestmark = pytest.mark.real

JOB = """
name: secretive
command: [python, train.py]
roles: {worker: {count: 2}}
secrets: [{name: s3, env: S3_KEY, from: {env: MY_KEY}}]
"""


def test_a_declared_secret_is_in_the_task_and_in_no_record_log_or_command_line(here):
    value = "tango-Zulu-9182736455"
    here.script(
        "import os, time\n"
        f"assert os.environ['S3_KEY'] == {value!r}\n"
        "print('the key is', os.environ['S3_KEY'], flush=True)\n"
        "time.sleep(1.5)\n"
    )
    (here.folder / "job.yaml").write_text(JOB)
    launcher = here.start("run", "job.yaml", MY_KEY=value)
    wait_for(lambda: "the key is ***" in here.said("worker:0"), "the masked line")
    lines = [command for command in processes_with(value).values() if value in command]
    assert lines == []
    assert launcher.wait(timeout=30) == 0
    records = [path for path in here.run_folder().rglob("*") if path.is_file()]
    assert len(records) > 5
    assert [path for path in records if value.encode() in path.read_bytes()] == []
    assert value not in (launcher.stdout.read() + launcher.stderr.read())


def test_a_secret_in_the_message_of_an_exception_is_masked_wherever_that_is_kept(here):
    value = 'tango"Zulu\\9182736455'
    here.script("import os, threading\nraise ValueError('no such key: ' + os.environ['S3_KEY'])\n")
    (here.folder / "job.yaml").write_text(JOB + "restart: {max: 0}\n")
    done = here.call("run", "job.yaml", MY_KEY=value)
    assert done.returncode == 1
    task = next(task for task in here.report()["tasks"] if task["part"] == "culprit")
    assert (task["raised"], task["raised_at"]) == ("ValueError: no such key: ***", str(here.folder / "train.py") + ":2")
    assert "no such key: ***" in Path(task["error_file"]).read_text()
    kept = b"".join(path.read_bytes() for path in here.run_folder().rglob("*") if path.is_file())
    assert b"Zulu" not in kept


def test_a_secret_that_is_not_there_stops_before_anything_starts(here):
    here.script("print('never')")
    (here.folder / "job.yaml").write_text(JOB)
    done = here.call("run", "job.yaml")
    assert done.returncode == 2
    assert "MY_KEY" in done.stderr
    assert not Path(here.runs).exists()
