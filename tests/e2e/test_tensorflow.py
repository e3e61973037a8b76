"""The main job with real TensorFlow: two and three workers, unchanged script, real data."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from launched import wait_for
from phalanx.agent.ports import PortHolder

pytestmark = [pytest.mark.real, pytest.mark.tensorflow, pytest.mark.timeout(300)]

DIGITS = Path(__file__).parents[2] / "examples" / "custom_loop" / "train.py"


@pytest.mark.parametrize(
    "roles", [{"worker": 1}, {"worker": 2}, {"worker": 3}, {"chief": 1, "worker": 1}], ids="+".join
)
def test_workers_train_one_model_on_digits(here, roles):
    """A loop of one's own at every size; the fit of both Kerases is in tests/e2e/test_keras3.py."""
    size = ["--workers", roles["worker"], *(["--chief"] if "chief" in roles else [])]
    done = here.call("run", *size, DIGITS, "--epochs", 3)
    assert done.returncode == 0, done.stdout + done.stderr
    tasks = [f"{role}:{number}" for role, count in roles.items() for number in range(count)]
    accuracy = re.search(r"^accuracy (0\.\d+)$", here.said(tasks[0]), re.MULTILINE)
    assert accuracy
    assert float(accuracy[1]) > 0.85  # three epochs of the demo's ten
    assert [epochs(here.said(task)) for task in tasks] == [epochs(here.said(tasks[0]))] * len(tasks)
    report = here.report()
    assert report["result"] == "succeeded"
    assert [t["task"] for t in report["tasks"]] == tasks
    assert all(t["exit_code"] == 0 and bool(t["listening"]) == (len(tasks) > 1) for t in report["tasks"])
    assert all(e["standby"] for e in here.events("task-started"))
    assert all(task["steps"] > 0 and 0 < task["training"]["last_loss"] < 10 for task in report["tasks"])
    here.gone(within=5)


def test_a_worker_killed_in_mid_run_is_named_and_the_other_is_its_victim(here):
    """Must show 3."""
    launcher = here.start("run", "--workers", 2, "--max-restarts", 0, DIGITS, "--epochs", 500)
    wait_for(lambda: "epoch 2/" in here.said("worker:0"), "two epochs")
    pid = here.event("task-started", task="worker:1")["pid"]
    struck = time.time()
    os.kill(pid, signal.SIGKILL)
    assert launcher.wait(timeout=30) == 1
    assert all(e["time"] - struck < 1.0 for e in here.events("task-exited"))
    report = here.report()
    assert (report["culprit"], report["victims"]) == ("worker:1", ["worker:0"])
    assert "SIGKILL" in report["cause"]
    here.gone(within=3)


RAISES = """
import json, os, sys
import tensorflow as tf
from tensorflow.python.eager import context
sys.stderr = open(os.devnull, "w")
strategy = tf.distribute.MultiWorkerMirroredStrategy()
print("heartbeats", context.context().coordination_service.heartbeat_timeout_in_ms, flush=True)

@tf.function
def step(table):
    return strategy.run(lambda: tf.distribute.get_replica_context().all_reduce("sum", tf.gather([1.0, 2.0], table)))

for number in range(20):
    step(tf.constant(9 if (number, os.environ["PHALANX_TASK"]) == (5, "worker:1") else 1))
"""


def test_an_error_inside_a_graph_is_told_with_its_place_though_stderr_is_gone(here):
    here.script(RAISES)
    done = here.call("run", "--workers", 2, "--max-restarts", 0, "train.py")
    assert done.returncode == 1
    report = here.report()
    assert report["culprit"] == "worker:1"
    assert "InvalidArgumentError: Graph execution error" in report["cause"]
    assert "train.py:14)" in report["cause"]
    culprit = next(task for task in report["tasks"] if task["part"] == "culprit")
    raised = json.loads(Path(culprit["error_file"]).read_text())["raised"]
    assert "indices" in raised[0]["message"]
    assert "heartbeats 5000" in here.said("worker:0")  # half of TensorFlow's own limit (facts §3)


def test_by_hand_with_the_tf_config_of_the_plan_the_same_script_trains_the_same_model(here):
    """No phalanx inside: the script reads TF_CONFIG and nothing else of ours."""
    words = ("--workers", 2, DIGITS, "--epochs", 2)
    done = here.call("run", *words)
    assert done.returncode == 0, done.stdout + done.stderr
    holder = PortHolder()
    first = holder.hold(4)[0]
    holder.release_all()
    planned = here.call("plan", "--ports", f"{first}-{first + 3}", "--json", *words)
    assert planned.returncode == 0, planned.stderr
    tasks = [
        subprocess.Popen(
            [sys.executable, *map(str, words[2:])],
            env=here.environ | {"TF_CONFIG": task["env"]["TF_CONFIG"]},
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        for task in json.loads(planned.stdout)["tasks"]
    ]
    outputs = [task.communicate(timeout=120)[0] for task in tasks]
    assert [task.returncode for task in tasks] == [0, 0]
    for number, output in enumerate(outputs):
        assert epochs(output) == epochs(here.said(f"worker:{number}"))
        assert len(epochs(output)) == 2


def epochs(text: str) -> list[str]:
    return [line for line in text.splitlines() if line.startswith("epoch ")]
