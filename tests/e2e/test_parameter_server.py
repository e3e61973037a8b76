"""The parameter-server example with real TensorFlow: what the how-to shows is what runs."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "parameter_server" / "train.py"


def test_the_how_to_shows_the_whole_example():
    page = (ROOT / "docs" / "howto" / "parameter-server.md").read_text(encoding="utf-8")
    [shown] = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    assert shown == EXAMPLE.read_text(encoding="utf-8")


@pytest.mark.real
@pytest.mark.tensorflow
@pytest.mark.timeout(300)
def test_a_chief_a_worker_and_a_ps_fit_a_line_and_are_ended_when_the_chief_is_done(here):
    done = here.call("run", "--workers", 1, "--ps", 1, EXAMPLE)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "y = 3.00x + 2.00" in here.said("chief:0")
    report = here.report()
    assert report["result"] == "succeeded"
    assert [task["task"] for task in report["tasks"]] == ["chief:0", "worker:0", "ps:0"]
    assert report["victims"] == []
    here.gone(within=5)


CHIEF_ALONE = """
import tensorflow as tf
resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
strategy = tf.distribute.ParameterServerStrategy(resolver)
coordinator = tf.distribute.coordinator.ClusterCoordinator(strategy)
with strategy.scope():
    total = tf.Variable(0.0)
@tf.function
def step(iterator):
    total.assign_add(next(iterator))
    return total.read_value()
ones = iter(coordinator.create_per_worker_dataset(lambda: tf.data.Dataset.from_tensors(1.0).repeat()))
for _ in range(20):
    coordinator.schedule(step, args=(ones,))
coordinator.join()
print("total", total.numpy())
"""

#: It looks on, and has a TF_CONFIG in which it is not listed (R02).
LOOKS_ON = """
import json, os, time
config = json.loads(os.environ["TF_CONFIG"])
assert config["task"] == {"type": "evaluator", "index": 0}, config
print(sorted(config["cluster"]), flush=True)
time.sleep(600)
"""


@pytest.mark.real
@pytest.mark.tensorflow
@pytest.mark.timeout(600)
def test_a_worker_and_a_ps_with_our_server_need_no_script_and_an_evaluator_is_in_nobodys_cluster(here):
    here.script(CHIEF_ALONE)
    here.script(LOOKS_ON, "look.py")
    job = {
        "command": ["train.py"],
        "health": {"evaluator": 0},
        "roles": {
            "worker": {"command": "server"},
            "ps": {"command": "server"},
            "evaluator": {"command": ["look.py"]},
        },
    }
    done = here.call("run", here.script(json.dumps(job), "job.json"))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "total 20.0" in here.said("chief:0")
    assert here.said("evaluator:0") == "['chief', 'ps', 'worker']\n"
    states = {task["task"]: (task["state"], task["listening"] is not None) for task in here.report()["tasks"]}
    assert states == {
        "chief:0": ("succeeded", True),
        "worker:0": ("ended", True),
        "ps:0": ("ended", True),
        "evaluator:0": ("ended", False),
    }
