"""What happens when something breaks: real processes, no TensorFlow."""

from __future__ import annotations

import os
import signal
import time

import pytest

from launched import Place, wait_for

pytestmark = pytest.mark.real

#: Two tasks that run until they are told otherwise.
SLEEPER = """
import json, os, sys, time
print("up", os.environ["PHALANX_TASK"], flush=True)
time.sleep(120)
"""

#: As MWMS workers are: deaf to TERM.
DEAF = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN)\n" + SLEEPER


def up(here: Place, *tasks: str) -> None:
    for task in tasks:
        wait_for(lambda task=task: "up" in here.said(task), f"{task} is up")


def test_a_killed_worker_is_named_and_everything_is_over_at_once(here):
    """Must show 3."""
    here.script(DEAF)
    launcher = here.start("run", "--max-restarts", 0, "--workers", 2, "train.py")
    up(here, "worker:0", "worker:1")
    victim = here.event("task-started", task="worker:1")["pid"]
    os.kill(victim, signal.SIGKILL)
    struck = time.time()
    assert launcher.wait(timeout=30) == 1
    exits = {e["task"]: e for e in here.events("task-exited")}
    assert exits["worker:1"]["signal"] == signal.SIGKILL
    assert all(e["time"] - struck < 3.0 for e in exits.values())
    report = here.report()
    assert (report["culprit"], report["victims"]) == ("worker:1", ["worker:0"])
    assert "SIGKILL" in report["cause"]
    here.gone(within=3)


def test_a_programs_own_error_is_shown_with_its_traceback_line(here):
    here.script("raise ValueError('no such column: clicks')")
    done = here.call("run", "--workers", 2, "train.py")
    assert done.returncode == 1
    assert "ValueError: no such column: clicks" in done.stdout + done.stderr


def test_a_command_that_does_not_exist_fails_as_wrong_input(here):
    done = here.call("run", "--workers", 2, "./no-such-program")
    assert done.returncode == 2
    assert "no-such-program" in done.stderr + done.stdout
    here.gone(within=3)


def test_an_interrupt_stops_all_and_says_so(here):
    here.script(SLEEPER)
    launcher = here.start("run", "--workers", 2, "train.py")
    up(here, "worker:0", "worker:1")
    launcher.send_signal(signal.SIGINT)
    out, err = launcher.communicate(timeout=30)
    assert launcher.returncode == 4
    assert "SIGINT: stopping all tasks" in out + err
    assert here.report()["result"] == "stopped"
    here.gone(within=3)


def test_a_second_interrupt_kills(here):
    here.script(DEAF)
    launcher = here.start("run", "--workers", 2, "train.py")
    up(here, "worker:0", "worker:1")
    launcher.send_signal(signal.SIGINT)
    here.event("stop-ordered")
    launcher.send_signal(signal.SIGINT)
    began = time.monotonic()
    assert launcher.wait(timeout=30) == 4
    assert time.monotonic() - began < 5  # the grace is ten seconds
    here.gone(within=3)


def test_a_killed_launcher_takes_an_attached_run_with_it(here):
    """Must show 5."""
    here.script(SLEEPER)
    launcher = here.start("run", "--workers", 2, "train.py")
    up(here, "worker:0", "worker:1")
    launcher.kill()
    assert here.report()["result"] == "stopped"
    here.gone(within=5)


def test_a_detached_run_outlives_its_launcher_and_can_be_attached_to(here):
    """Must show 5."""
    here.script(SLEEPER.replace("120", "4"))
    done = here.call("run", "--workers", 2, "--detach", "train.py")
    assert done.returncode == 0, done.stderr
    up(here, "worker:0", "worker:1")
    listed = here.call("ps")
    assert "running" in listed.stdout
    attached = here.call("attach", "last")
    assert attached.returncode == 0, attached.stderr
    assert here.report()["result"] == "succeeded"
    here.gone(within=5)


def test_a_killed_agent_leaves_no_process_and_the_host_is_named(here):
    """Must show 5: with two hosts, the second one's agent."""
    here.script(DEAF)
    launcher = here.start("run", "--max-restarts", 0, "--workers", 2, "--hosts", 2, "train.py")
    up(here, "worker:0", "worker:1")
    agent = here.event("host-joined", host=1)["agent_pid"]
    worker = here.event("task-started", task="worker:1")["pid"]
    os.kill(agent, signal.SIGKILL)
    wait_for(lambda: worker not in here.processes(), "the reaper has ended worker:1", within=1.0)
    assert launcher.wait(timeout=30) == 3
    assert "was lost" in here.report()["cause"]
    here.gone(within=5)


def test_when_the_leads_agent_is_killed_the_lead_still_writes_how_it_ended(here):
    """Must show 5: the lead's own host."""
    here.script(DEAF)
    launcher = here.start("run", "--max-restarts", 0, "--workers", 2, "--hosts", 2, "train.py")
    up(here, "worker:0", "worker:1")
    os.kill(here.event("host-joined", host=0)["agent_pid"], signal.SIGKILL)
    assert launcher.wait(timeout=30) == 3
    assert here.report()["result"] == "failed"
    here.gone(within=5)


def test_grandchildren_do_not_outlive_their_task(here):
    here.script(
        "import subprocess, sys, time\n"
        "subprocess.Popen(['sh', '-c', 'setsid sleep 300 & sleep 300'])\n"
        "print('up', flush=True)\n"
        "time.sleep(1)\n"
    )
    done = here.call("run", "--workers", 2, "train.py")
    assert done.returncode == 0, done.stderr
    here.gone(within=3)


@pytest.mark.parametrize(
    "environ",
    [
        {"http_proxy": "http://127.0.0.1:9", "https_proxy": "http://127.0.0.1:9", "grpc_proxy": "http://127.0.0.1:9"},
        {"LD_PRELOAD": "/nonexistent/evil.so"},
        {"PYTHONHOME_IS_NOT_SET": "1", "PYTHONSTARTUP": "/nonexistent", "PYTHONWARNINGS": "ignore"},
    ],
    ids=["proxies", "LD_PRELOAD", "PYTHON variables"],
)
def test_the_users_environment_reaches_the_tasks_and_not_the_agent(here, environ):
    """Must show 6."""
    name, value = next(iter(environ.items()))
    here.script(f"import os\nprint('got', os.environ[{name!r}], flush=True)\n")
    done = here.call("run", "--workers", 2, "train.py", **environ)
    assert done.returncode == 0, done.stderr
    assert f"got {value}" in here.said("worker:0")
    agent_log = (here.run_folder() / "agents" / "0.log").read_text()
    assert "evil.so" not in agent_log
    if "http_proxy" in environ:
        assert "127.0.0.1" in here.events("generation-bound")[0]["places"][0]["address"]


def test_a_tf_config_of_the_users_own_is_not_replaced_in_silence(here):
    """§F 28."""
    here.script("import os; print(os.environ['TF_CONFIG'])")
    refused = here.call("run", "--workers", 2, "train.py", TF_CONFIG='{"cluster": {"worker": ["a:1"]}}')
    assert refused.returncode == 2
    assert "TF_CONFIG" in refused.stderr
    assert not here.runs.exists()
    done = here.call("run", "--workers", 2, "--override", "train.py", TF_CONFIG='{"cluster": {"worker": ["a:1"]}}')
    assert done.returncode == 0
    assert '"worker"' in here.said("worker:1")
    assert "a:1" not in here.said("worker:1")


def test_a_launcher_under_nohup_does_not_stop_for_a_closing_terminal(here):
    here.script(SLEEPER.replace("120", "2"))
    launcher = here.start("run", "--workers", 2, "train.py", ignoring=signal.SIGHUP)
    up(here, "worker:0", "worker:1")
    launcher.send_signal(signal.SIGHUP)
    assert launcher.wait(timeout=30) == 0
