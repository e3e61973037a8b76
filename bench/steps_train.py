"""Steps a second of one kind of step, written down by the leader. Arguments: a folder, comm | compute | ps, seconds."""

import os
import pathlib
import sys
import time

import tensorflow as tf

FOLDER, KIND, SECONDS = pathlib.Path(sys.argv[1]), sys.argv[2], float(sys.argv[3])


def measure(steps, leads):
    """Rounds of a fixed number of steps: every worker must do as many as the others."""
    began = time.perf_counter()
    steps(ROUND)
    rounds = max(int(SECONDS / (time.perf_counter() - began)), 1) if KIND == "ps" else ROUNDS
    began = time.perf_counter()
    for _ in range(rounds):
        steps(ROUND)
    if leads:
        rate = rounds * ROUND / (time.perf_counter() - began)
        (FOLDER / "rate").write_text(f"{rate} {len(os.sched_getaffinity(0))}")


def mwms():
    strategy = tf.distribute.MultiWorkerMirroredStrategy()
    batch, width, depth = (32, 64, 0) if KIND == "comm" else (1024, 1024, 4)
    with strategy.scope():
        weights = tf.Variable(tf.zeros([width, 8]))
    layers = [tf.random.normal([width, width], seed=n) / width**0.5 for n in range(depth)]

    @tf.function
    def step(batch):
        def one(x):
            for layer in layers:
                x = tf.nn.relu(x @ layer)
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean(tf.square(x @ weights - 1.0))
            gradient = tf.distribute.get_replica_context().all_reduce("MEAN", tape.gradient(loss, weights))
            weights.assign_sub(0.01 * gradient)
            return loss

        return strategy.run(one, args=(batch,))

    data = tf.ones([batch, width])
    measure(lambda count: [step(data) for _ in range(count)], leads=strategy.cluster_resolver.task_id in (0, None))


def ps():
    resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
    if resolver.task_type in ("worker", "ps"):
        tf.distribute.Server(
            resolver.cluster_spec(), job_name=resolver.task_type, task_index=resolver.task_id, protocol="grpc"
        ).join()
    strategy = tf.distribute.ParameterServerStrategy(resolver)
    coordinator = tf.distribute.coordinator.ClusterCoordinator(strategy)
    with strategy.scope():
        weights = tf.Variable(tf.zeros([256, 256]))

    @tf.function
    def step():
        def one():
            x = tf.ones([256, 256])
            with tf.GradientTape() as tape:
                for _ in range(8):
                    x = tf.nn.relu(x @ weights)
                loss = tf.reduce_mean(tf.square(x - 1.0))
            weights.assign_sub(0.01 * tape.gradient(loss, weights))
            return loss

        return strategy.run(one)

    def steps(count):
        for _ in range(count):
            coordinator.schedule(step)
        coordinator.join()

    measure(steps, leads=True)


ROUND = {"comm": 100, "compute": 4, "ps": 50}[KIND]
ROUNDS = max(int(SECONDS * {"comm": 4, "compute": 2, "ps": 1}[KIND]), 1)
ps() if KIND == "ps" else mwms()
