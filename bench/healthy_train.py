"""A healthy program that looks stuck for a while, in the way its first argument names: for `bench/healthy.py`."""

import os
import pathlib
import sys
import time

KIND, LONG = sys.argv[1], float(sys.argv[2])
TASK = os.environ["PHALANX_TASK"]
if KIND == "slow start":
    time.sleep(LONG + (10 if TASK == "worker:1" else 0))
os.environ["TF_USE_LEGACY_KERAS"] = "1"
import numpy as np  # noqa: E402 - the slow start comes first
import tensorflow as tf  # noqa: E402 - as above


def work(seconds):
    """Computes for about so long inside TensorFlow, without a word, a byte or a gradient."""

    @tf.function
    def some(times):
        square = tf.random.uniform([700, 700])
        for _ in tf.range(times):
            square = tf.nn.l2_normalize(tf.matmul(square, square), axis=1)
        return tf.reduce_sum(square)

    some(tf.constant(1))
    began = time.monotonic()
    some(tf.constant(20))
    one = (time.monotonic() - began) / 20
    some(tf.constant(int(seconds / one)))


def mirrored():
    """A loop of many short steps, with the long thing in the middle."""
    strategy = tf.distribute.MultiWorkerMirroredStrategy()
    with strategy.scope():
        weight = tf.Variable(tf.zeros([1000]))

    @tf.function
    def step(data):
        def one(data):
            if KIND == "tracing" and data.shape[0] == 3:
                time.sleep(LONG)  # this runs while TensorFlow traces
            with tf.GradientTape() as tape:
                loss = tf.reduce_sum((weight - tf.reduce_mean(data)) ** 2)
            gradient = tape.gradient(loss, weight)
            weight.assign_sub(0.01 * tf.distribute.get_replica_context().all_reduce("mean", gradient))

        strategy.run(one, args=(data,))

    def some(times, size=2):
        for _ in range(times):
            step(tf.ones([size]))
            time.sleep(0.02)

    middle = {
        "validation in a loop": lambda: work(LONG),
        "tracing": lambda: some(20, size=3),
        "checkpoint": lambda: save(weight),
    }
    if KIND == "pause before the first step":
        time.sleep(LONG)
    some(200)
    if KIND in middle:
        middle[KIND]()
    some(200)
    if KIND == "uneven finish" and os.environ["LATER"] == TASK:
        time.sleep(LONG)


def save(weight):
    """A save that takes long in one of the workers, as on a slow disk."""

    class Slow(tf.train.experimental.PythonState):
        def serialize(self):
            time.sleep(LONG if TASK == "worker:0" else 0.1)
            return "state"

        def deserialize(self, string_value):
            del string_value

    folder = pathlib.Path(os.environ["SCRATCH"], TASK.replace(":", "_"))
    tf.train.CheckpointManager(tf.train.Checkpoint(weight=weight, slow=Slow()), folder, max_to_keep=1).save()


def fit():
    """Keras with a validation that takes far longer than the training: its data are slow to come."""
    strategy = tf.distribute.MultiWorkerMirroredStrategy()

    with strategy.scope():
        model = tf.keras.Sequential([tf.keras.Input((4,)), tf.keras.layers.Dense(1)])
        model.compile("sgd", "mse")
    x = np.ones((1600, 4), "float32")
    slow = tf.data.Dataset.range(8).map(lambda n: tf.numpy_function(late, [n], tf.float32)).batch(2)
    slow = slow.map(lambda x: (tf.ensure_shape(x, [None, 4]), tf.reduce_sum(x, 1)))
    model.fit(x, x[:, :1], batch_size=16, epochs=2, verbose=0, validation_data=slow)


def late(number):
    """A record of validation data that is slow to come."""
    time.sleep(LONG / 8)
    return np.full([4], number, "float32")


def served():
    """A parameter server job that hands out one step at a time: one worker has nothing to do, for long."""
    resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
    if resolver.task_type in ("worker", "ps"):
        tf.distribute.Server(
            resolver.cluster_spec(), job_name=resolver.task_type, task_index=resolver.task_id, protocol="grpc"
        ).join()
    strategy = tf.distribute.ParameterServerStrategy(resolver)
    coordinator = tf.distribute.coordinator.ClusterCoordinator(strategy)
    with strategy.scope():
        weight = tf.Variable(0.0)

    @tf.function
    def step():
        square = tf.random.uniform([500, 500])
        for _ in tf.range(50):
            square = tf.nn.l2_normalize(tf.matmul(square, square), axis=1)
        weight.assign_add(tf.reduce_sum(square) * 1e-6)

    began = time.monotonic()
    while time.monotonic() < began + LONG:
        coordinator.schedule(step)
        coordinator.join()
        time.sleep(0.1)


print("began", time.time(), flush=True)
if KIND == "idle ps worker":
    served()
elif KIND == "validation in fit":
    fit()
else:
    mirrored()
print("trained", time.time(), flush=True)
