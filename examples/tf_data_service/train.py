"""Handwritten digits, their batches prepared elsewhere: MultiWorkerMirroredStrategy fed by tf.data service.

Reads TF_CONFIG as TensorFlow does. Without --service each worker prepares its batches itself, and nothing else changes.
"""

import argparse

import keras
import numpy as np
import tensorflow as tf
from sklearn.datasets import load_digits

SEED = 7
TRAIN = 1440  # of 1,797 pictures


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--service", metavar="HOST:PORT", help="the dispatcher of tf.data service")
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--batch", type=int, default=48, help="pictures per step, all workers together (default: 48)")
    return parser.parse_args()


def load_pictures():
    """Train and test as ((pictures, labels), (pictures, labels)), the same split in every worker."""
    digits = load_digits()
    pictures = (digits.images / 16.0).astype("float32")[..., np.newaxis]
    labels = digits.target.astype("int64")
    order = np.random.default_rng(SEED).permutation(len(labels))
    train, test = order[:TRAIN], order[TRAIN:]
    return (pictures[train], labels[train]), (pictures[test], labels[test])


def batches(pictures, labels, *, size, service):
    """Batches without end, each picture turned a little as it is read: that is what the data workers do."""

    def moved(picture, label):
        shift = tf.random.uniform([2], -1, 2, tf.int32)
        return tf.roll(picture, shift, axis=[0, 1]), label

    data = tf.data.Dataset.from_tensor_slices((pictures, labels)).shuffle(TRAIN, seed=SEED).repeat()
    data = data.map(moved, num_parallel_calls=tf.data.AUTOTUNE).batch(size, drop_remainder=True)
    if service:
        data = data.apply(
            tf.data.experimental.service.distribute(
                # Every data worker reads all pictures in an order of its own, which suits a stream without end.
                processing_mode=tf.data.experimental.service.ShardingPolicy.OFF,
                service=f"grpc://{service}",
                job_name="digits",  # the workers of the training share one job: each batch is read once
            )
        )
    return data.prefetch(2)


def main():
    arguments = parse_arguments()
    keras.utils.set_random_seed(SEED)
    strategy = tf.distribute.MultiWorkerMirroredStrategy()  # before any other TensorFlow operation
    workers = strategy.num_replicas_in_sync
    steps = TRAIN // arguments.batch
    (train_pictures, train_labels), (test_pictures, test_labels) = load_pictures()

    with strategy.scope():
        model = keras.Sequential(
            [
                keras.Input((8, 8, 1)),
                keras.layers.Conv2D(32, 3, padding="same", activation="relu"),
                keras.layers.Conv2D(64, 3, padding="same", activation="relu"),
                keras.layers.MaxPooling2D(),
                keras.layers.Flatten(),
                keras.layers.Dense(64, activation="relu"),
                keras.layers.Dense(10),
            ]
        )
        optimizer = keras.optimizers.Adam(2e-3)
        optimizer.build(model.trainable_variables)
    loss_of = keras.losses.SparseCategoricalCrossentropy(from_logits=True, reduction="none")

    @tf.function
    def train_step(iterator):
        def on_replica(pictures, labels):
            with tf.GradientTape() as tape:
                losses = loss_of(labels, model(pictures, training=True))
                loss = tf.reduce_sum(losses) / (arguments.batch // workers * workers)  # gradients are summed
            gradients = tape.gradient(loss, model.trainable_variables)
            optimizer.apply_gradients(zip(gradients, model.trainable_variables))
            return loss

        return strategy.reduce("SUM", strategy.run(on_replica, args=next(iterator)), axis=None)

    def dataset_fn(context):
        size = arguments.batch // context.num_input_pipelines
        return batches(train_pictures, train_labels, size=size, service=arguments.service)

    data = iter(strategy.distribute_datasets_from_function(dataset_fn))
    for epoch in range(1, arguments.epochs + 1):
        loss = sum(float(train_step(data)) for _ in range(steps)) / steps
        print(f"epoch {epoch}/{arguments.epochs} loss {loss:.4f}", flush=True)

    # Each worker has the same model, and the test set is small: no need to share it out.
    scores = tf.argmax(model(test_pictures, training=False), axis=1).numpy()
    print(f"accuracy {(scores == test_labels).mean():.3f}", flush=True)


if __name__ == "__main__":
    main()
