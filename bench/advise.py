"""What `phalanx advise` reckons beside what `phalanx bench` measures: three models, two workers, in turns.

    .venv/bin/python bench/advise.py [rounds, default 5] [workers, default 2]

Each round looks at each script anew and then trains it, so that both see the machine as it is at that moment. Where
others use it too, steps/s are theirs as well; core milliseconds a step are not, and what they allow on an idle machine
(cores / core time) is printed beside.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

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
MODELS = {"dense, small": SMALL, "dense, 50 MB": WIDE, "table, 26 MB": TABLE}


def measured(folder: Path, text: str, workers: int) -> dict[str, float]:
    (folder / "train.py").write_text(text)
    argv = [sys.executable, "-m", "phalanx", "bench", "--workers", str(workers), "--steps", "30", "--json", "train.py"]
    done = subprocess.run(argv, cwd=folder, env=ENV, check=True, stdout=subprocess.PIPE)
    [row] = json.loads(done.stdout)
    return row


def main() -> None:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    workers = int(sys.argv[2]) if len(sys.argv) > 2 else 2
    cores = len(os.sched_getaffinity(0))
    off: dict[str, list[tuple[float, float, float]]] = {name: [] for name in MODELS}
    print(f"{workers} workers, {cores} cores, load {os.getloadavg()[0]:.1f} before", flush=True)
    with tempfile.TemporaryDirectory() as name:
        for _ in range(rounds):
            for model, text in MODELS.items():
                row = measured(Path(name), text, workers)
                steps, reckoned = row["steps_per_s"], row["steps_per_s_reckoned"]
                own = cores / row["core_s_per_step"]
                ratio = row["worker_bytes_reckoned"] / row["worker_bytes"]
                off[model].append((reckoned / steps - 1, reckoned / own - 1, ratio - 1))
                held, need = row["worker_bytes"] / 1e6, row["worker_bytes_reckoned"] / 1e6
                speed = f"{steps:.4g} steps/s measured, {own:.4g} with the cores to itself, {reckoned:.4g} reckoned"
                memory = f"{held:.0f} MB measured, {need:.0f} reckoned"
                print(f"{model}: {speed}; {memory}; load {os.getloadavg()[0]:.1f}", flush=True)
    for model, pairs in off.items():
        by_time, by_core, by_byte = (statistics.median(pair[at] for pair in pairs) for at in range(3))
        speed = f"{by_time:+.0%} in steps/s ({by_core:+.0%} by core time)"
        print(f"{model}: off by {speed}, {by_byte:+.0%} in memory; median of {rounds}")
    print(f"load {os.getloadavg()[0]:.1f} after")


if __name__ == "__main__":
    main()
