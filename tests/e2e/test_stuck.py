"""Tasks that live and get nowhere: each is told apart, named and ended. TensorFlow itself would wait for ever."""

from __future__ import annotations

import json
import os
import signal
import time
from pathlib import Path

import pytest

from launched import Place, wait_for

pytestmark = pytest.mark.real

#: Two tasks that say a word now and then.
TALKER = """
import os, sys, time
print("up", os.environ["PHALANX_TASK"], flush=True)
for _ in range(600):
    time.sleep(0.1)
"""

#: Listens as TensorFlow would and then gives no sign of any kind, in its second worker.
MUTE = """
import json, os, socket, time
config = json.loads(os.environ["TF_CONFIG"])
place = config["cluster"]["worker"][config["task"]["index"]]
sock = socket.socket()
sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
sock.bind((place.split(":")[0], int(place.split(":")[1])))
sock.listen()
print("up", flush=True)
while config["task"]["index"] == 0:
    time.sleep(0.5)
time.sleep(600)
"""


def up(here: Place, *tasks: str) -> None:
    for task in tasks:
        wait_for(lambda task=task: "up" in here.said(task), f"{task} is up")


@pytest.mark.parametrize("victim", ["worker:0", "worker:1"])
def test_a_stopped_process_is_the_culprit_within_three_seconds(here, victim):
    """Facts §3, R49: nobody but us would ever end it."""
    here.script(TALKER)
    launcher = here.start("run", "--workers", 2, "--max-restarts", 0, "train.py")
    up(here, "worker:0", "worker:1")
    pid = here.event("task-started", task=victim)["pid"]
    os.kill(pid, signal.SIGSTOP)
    struck = time.time()
    named = here.event("culprit-named")
    assert launcher.wait(timeout=30) == 1
    assert named["time"] - struck < 3.0
    assert (named["task"], named["kind"]) == (victim, "infrastructure")
    assert "state T" in here.report()["cause"]
    here.gone(within=3)


def test_stacks_are_written_on_request_and_nothing_stops(here):
    here.script(TALKER)
    here.start("run", "--workers", 2, "--max-restarts", 0, "train.py")
    up(here, "worker:0", "worker:1")
    done = here.call("stacks", "last", "worker:1", "--json")
    assert done.returncode == 0, done.stderr
    [line] = done.stdout.splitlines()
    assert json.loads(line)["task"] == "worker:1"
    assert "as the kernel sees them" in Path(json.loads(line)["path"]).read_text()
    assert here.call("stacks").stdout.count("stacks/worker_") == 2
    assert here.call("stacks", "last", "worker:7").returncode == 2
    assert not here.events("task-exited")


def test_a_task_without_any_sign_of_life_is_the_culprit_once_its_time_is_over(here):
    """R49."""
    here.script(MUTE)
    launcher = here.start("run", "--workers", 2, "--max-restarts", 0, "--silence", "4s", "train.py")
    named = here.event("culprit-named")
    assert launcher.wait(timeout=30) == 1
    quiet = here.events("task-quiet")[-1]
    assert (named["task"], quiet["task"]) == ("worker:1", "worker:1")
    assert 4.0 <= named["time"] - quiet["since"] < 5.0
    assert "no sign of life" in here.report()["cause"]
    here.gone(within=3)
