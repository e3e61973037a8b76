"""Handwritten digits on a machine that may be taken away: PreemptionCheckpointHandler saves, and a restart goes on.

A SIGTERM to any worker makes all of them save at the same step and leave with exit code 42. Started again, the
training goes on at that step, and ends with the same loss as one that nobody interrupted.
"""

import argparse
import os
import time

import keras
import numpy as np
import tensorflow as tf
from sklearn.datasets import load_digits

SEED = 7
TRAIN = 1440  # of 1,797 pictures; divides by 48, so each epoch is whole batches
BATCH = 48
STEPS = TRAIN // BATCH


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--checkpoint", metavar="DIR", required=True, help="one folder, which all workers see")
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--steps-delay", type=float, default=0.0, metavar="SECONDS", help="sleep after each step")
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


def batches(pictures, labels, *, after, last):
    """A dataset function: this worker's part of steps `after` to `last`. Step n has one batch, whenever it is done."""

    def dataset_fn(context):
        workers, me = context.num_input_pipelines, context.input_pipeline_id

        def one_step(step):
            epoch, number = step // STEPS, step % STEPS
            order = tf.random.experimental.stateless_shuffle(tf.range(TRAIN, dtype=tf.int64), seed=[SEED, epoch])
            mine = order[number * BATCH : (number + 1) * BATCH][me::workers]
            return tf.gather(pictures, mine), tf.gather(labels, mine)

        return tf.data.Dataset.range(after, last).map(one_step).prefetch(2)

    return dataset_fn


def is_chief(resolver):
    """The chief, else worker 0; a program without a cluster is its own chief."""
    if resolver.task_type in (None, ""):
        return True
    if "chief" in resolver.cluster_spec().jobs:
        return resolver.task_type == "chief"
    return resolver.task_type == "worker" and resolver.task_id == 0


def main():
    arguments = parse_arguments()
    keras.utils.set_random_seed(SEED)
    tf.config.experimental.enable_op_determinism()
    strategy = tf.distribute.MultiWorkerMirroredStrategy()  # before any other TensorFlow operation
    resolver = strategy.cluster_resolver
    chief = is_chief(resolver)
    (train_pictures, train_labels), (test_pictures, test_labels) = load_pictures()

    with strategy.scope():
        model = build_model()
        optimizer = keras.optimizers.Adam(2e-3)
        optimizer.build(model.trainable_variables)
    checkpoint = tf.train.Checkpoint(model=model, optimizer=optimizer)
    # All save, since saving is a collective, and the chief's files are the ones to read. The handler restores the
    # newest checkpoint of its own manager: after the first start each worker needs one, so each has a folder.
    folder = arguments.checkpoint if chief else os.path.join(arguments.checkpoint, f"{resolver.task_type}_{resolver.task_id}")
    manager = tf.train.CheckpointManager(checkpoint, folder, max_to_keep=1)
    handler = tf.distribute.experimental.PreemptionCheckpointHandler(resolver, manager)
    done, last = int(handler.total_run_calls), arguments.epochs * STEPS
    if done:
        print(f"resumed at step {done}", flush=True)

    loss_of = keras.losses.SparseCategoricalCrossentropy(from_logits=True, reduction="none")

    @tf.function
    def train_step(iterator):
        def on_replica(pictures, labels):
            with tf.GradientTape() as tape:
                loss = tf.reduce_sum(loss_of(labels, model(pictures, training=True))) / BATCH  # gradients are summed
            gradients = tape.gradient(loss, model.trainable_variables)
            optimizer.apply_gradients(zip(gradients, model.trainable_variables))
            return loss

        return strategy.reduce("SUM", strategy.run(on_replica, args=next(iterator)), axis=None)

    dataset_fn = batches(train_pictures, train_labels, after=done, last=last)
    iterator = iter(strategy.distribute_datasets_from_function(dataset_fn))
    loss = 0.0
    for step in range(done + 1, last + 1):
        loss = float(handler.run(train_step, iterator))  # here it saves and leaves, where somebody has asked for it
        if step % STEPS == 0:
            print(f"epoch {step // STEPS}/{arguments.epochs} loss {loss:.6f}", flush=True)
        time.sleep(arguments.steps_delay)

    scores = tf.argmax(model(test_pictures, training=False), axis=1).numpy()
    if chief:
        print(f"last loss {loss:.6f}\naccuracy {(scores == test_labels).mean():.3f}", flush=True)


if __name__ == "__main__":
    main()
