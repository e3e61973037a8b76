"""Handwritten digits on any number of workers: tf_keras and its fit under MultiWorkerMirroredStrategy.

Reads TF_CONFIG as TensorFlow does and nothing else: alone it is one worker, and the same file runs on every worker
of a cluster.
"""

import argparse

import numpy as np
import tensorflow as tf
import tf_keras as keras
from sklearn.datasets import load_digits

SEED = 7
TRAIN = 1440  # of 1,797 pictures; divides by 48, so each epoch is whole batches
BATCH = 48  # pictures per step, all workers together


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--checkpoint", metavar="DIR", help="save here after each epoch and resume from it; shared")
    return parser.parse_args()


def load_pictures():
    """Train and test as ((pictures, labels), (pictures, labels)), the same split in every worker."""
    digits = load_digits()
    pictures = (digits.images / 16.0).astype("float32")[..., np.newaxis]
    labels = digits.target.astype("int64")
    order = np.random.default_rng(SEED).permutation(len(labels))
    train, test = order[:TRAIN], order[TRAIN:]
    return (pictures[train], labels[train]), (pictures[test], labels[test])


def build_model():
    return keras.Sequential(
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


def shared_batches(data, batch):
    """Batches of which each worker takes its part. The order is that of the arrays in every epoch, so that a training
    that resumes at the start of an epoch sees what it would have seen."""
    options = tf.data.Options()
    options.experimental_distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy.DATA
    return tf.data.Dataset.from_tensor_slices(data).batch(batch).with_options(options)


class Lines(keras.callbacks.Callback):
    """A line for each epoch."""

    def on_epoch_end(self, epoch, logs):
        figures = f"loss {logs['loss']:.6f} accuracy {logs['val_accuracy']:.3f}"
        print(f"epoch {epoch + 1}/{self.params['epochs']} {figures}", flush=True)


def main():
    arguments = parse_arguments()
    keras.utils.set_random_seed(SEED)
    tf.config.experimental.enable_op_determinism()
    strategy = tf.distribute.MultiWorkerMirroredStrategy()  # before any other TensorFlow operation
    train, test = load_pictures()
    with strategy.scope():
        model = build_model()
        model.compile(
            optimizer=keras.optimizers.Adam(2e-3),
            loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
            metrics=["accuracy"],
        )
    backup = [keras.callbacks.BackupAndRestore(arguments.checkpoint)] if arguments.checkpoint else []
    model.fit(
        shared_batches(train, BATCH).repeat(),
        epochs=arguments.epochs,
        steps_per_epoch=TRAIN // BATCH,
        validation_data=shared_batches(test, len(test[1])),
        callbacks=[*backup, Lines()],
        verbose=0,
    )


if __name__ == "__main__":
    main()
