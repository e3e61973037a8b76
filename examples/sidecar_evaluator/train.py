"""Handwritten digits with an evaluator beside the training: each checkpoint is scored by a task of its own.

One script for all roles: workers train under MultiWorkerMirroredStrategy and save, the evaluator builds no strategy
and scores whatever is saved. It uses tf_keras, since Keras 3 has no SidecarEvaluator.
"""

import os

os.environ["TF_USE_LEGACY_KERAS"] = "1"  # before TensorFlow: tf.keras is tf_keras then

import argparse
import json

import numpy as np
import tensorflow as tf
from sklearn.datasets import load_digits

SEED = 7
TRAIN = 1440  # of 1,797 pictures; divides by 48, so each epoch is whole batches
BATCH = 48


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--checkpoint", metavar="DIR", required=True, help="one folder, which all tasks see")
    parser.add_argument("--epochs", type=int, default=5)
    return parser.parse_args()


def load_pictures():
    """Train and test as ((pictures, labels), (pictures, labels)), the same split in every task."""
    digits = load_digits()
    pictures = (digits.images / 16.0).astype("float32")[..., np.newaxis]
    labels = digits.target.astype("int64")
    order = np.random.default_rng(SEED).permutation(len(labels))
    train, test = order[:TRAIN], order[TRAIN:]
    return (pictures[train], labels[train]), (pictures[test], labels[test])


def build_model():
    layers = tf.keras.layers
    model = tf.keras.Sequential(
        [
            layers.Conv2D(32, 3, padding="same", activation="relu", input_shape=(8, 8, 1)),
            layers.Conv2D(64, 3, padding="same", activation="relu"),
            layers.MaxPooling2D(),
            layers.Flatten(),
            layers.Dense(64, activation="relu"),
            layers.Dense(10),
        ]
    )
    loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(optimizer=tf.keras.optimizers.Adam(2e-3), loss=loss, metrics=["accuracy"])
    return model


def evaluate(arguments):
    """Score each checkpoint as it comes. It would wait for the next one for ever: whoever started it ends it."""
    _, test = load_pictures()
    data = tf.data.Dataset.from_tensor_slices(test).batch(119)

    class Tell(tf.keras.callbacks.Callback):
        def on_test_end(self, logs=None):
            print(f"scored: loss {logs['loss']:.4f} accuracy {logs['accuracy']:.3f}", flush=True)

    # The last checkpoint has the number of the last epoch: with it the work is done, and this returns.
    tf.keras.utils.SidecarEvaluator(
        build_model(), data, checkpoint_dir=arguments.checkpoint, max_evaluations=arguments.epochs, callbacks=[Tell()]
    ).start()


def train(arguments):
    tf.keras.utils.set_random_seed(SEED)
    tf.config.experimental.enable_op_determinism()
    strategy = tf.distribute.MultiWorkerMirroredStrategy()  # before any other TensorFlow operation
    pictures, _ = load_pictures()
    with strategy.scope():
        model = build_model()
    data = tf.data.Dataset.from_tensor_slices(pictures).shuffle(TRAIN, seed=SEED).batch(BATCH).repeat()
    options = tf.data.Options()
    options.experimental_distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy.DATA
    # Saving is a collective: all workers save, and tf_keras keeps the chief's files. A SidecarEvaluator takes the
    # names that this callback gives, ckpt-1, ckpt-2 …
    saving = tf.keras.callbacks.ModelCheckpoint(
        os.path.join(arguments.checkpoint, "ckpt-{epoch}"), save_weights_only=True
    )
    history = model.fit(
        data.with_options(options),
        epochs=arguments.epochs,
        steps_per_epoch=TRAIN // BATCH,
        callbacks=[saving],
        verbose=0,
    ).history
    for number, (loss, accuracy) in enumerate(zip(history["loss"], history["accuracy"]), 1):
        print(f"epoch {number}/{arguments.epochs} loss {loss:.6f} accuracy {accuracy:.3f}", flush=True)


if __name__ == "__main__":
    task = json.loads(os.environ.get("TF_CONFIG") or "{}").get("task", {})
    (evaluate if task.get("type") == "evaluator" else train)(parse_arguments())
