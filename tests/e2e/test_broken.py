"""What a hostile user, a full table or a frozen process may do: real processes, no TensorFlow."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from launched import Place, processes_with, wait_for
from leading import PATIENT

pytestmark = pytest.mark.real

SLEEPER = """
import os, time
print("up", os.environ["PHALANX_TASK"], flush=True)
time.sleep(120)
"""
QUICK = "print('hi')\n"


def up(here: Place, *tasks: str) -> None:
    for task in tasks:
        wait_for(lambda task=task: "up" in here.said(task), f"{task} is up")


def reaper_of(agent: int) -> int:
    children = Path(f"/proc/{agent}/task/{agent}/children").read_text().split()
    return next(int(pid) for pid in children if Path(f"/proc/{pid}/comm").read_text().strip() == "phalanx-reaper")


@contextlib.contextmanager
def kept_frozen(pid: int) -> Iterator[None]:
    """Whoever continues it, somebody stops it again at once."""
    with subprocess.Popen(["sh", "-c", f"while kill -STOP {pid}; do :; done"], stderr=subprocess.DEVNULL) as freezer:
        try:
            yield
        finally:
            freezer.kill()


def shell(here: Place, line: str) -> subprocess.CompletedProcess[str]:
    """`line` in a shell, where `$phalanx` is our command."""
    environ = here.environ | {"phalanx": f"{sys.executable} -m phalanx"}
    return subprocess.run(
        ["bash", "-c", line], cwd=here.folder, env=environ, capture_output=True, text=True, timeout=60, check=False
    )


def test_a_detached_run_that_cannot_be_indexed_is_not_left_running(here):
    here.script(SLEEPER)
    (here.folder / "no-state").mkdir()
    (here.folder / "no-state" / "phalanx").touch()
    done = here.call("run", "--workers", 2, "--detach", "train.py", XDG_STATE_HOME=str(here.folder / "no-state"))
    assert done.returncode == 3
    assert "index" in done.stderr
    here.gone(within=3)


def test_a_frozen_agent_keeps_no_task_alive_after_the_run_has_failed(here):
    here.script(SLEEPER)
    launcher = here.start("run", "--max-restarts", 0, "--workers", 2, "train.py")
    up(here, "worker:0", "worker:1")
    os.kill(here.event("host-joined")["agent_pid"], signal.SIGSTOP)
    launcher.communicate(timeout=40)
    assert launcher.returncode == 3
    here.gone(within=5)


def test_a_second_interrupt_ends_the_run_though_the_reaper_is_frozen(here):
    """As with a task in an uninterruptible call: nobody can end it, and the launcher must not wait for ever."""
    here.script(SLEEPER)
    launcher = here.start("run", "--workers", 2, "train.py")
    up(here, "worker:0", "worker:1")
    with kept_frozen(reaper_of(here.event("host-joined")["agent_pid"])):
        launcher.send_signal(signal.SIGINT)
        here.event("stop-ordered")
        launcher.send_signal(signal.SIGINT)
        launcher.communicate(timeout=20)
    assert launcher.returncode in (3, 4)


def test_a_frozen_reaper_is_continued_and_the_run_ends_well(here):
    here.script(PATIENT)
    launcher = here.start("run", "--workers", 2, "train.py")
    here.event("task-started", 2)
    os.kill(reaper_of(here.event("host-joined")["agent_pid"]), signal.SIGSTOP)
    (here.folder / "end").touch()
    out, err = launcher.communicate(timeout=5)
    assert launcher.returncode == 0, out + err
    [note] = here.events("noted")
    assert "stopped by a signal (state T), and is continued" in note["message"]
    here.gone(within=3)


def test_a_worker_that_fails_while_the_reaper_is_frozen_is_the_culprit_within_seconds(here):
    here.script(PATIENT)
    launcher = here.start("run", "--workers", 2, "--max-restarts", 0, "train.py")
    here.event("task-started", 2)
    os.kill(reaper_of(here.event("host-joined")["agent_pid"]), signal.SIGSTOP)
    (here.folder / "fail").touch()
    out, err = launcher.communicate(timeout=8)
    assert launcher.returncode == 1, out + err
    assert here.report()["culprit"] == "worker:1"
    here.gone(within=3)


def test_a_reaper_that_is_kept_frozen_costs_its_host_and_is_named_as_the_cause(here):
    here.script(SLEEPER)
    launcher = here.start("run", "--max-restarts", 0, "--workers", 2, "train.py")
    up(here, "worker:0", "worker:1")
    with kept_frozen(reaper_of(here.event("host-joined")["agent_pid"])):
        out, err = launcher.communicate(timeout=30)
    assert launcher.returncode == 3, out + err
    assert "was found stopped by a signal 6 times within 60 s" in here.report()["cause"]
    [lost] = here.events("host-lost")
    assert "reaper" in lost["reason"]
    here.gone(within=3)


def test_an_agent_that_dies_before_it_joins_is_told_at_once(here):
    here.script(SLEEPER)
    launcher = here.start("run", "--workers", 2, "--hosts", 2, "train.py")
    agent = wait_for(
        lambda: [
            pid
            for pid, line in processes_with(str(here.folder.parent)).items()
            if line.endswith(" agent ") and f"\nPPid:\t{launcher.pid}\n" in Path(f"/proc/{pid}/status").read_text()
        ][1:],
        "the second agent",
    )[0]
    os.kill(agent, signal.SIGKILL)
    launcher.communicate(timeout=20)
    assert launcher.returncode == 3
    here.gone(within=5)


def test_a_dead_reaper_is_named_as_the_cause(here):
    here.script(SLEEPER)
    launcher = here.start("run", "--max-restarts", 0, "--workers", 2, "train.py")
    up(here, "worker:0", "worker:1")
    os.kill(reaper_of(here.event("host-joined")["agent_pid"]), signal.SIGKILL)
    launcher.communicate(timeout=30)
    assert launcher.returncode == 3
    assert "reaper" in here.report()["cause"]


def test_the_first_to_fail_is_the_culprit_though_its_deaf_grandchild_holds_its_output(here):
    """The agent waits for last words; an order to stop that comes meanwhile must not turn the failure into a victim."""
    here.script(
        "import os, subprocess, sys, time\n"
        "from pathlib import Path\n"
        "mark = Path('failed')\n"
        "if os.environ['PHALANX_TASK'] == 'worker:1':\n"
        "    subprocess.Popen(['sh', '-c', 'trap \"\" TERM; sleep 3; sleep 3'])\n"
        "    time.sleep(1)\n"
        "    mark.touch()\n"
        "    os._exit(3)\n"
        "while not mark.exists():\n"
        "    time.sleep(0.01)\n"
        "time.sleep(0.15)\n"
        "sys.exit(1)\n"
    )
    assert here.call("run", "--workers", 2, "train.py").returncode == 1
    assert here.report()["culprit"] == "worker:1"


@pytest.mark.parametrize("closed", ["<&-", "2>&-", "<&- 2>&-"])
def test_a_launcher_without_stdin_or_stderr_runs_all_the_same(here, closed):
    here.script(QUICK)
    done = shell(here, f"$phalanx run --workers 2 train.py {closed}")
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("out", [">&-", ">/dev/full"])
def test_a_launcher_that_cannot_print_shows_no_traceback(here, out):
    here.script(QUICK)
    done = shell(here, f"$phalanx run --workers 2 train.py {out}")
    assert "Traceback" not in done.stderr


def test_a_run_whose_reader_has_gone_does_not_claim_success(here):
    """`phalanx run | head -1` stops the run."""
    here.script("import time\nprint('x', flush=True)\ntime.sleep(5)\nprint('y')\n")
    done = shell(here, "set -o pipefail; $phalanx run --workers 2 train.py | head -1 >/dev/null")
    assert here.report()["result"] == "succeeded" or done.returncode != 0


def test_a_run_can_be_stopped_though_its_folder_was_deleted(here):
    here.script(SLEEPER)
    name = here.call("run", "--workers", 2, "--detach", "train.py").stdout.strip()
    up(here, "worker:0", "worker:1")
    shutil.rmtree(here.runs)
    done = here.call("stop", name)
    assert done.returncode == 0, done.stderr
    here.gone(within=5)


def test_too_few_open_files_are_named_as_the_cause(here):
    done = shell(here, "ulimit -n 64; $phalanx run --workers 40 sleep 20")
    assert done.returncode == 3
    assert "ulimit -n" in done.stdout + done.stderr
