"""Scripts of every kind are looked at by real TensorFlow: nothing is trained, nothing is saved, all is counted."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from phalanx.sizing.look import LookError, Seen, look
from phalanx.sizing.place import Core

pytestmark = [pytest.mark.tensorflow, pytest.mark.timeout(300)]

FIT = """
import numpy as np, keras
from keras import layers
model = keras.Sequential([keras.Input((5,)), layers.Embedding(1000, 16), layers.Flatten(), layers.Dense(8)])
model.compile("adam", "mse")
log = keras.callbacks.CSVLogger("log.csv")
model.fit(np.zeros((64, 5), "int32"), np.zeros((64, 8)), batch_size=16, callbacks=[log])
model.save("after.keras")
"""
LOOP = """
import tensorflow as tf
strategy = tf.distribute.MultiWorkerMirroredStrategy()
with strategy.scope():
    weight = tf.Variable(tf.ones((100, 40)))
manager = tf.train.CheckpointManager(tf.train.Checkpoint(weight=weight), "ckpt", 1)
manager.save()
data = iter(strategy.experimental_distribute_dataset(tf.data.Dataset.range(10**6).batch(24, drop_remainder=True)))
@tf.function
def step():
    def replica(numbers):
        x = tf.ones((24, 100)) * tf.cast(numbers, tf.float32)[:, None]
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(x @ weight)
        weight.assign_sub(tape.gradient(loss, weight))
        return loss
    return strategy.reduce("SUM", strategy.run(replica, args=(next(data),)), axis=None)
while True:
    step()
    open("trained", "w")
"""
SERVED = """
import tensorflow as tf
resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
if resolver.task_type in ("worker", "ps"):
    tf.distribute.Server(resolver.cluster_spec(), resolver.task_type, resolver.task_id).join()
strategy = tf.distribute.ParameterServerStrategy(resolver)
coordinator = tf.distribute.coordinator.ClusterCoordinator(strategy)
with strategy.scope():
    table = tf.Variable(tf.ones((1000, 8)))
def ids():
    return tf.data.Dataset.range(10**6).map(lambda n: tf.stack([n % 1000, n % 7])).batch(32).repeat()
@tf.function
def step(iterator):
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(tf.nn.embedding_lookup(table, next(iterator)))
    found = tape.gradient(loss, table)
    table.scatter_sub(tf.IndexedSlices(found.values, found.indices))
iterator = iter(coordinator.create_per_worker_dataset(ids))
while True:
    coordinator.schedule(step, args=(iterator,))
"""


def seen(tmp_path: Path, text: str, strategy: str = "none") -> Seen:
    (tmp_path / "train.py").write_text(text)
    return look([sys.executable, "train.py"], cwd=tmp_path, environ=os.environ, strategy=strategy, patience=200.0)


def test_fit_is_looked_at_without_its_callbacks(tmp_path):
    model = seen(tmp_path, FIT).model
    assert (model.kind, model.spread, model.batch) == ("fit", "global", 16)
    assert [(one.bytes, one.touched) for one in model.variables] == [(64_000, 80), (2_560, None), (32, None)]
    assert 2 * model.bytes <= model.slots <= 2 * model.bytes + 64
    assert model.resident is not None
    assert model.resident > 300e6
    assert [path.name for path in tmp_path.iterdir()] == ["train.py"]


def test_a_loop_of_ones_own_is_traced_and_never_executed(tmp_path):
    found = seen(tmp_path, LOOP)
    model = found.model
    assert (model.kind, model.batch, model.reductions) == ("loop", 24, 1)
    assert [(one.bytes, one.touched) for one in model.variables] == [(16_000, None)]
    assert model.step is not None
    products = sum(one.count * (one.flops + 24 * one.flops_each) for one in model.step.operations)
    assert products == 2 * (2 * 24 * 100 * 40)  # forward, and the gradient of the weight; none of the input is taken
    assert found.core.flops > 1e9
    assert found.core != Core(
        flops=found.core.flops, moved=found.core.moved, operation=found.core.operation
    )  # the ring
    assert 1e-11 < found.core.sent < 1e-7
    assert 1e-6 < found.core.hop < 1e-1
    assert 0 <= found.core.anew < 1e-7
    assert [path.name for path in tmp_path.iterdir()] == ["train.py"]


def test_a_program_of_parameter_servers_finds_its_cluster_in_one_process(tmp_path):
    model = seen(tmp_path, SERVED, "ps").model
    assert (model.kind, model.spread, model.batch) == ("schedule", "worker", 32)
    assert [(one.bytes, one.touched) for one in model.tables] == [(32_000, 64)]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "raise SystemExit('no data')",
            "the script failed before a training step (exit 1); its last lines were: no data",
        ),
        ("print('done')", "the script ended without a training step; its last lines were: done"),
    ],
)
def test_a_script_that_does_not_train_says_why_and_what_to_give(tmp_path, text, said):
    with pytest.raises(LookError) as wrong:
        seen(tmp_path, text)
    assert str(wrong.value) == said
    assert "--parameters 25M" in str(wrong.value.hint)


def test_a_script_that_never_trains_has_a_deadline(tmp_path):
    (tmp_path / "train.py").write_text("import time\ntime.sleep(600)\n")
    with pytest.raises(LookError, match="did not come to a training step within 1 s"):
        look([sys.executable, "train.py"], cwd=tmp_path, environ=os.environ, strategy="none", patience=1.0)
