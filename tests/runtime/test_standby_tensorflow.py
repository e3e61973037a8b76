"""A standby that has imported TensorFlow becomes a worker of whatever cluster it is told of afterwards."""

from __future__ import annotations

import json
import os
import socket
import sys
from pathlib import Path

import pytest

from runtime.starts import await_ready, waiting

TRAIN = """
import os
import sys
import keras
import tensorflow as tf

strategy = tf.distribute.MultiWorkerMirroredStrategy()
with strategy.scope():
    weight = tf.Variable(0.0)

@tf.function
def step():
    def on_replica():
        with tf.GradientTape() as tape:
            loss = (weight - 3.0) ** 2
        gradient = tape.gradient(loss, weight)
        weight.assign_sub(0.25 * tf.distribute.get_replica_context().all_reduce("mean", gradient))
        return loss
    return strategy.reduce("mean", strategy.run(on_replica), axis=None)

losses = [float(step()) for _ in range(20)]
resolver = strategy.cluster_resolver
print(resolver.task_type, resolver.task_id, strategy.num_replicas_in_sync, losses[-1] < 1e-6 < losses[0])
"""


@pytest.mark.real
@pytest.mark.tensorflow
def test_a_standby_with_tensorflow_trains_in_the_cluster_it_is_told_of_last(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(TRAIN)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    env = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "TF_CPP_MIN_LOG_LEVEL": "2"}
    with waiting([sys.executable, "train.py"], env=env, cwd=tmp_path) as (process, standby):
        assert await_ready(standby)
        loaded = Path(f"/proc/{process.pid}/maps").read_text()
        assert "libtensorflow" in loaded, "nothing was imported before the identity"
        cluster = {"cluster": {"worker": [address]}, "task": {"type": "worker", "index": 0}}
        standby.go({"TF_CONFIG": json.dumps(cluster)})
        out, err = process.communicate(timeout=60)
    assert process.returncode == 0, err.decode()
    assert out == b"worker 0 1 True\n"
