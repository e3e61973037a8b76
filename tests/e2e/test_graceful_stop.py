"""Asked to end, all workers leave before the same step, and what had been reached is not lost."""

from __future__ import annotations

import os
import re
import signal
from pathlib import Path

import pytest

from launched import wait_for

pytestmark = [pytest.mark.real, pytest.mark.tensorflow, pytest.mark.timeout(300)]

DIGITS = Path(__file__).parents[2] / "examples" / "digits" / "train.py"

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
    for note in here.events("noted"):
        said = re.search(r"leaves after step (\d+), as all 2 have agreed; (.+)", note["message"])
        if said:
            found.setdefault(note["task"], (int(said[1]), said[2]))
    return found


def test_phalanx_stop_ends_a_custom_loop_at_one_step(here):
    launcher = here.start("run", "--workers", 2, DIGITS, "--epochs", 5000)
    wait_for(lambda: "epoch 2/" in here.said("worker:0"), "two epochs")
    stopped = here.call("stop", here.run_folder().name)
    assert stopped.returncode == 0, stopped.stdout + stopped.stderr
    launcher.wait(timeout=60)
    left = left_after(here)
    assert set(left) == {"worker:0", "worker:1"}
    assert len({step for step, _ in left.values()}) == 1
    assert {exited["code"] for exited in here.events("task-exited")} == {143}
    here.gone(within=5)


@pytest.mark.parametrize("frequency", ["7", "'epoch'"])
def test_sigterm_to_one_worker_makes_all_of_a_fit_save_and_leave_at_one_step(here, frequency):
    script = here.script(FIT.replace("FREQ", frequency))
    here.start("run", "--workers", 2, script)
    here.event("checkpoint-saved", task="worker:0")
    os.kill(here.event("task-started", task="worker:1")["pid"], signal.SIGTERM)
    first = here.event("task-exited")
    assert first["code"] == 143
    left = left_after(here)
    assert set(left) == {"worker:0", "worker:1"}
    assert len({step for step, _ in left.values()}) == 1
    where = "/backup" if frequency == "7" else "/stop/model"
    assert all(where in saved for _, saved in left.values())
    # Preempted: the group starts again for free, and goes on from there.
    restored = here.event("checkpoint-restored", task="worker:0")
    assert restored["generation"] == 2
