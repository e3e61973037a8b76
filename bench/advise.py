"""What `phalanx advise` reckons beside what `phalanx bench` measures: three models of 2 workers, one over a ps too.

    .venv/bin/python bench/advise.py [rounds, default 5] [workers, default 2] [models by +, default all]

Each round looks at each script anew and then trains it, so that both see the machine as it is at that moment. Where
others use it too, steps/s are theirs as well; core milliseconds a step are not, and what they allow on an idle machine
(cores / core time) is printed beside. A pair waits a minute at most for others to be quiet, and those that were quiet
throughout are told apart.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from steps import QUIET, clock, others_since

ROOT = Path(__file__).parents[1]
ENV = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "TF_CPP_MIN_LOG_LEVEL": "3"}

LOOP = """
data = iter(strategy.experimental_distribute_dataset(data.repeat().batch(BATCH, drop_remainder=True)))

@tf.function
def step():
    return strategy.reduce("SUM", strategy.run(replica, args=(next(data),)), axis=None)

while True:
    step()
"""
KERAS = """
loss_of = keras.losses.MeanSquaredError(reduction="sum")

def replica(batch):
    with tf.GradientTape() as tape:
        loss = loss_of(batch[1], model(batch[0], training=True)) / BATCH
    optimizer.apply_gradients(zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables))
    return loss
"""
SMALL = f"""
import numpy as np, tensorflow as tf, keras
strategy, BATCH = tf.distribute.MultiWorkerMirroredStrategy(), 128
with strategy.scope():
    layers = [keras.layers.Dense(256, "relu"), keras.layers.Dense(256, "relu"), keras.layers.Dense(1)]
    model = keras.Sequential([keras.Input((64,)), *layers])
    optimizer = keras.optimizers.Adam(1e-3)
    optimizer.build(model.trainable_variables)
data = tf.data.Dataset.from_tensor_slices((np.random.rand(4096, 64).astype("f4"), np.zeros((4096, 1), "f4")))
{KERAS}{LOOP}"""
WIDE = f"""
import numpy as np, tensorflow as tf
strategy, BATCH = tf.distribute.MultiWorkerMirroredStrategy(), 32
with strategy.scope():
    weights = [tf.Variable(tf.random.normal((2048, 2048), stddev=0.02)) for _ in range(3)]
data = tf.data.Dataset.from_tensor_slices(np.random.rand(256, 2048).astype("f4"))

def replica(x):
    with tf.GradientTape() as tape:
        for weight in weights:
            x = tf.nn.relu(x @ weight)
        loss = tf.reduce_mean(x * x)
    gradients = tf.distribute.get_replica_context().all_reduce("SUM", tape.gradient(loss, weights))
    for weight, gradient in zip(weights, gradients):
        weight.assign_sub(1e-3 * gradient)
    return loss
{LOOP}"""
TABLE = f"""
import numpy as np, tensorflow as tf, keras
from keras import layers
strategy, BATCH = tf.distribute.MultiWorkerMirroredStrategy(), 256
with strategy.scope():
    model = keras.Sequential([keras.Input((20,), dtype="int32"), layers.Embedding(200_000, 32), layers.Flatten()])
    model.add(layers.Dense(64, "relu"))
    model.add(layers.Dense(1))
    optimizer = keras.optimizers.Adagrad(0.05)
    optimizer.build(model.trainable_variables)
ids = np.random.randint(0, 200_000, (4096, 20)).astype("i4")
data = tf.data.Dataset.from_tensor_slices((ids, np.zeros((4096, 1), "f4")))
{KERAS}{LOOP}"""
SERVED = """
import tensorflow as tf
resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
if resolver.task_type in ("worker", "ps"):
    tf.distribute.Server(
        resolver.cluster_spec(), job_name=resolver.task_type, task_index=resolver.task_id, protocol="grpc"
    ).join()
strategy, BATCH = tf.distribute.ParameterServerStrategy(resolver), 128
coordinator = tf.distribute.coordinator.ClusterCoordinator(strategy)
with strategy.scope():
    table = tf.Variable(tf.random.uniform((200_000, 32)))
    kernels = [tf.Variable(tf.random.normal(shape, stddev=0.05)) for shape in ((640, 64), (64, 1))]

def batches(context):
    ids = tf.random.uniform((4096, 20), 0, 200_000, tf.int32)
    return tf.data.Dataset.from_tensor_slices(ids).repeat().batch(BATCH, drop_remainder=True)

@tf.function
def data_of_worker():
    return strategy.distribute_datasets_from_function(batches)

def replica(ids):
    with tf.GradientTape() as tape:
        rows = tf.reshape(tf.nn.embedding_lookup(table, ids), (BATCH, 640))
        loss = tf.reduce_mean(tf.square(tf.nn.relu(rows @ kernels[0]) @ kernels[1]))
    rows, *gradients = tape.gradient(loss, [table, *kernels])
    table.scatter_sub(tf.IndexedSlices(0.05 * rows.values, rows.indices))
    for kernel, gradient in zip(kernels, gradients):
        kernel.assign_sub(0.05 * gradient)
    return loss

@tf.function
def step(data):
    return strategy.run(replica, args=(next(data),))

data = iter(coordinator.create_per_worker_dataset(data_of_worker))
while True:
    for _ in range(20):
        coordinator.schedule(step, args=(data,))
    coordinator.join()
"""
MODELS = {
    "dense, small": (SMALL, ()),
    "dense, 50 MB": (WIDE, ()),
    "table, 26 MB": (TABLE, ()),
    "table, 26 MB, over 1 ps": (SERVED, ("--ps", "1")),
}


def measured(folder: Path, text: str, workers: int, *more: str) -> dict[str, float]:
    (folder / "train.py").write_text(text)
    argv = [sys.executable, "-m", "phalanx", "bench", "--workers", str(workers), "--steps", "30", "--json", *more]
    done = subprocess.run([*argv, "train.py"], cwd=folder, env=ENV, check=True, stdout=subprocess.PIPE)
    [row] = json.loads(done.stdout)
    return row


def await_quiet(seconds: float) -> None:
    """Until nobody else runs, for so long at most."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        start = clock()
        time.sleep(3)
        if others_since(start) < QUIET:
            return


def main() -> None:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    workers = int(sys.argv[2]) if len(sys.argv) > 2 else 2
    wanted = sys.argv[3].split("+") if len(sys.argv) > 3 else list(MODELS)
    cores = len(os.sched_getaffinity(0))
    pairs: dict[str, list[tuple[float, ...]]] = {name: [] for name in wanted}
    print(f"{workers} workers, {cores} cores, load {os.getloadavg()[0]:.1f} before", flush=True)
    with tempfile.TemporaryDirectory() as name:
        for _ in range(rounds):
            for model in wanted:
                await_quiet(60)
                start = clock()
                text, more = MODELS[model]
                row = measured(Path(name), text, workers, *more)
                others = others_since(start)
                steps, reckoned = row["steps_per_s"], row["steps_per_s_reckoned"]
                own = cores / row["core_s_per_step"]
                held, need = row["worker_bytes"] / 1e6, row["worker_bytes_reckoned"] / 1e6
                pairs[model].append((steps, own, reckoned, held, need, float(others < QUIET)))
                print(f"{model}: {told([pairs[model][-1]])}; others had {others:.0%}", flush=True)
    for model, all_of_it in pairs.items():
        quiet = [pair for pair in all_of_it if pair[-1]]
        print(f"{model}, median of {len(all_of_it)}: {told(all_of_it)}")
        if quiet:
            print(f"{model}, median of the {len(quiet)} that were quiet: {told(quiet)}")


def told(pairs: list[tuple[float, ...]]) -> str:
    """Medians, and medians of what each pair is off."""
    steps, own, reckoned, held, need = (statistics.median(pair[at] for pair in pairs) for at in range(5))
    by_time, by_core, by_byte = (
        statistics.median(pair[one] / pair[other] - 1 for pair in pairs) for one, other in ((2, 0), (2, 1), (4, 3))
    )
    speed = f"{steps:.4g} steps/s measured, {reckoned:.4g} reckoned ({by_time:+.0%}; {by_core:+.0%} by core time"
    return f"{speed}: {own:.4g}); {held:.0f} MB measured, {need:.0f} reckoned ({by_byte:+.0%})"


if __name__ == "__main__":
    main()
