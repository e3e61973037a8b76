"""Asked to end, all workers leave before the same step, and what had been reached is not lost."""

from __future__ import annotations

import os
import re
import signal
from pathlib import Path

import pytest

from launched import wait_for

pytestmark = [pytest.mark.real, pytest.mark.tensorflow, pytest.mark.timeout(300)]

DIGITS = Path(__file__).parents[2] / "examples" / "custom_loop" / "train.py"

FIT = """
import os
os.environ["TF_USE_LEGACY_KERAS"] = "1"
import numpy as np
import tensorflow as tf
import tf_keras

strategy = tf.distribute.MultiWorkerMirroredStrategy()
with strategy.scope():
    model = tf_keras.Sequential([tf_keras.Input((8,)), tf_keras.layers.Dense(1)])
    model.compile("adam", "mse")
x = np.ones((64, 8), "float32")
options = tf.data.Options()
options.experimental_distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy.DATA
data = tf.data.Dataset.from_tensor_slices((x, x[:, :1])).repeat().batch(8).with_options(options)
model.fit(data, steps_per_epoch=20, epochs=5000, verbose=2,
          callbacks=[tf_keras.callbacks.BackupAndRestore("backup", save_freq=FREQ)])
"""


def left_after(here) -> dict[str, tuple[int, str]]:
    """Task → the last step of its first generation, and what it saved there."""
    found = {}
    for left in here.events("task-leaves"):
        if left.get("agreed", True) and left.get("peers") == 1 and left["generation"] == 1:
            found[left["task"]] = (left["step"], left.get("saved", ""))
    return found


#: The grace is long, since on a crowded machine TensorFlow's own exit alone takes seven seconds and more.
LOOP = f"""
command: [{DIGITS}, --epochs, "5000"]
roles: {{worker: {{count: 2}}}}
grace: {{stop: 60s}}
"""


def test_phalanx_stop_ends_a_custom_loop_at_one_step(here):
    (here.folder / "job.yaml").write_text(LOOP)
    launcher = here.start("run", "job.yaml")
    wait_for(lambda: "epoch 2/" in here.said("worker:0"), "two epochs")
    stopped = here.call("stop", here.run_folder().name)
    assert stopped.returncode == 0, stopped.stdout + stopped.stderr
    launcher.wait(timeout=60)
    left = left_after(here)
    assert set(left) == {"worker:0", "worker:1"}
    assert len({step for step, _ in left.values()}) == 1
    assert {exited["code"] for exited in here.events("task-exited")} == {143}
    here.gone(within=5)


@pytest.mark.parametrize(("frequency", "keras"), [("7", 2), ("'epoch'", 2), ("7", 3)])
def test_sigterm_to_one_worker_makes_all_of_a_fit_save_and_leave_at_one_step(here, frequency, keras):
    script = FIT.replace("FREQ", frequency)
    script = here.script(script if keras == 2 else script.replace('= "1"', '= "0"').replace("tf_keras", "keras"))
    here.start("run", "--workers", 2, script)
    here.event("checkpoint-saved", task="worker:0")
    os.kill(here.event("task-started", task="worker:1")["pid"], signal.SIGTERM)
    first = here.event("task-exited")
    assert first["code"] == 143
    left = left_after(here)
    assert set(left) == {"worker:0", "worker:1"}
    assert len({step for step, _ in left.values()}) == 1
    where = "backup" if frequency == "7" else "/stop/model"
    assert all(where in saved for _, saved in left.values())
    named = here.event("culprit-named")
    assert named["cause"] == "worker:1 was asked to leave (SIGTERM), and all left at the agreed step"
    assert [asked["task"] for asked in here.events("task-asked")] == ["worker:1"]
    # Preempted: the group starts again for free, and goes on from there.
    restored = here.event("checkpoint-restored", task="worker:0")
    assert restored["generation"] == 2


HANDLER = """
import os, time
import tensorflow as tf

strategy = tf.distribute.MultiWorkerMirroredStrategy()
with strategy.scope():
    weight = tf.Variable(tf.zeros([8]))
    step = tf.Variable(0, dtype=tf.int64, aggregation=tf.VariableAggregation.ONLY_FIRST_REPLICA)
mine = "ckpt" if strategy.cluster_resolver.task_id == 0 else "ckpt/other"
manager = tf.train.CheckpointManager(tf.train.Checkpoint(weight=weight, step=step), mine, max_to_keep=3)
handler = tf.distribute.experimental.PreemptionCheckpointHandler(
    strategy.cluster_resolver, manager, termination_config=tf.distribute.experimental.TerminationConfig()
)
print("begins at", int(step.numpy()), flush=True)

def on_replica():
    weight.assign_sub(0.1 * tf.distribute.get_replica_context().all_reduce("MEAN", weight - 1.0))

@tf.function
def train_step():
    strategy.run(on_replica)

def one():
    train_step()
    step.assign_add(1)

while handler.total_run_calls < STEPS:
    handler.run(one)
    time.sleep(0.05)
print("ends at", int(step.numpy()), flush=True)
"""


def test_a_preemption_checkpoint_handler_is_left_alone_and_its_exit_42_costs_nothing(here):
    """facts §5: SIGTERM to one worker, all save one step and leave with 42."""
    script = here.script(HANDLER.replace("STEPS", "200"))
    launcher = here.start("run", "--workers", 2, "--max-restarts", 0, script)
    here.event("task-stepped", task="worker:0")
    os.kill(here.event("task-started", task="worker:1")["pid"], signal.SIGTERM)
    assert launcher.wait(timeout=200) == 0
    ends = sorted((e["generation"], e.get("code")) for e in here.events("task-exited"))
    assert ends == [(1, 42), (1, 42), (2, 0), (2, 0)]
    [order] = here.events("restart-ordered")
    assert order["counted"] is False
    logs = here.run_folder() / "logs"
    begins = {int(re.search(r"begins at (\d+)", log.read_text())[1]) for log in logs.glob("*/g2.a1.out")}
    assert len(begins) == 1
    assert begins.pop() > 0


KERAS = """
import os
import keras
import numpy as np

model = keras.Sequential([keras.Input((8,)), keras.layers.Dense(1)])
model.compile("adam", "mse")
x = np.ones((64, 8), "float32")
model.fit(x, x[:, :1], epochs=100000, batch_size=8, verbose=0,
          callbacks=[keras.callbacks.BackupAndRestore("backup", save_freq=5)])
"""


def test_a_keras_3_fit_saves_and_leaves_when_it_is_stopped(here):
    launcher = here.start("run", "--workers", 1, here.script(KERAS))
    saved = here.event("checkpoint-saved", 2)
    assert here.call("stop", here.run_folder().name).returncode == 0
    assert launcher.wait(timeout=60) == 4
    [exited] = here.events("task-exited")
    assert exited.get("code") == 143
    [left] = here.events("task-leaves")
    assert left["saved"]
    assert saved["path"].startswith(str(here.folder))
