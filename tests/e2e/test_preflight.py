"""The preflight of real runs: what it stops, what it lets pass, and what it leaves behind."""

from __future__ import annotations

import json
import subprocess

import pytest

pytestmark = pytest.mark.real

HEALTHY = "import json\nprint('ran', flush=True)\n"
WANTING = "import no_such_module_here\nprint('ran', flush=True)\n"


def test_a_healthy_run_passes_and_says_so(here):
    here.script(HEALTHY)
    done = here.call("run", "--workers", 4, "--hosts", 2, "--checkpoint", "ckpt", "train.py")
    assert done.returncode == 0, done.stdout + done.stderr
    assert len(here.events("host-checked")) == 2
    assert {"peers-reachable", "names-resolve", "checkpoint-shared"} <= set(here.event("host-checked")["looked"])
    assert here.event("preflight-passed")["seconds"] < 10
    assert list((here.folder / "ckpt").iterdir()) == []


def test_a_missing_module_ends_the_run_before_any_task_with_its_fix(here):
    """R52."""
    here.script(WANTING)
    done = here.call("run", "--workers", 2, "--checkpoint", "ckpt", "train.py")
    assert done.returncode == 2
    assert "train.py imports no_such_module_here" in done.stdout
    assert "--ignore-check modules-found starts all the same" in done.stdout
    assert here.events("task-started") == []
    assert (here.report()["result"], here.report()["kind"]) == ("failed", "user")
    assert not (here.folder / "ckpt").exists()
    here.gone(within=5)


def test_a_script_with_a_typing_error_ends_the_run_before_any_task_with_the_line(here):
    here.script("import json\n\nprint('ran'\n")
    done = here.call("run", "--workers", 2, "train.py")
    assert done.returncode == 2
    assert "preflight script-parses: " in done.stdout
    assert "train.py:3:6: '(' was never closed" in done.stdout
    assert "print('ran'" in done.stdout
    assert "--ignore-check script-parses starts all the same" in done.stdout
    assert here.events("task-started") == []


def test_one_host_without_the_module_is_the_one_named(here):
    """R52: the environment of one role, and so of one host, lacks what the other has."""
    here.script(WANTING)
    (here.folder / "site").mkdir()
    (here.folder / "site" / "no_such_module_here.py").touch()
    there = str(here.folder / "site")
    workers = {"count": 2, "per_host": 1, "env": {"PYTHONPATH": there}}
    job = {"command": ["train.py"], "roles": {"chief": {"count": 1}, "worker": workers}}
    (here.folder / "job.json").write_text(json.dumps(job))
    done = here.call("run", "job.json")
    assert done.returncode == 2, done.stdout
    assert {event["host"]: len(event.get("faults", [])) for event in here.events("host-checked")} == {0: 1, 1: 0}
    assert here.event("culprit-named")["host"] == 0


@pytest.mark.parametrize("words", [("--ignore-check", "modules-found"), ("--no-preflight",)])
def test_a_fatal_check_can_be_overridden_and_the_program_speaks_for_itself(here, words):
    here.script(WANTING)
    done = here.call("run", *words, "--workers", 2, "train.py")
    assert done.returncode == 1
    assert "ModuleNotFoundError" in done.stdout


def test_a_check_that_there_is_none_of_is_refused_with_the_one_meant(here):
    here.script(HEALTHY)
    done = here.call("run", "--ignore-check", "module-found", "train.py")
    assert done.returncode == 2
    assert "did you mean modules-found?" in done.stderr
    assert "--ignore-check" in done.stderr
    assert not here.runs.exists()


def test_a_proxy_is_said_and_changes_nothing(here):
    """R46."""
    here.script(HEALTHY)
    done = here.call("run", "--workers", 2, "train.py", http_proxy="http://127.0.0.1:9")
    assert done.returncode == 0
    assert "preflight proxy: " in done.stdout
    assert any("http_proxy is set" in note for note in here.report()["notes"])


def test_a_checkpoint_folder_without_room_ends_the_run(here):
    """R88."""
    small = here.folder / "small"
    small.mkdir()
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "none", small], capture_output=True, check=False)
    if done.returncode:
        pytest.skip("mounting a small disk needs root")
    try:
        here.script(HEALTHY)
        run = here.call("run", "--workers", 2, "--checkpoint", "small/ckpt", "train.py")
        assert run.returncode == 2
        assert "checkpoint-room" in here.report()["cause"]
        here.gone(within=5)
    finally:
        subprocess.run(["umount", "-l", small], check=True)


def test_preflight_alone_looks_and_leaves_nothing_behind(here):
    here.script(HEALTHY)
    done = here.call("preflight", "--workers", 2, "--hosts", 2, "train.py")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "modules-found" in done.stdout
    assert "nothing would end a run" in done.stdout
    assert "ran" not in done.stdout.split()
    assert not here.runs.exists()
    assert here.call("ps", "--all").stdout.count("train") == 0
    here.gone(within=5)


def test_preflight_alone_tells_a_script_what_it_found(here):
    here.script(WANTING)
    done = here.call("preflight", "--workers", 2, "--json", "train.py")
    assert done.returncode == 2
    told = json.loads(done.stdout)
    assert told["passed"] is False
    found = {row["check"]: row for row in told["checks"]}
    assert found["modules-found"]["result"] == "failed"
    assert "no_such_module_here" in found["modules-found"]["words"]
    assert found["names-resolve"]["result"] == "ok"
    assert found["cudnn-skew"]["result"] == "not needed"
    assert not here.runs.exists()
