"""`phalanx bench` with real TensorFlow: steps are counted, the run is stopped and thrown away."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.real, pytest.mark.tensorflow, pytest.mark.timeout(400)]

SOURCES = Path(__file__).parents[2] / "src"
TRAIN = """
import sys, tensorflow as tf
strategy = tf.distribute.MultiWorkerMirroredStrategy()
with strategy.scope():
    weight = tf.Variable(tf.ones((64, 64)))
open("asked", "a").write(sys.argv[1] + chr(10))
x = tf.ones((8, 64))
@tf.function
def step():
    def replica():
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(x @ weight)
        weight.assign_sub(1e-9 * tape.gradient(loss, weight))
        return loss
    return strategy.reduce("SUM", strategy.run(replica), axis=None)
while True:
    step()
"""


def test_a_size_is_measured_beside_what_was_reckoned_and_nothing_is_left(tmp_path):
    (tmp_path / "train.py").write_text(TRAIN)
    flags = ["--python", sys.executable, "--workers", "1", "--steps", "20", "--seconds", "1s", "--json"]
    words = ["bench", *flags, "train.py", "{checkpoint}"]
    env = {**os.environ, "XDG_STATE_HOME": str(tmp_path / "state"), "PYTHONPATH": str(SOURCES)}
    done = subprocess.run(
        [sys.executable, "-m", "phalanx", *words],
        cwd=tmp_path,
        env=env,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    [row] = json.loads(done.stdout)
    assert row["workers"] == 1
    assert row["steps_per_s"] > 0
    assert row["core_s_per_step"] > 0
    assert row["worker_bytes_reckoned"] == pytest.approx(row["worker_bytes"], rel=0.2)
    looked, trained = (tmp_path / "asked").read_text().splitlines()
    assert looked != trained
    assert not any(Path(path).exists() for path in (looked, trained))
    assert sorted(path.name for path in tmp_path.iterdir() if path.name != "state") == ["asked", "train.py"]
    assert not [path for path in (tmp_path / "state").rglob("*.json") if "runs" in path.parts]
