"""Handwritten digits on any number of workers: a custom training loop under MultiWorkerMirroredStrategy.

Reads TF_CONFIG as TensorFlow does and nothing else: alone it is one worker, and the same file runs on every worker
of a cluster. The numbers do not depend on how many workers share the batch (up to rounding).
"""

import argparse
import os
import shutil
import time

import keras
import numpy as np
import tensorflow as tf
from sklearn.datasets import load_digits

SEED = 7
TRAIN = 1440  # of 1,797 pictures; divides by 48, so each epoch is whole batches


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--batch", type=int, default=48, help="pictures per step, all workers together (default: 48)")
    parser.add_argument("--checkpoint", metavar="DIR", help="save here after each epoch and resume from it; shared")
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


def shuffled_shard(pictures, labels, *, batch, steps, epochs):
    """A dataset function: this worker's part of each epoch. Epoch n has one order, whoever reads it and whenever."""

    def dataset_fn(context):
        workers, me = context.num_input_pipelines, context.input_pipeline_id

        def one_epoch(epoch):
            order = tf.random.experimental.stateless_shuffle(tf.range(TRAIN, dtype=tf.int64), seed=[SEED, epoch])
            mine = order[: steps * batch][me::workers]
            part = tf.data.Dataset.from_tensor_slices((tf.gather(pictures, mine), tf.gather(labels, mine)))
            return part.batch(batch // workers, drop_remainder=True)

        return tf.data.Dataset.range(*epochs).flat_map(one_epoch).prefetch(2)

    return dataset_fn


def fixed_shard(pictures, labels):
    """A dataset function: this worker's part of the test set as one batch, again and again."""

    def dataset_fn(context):
        mine = slice(context.input_pipeline_id, None, context.num_input_pipelines)
        return tf.data.Dataset.from_tensors((pictures[mine], labels[mine])).repeat()

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
    workers = strategy.num_replicas_in_sync
    if not workers <= arguments.batch <= TRAIN:
        raise SystemExit(f"--batch {arguments.batch}: give {workers} (one picture for each worker) to {TRAIN}")
    batch = arguments.batch - arguments.batch % workers
    steps = TRAIN // batch
    chief = is_chief(strategy.cluster_resolver)
    (train_pictures, train_labels), (test_pictures, test_labels) = load_pictures()

    with strategy.scope():
        model = build_model()
        optimizer = keras.optimizers.Adam(2e-3)
        optimizer.build(model.trainable_variables)
    epoch = tf.Variable(0, dtype=tf.int64)
    loss_of = keras.losses.SparseCategoricalCrossentropy(from_logits=True, reduction="none")

    @tf.function
    def train_step(iterator):
        def on_replica(pictures, labels):
            with tf.GradientTape() as tape:
                losses = loss_of(labels, model(pictures, training=True))
                loss = tf.reduce_sum(losses) / batch  # of the whole batch: the gradients are summed over workers
            gradients = tape.gradient(loss, model.trainable_variables)
            optimizer.apply_gradients(zip(gradients, model.trainable_variables))
            return loss

        return strategy.reduce("SUM", strategy.run(on_replica, args=next(iterator)), axis=None)

    @tf.function
    def count_correct(iterator):
        def on_replica(pictures, labels):
            hits = tf.equal(tf.argmax(model(pictures, training=False), axis=1), labels)
            return tf.reduce_sum(tf.cast(hits, tf.float32))

        return strategy.reduce("SUM", strategy.run(on_replica, args=next(iterator)), axis=None)

    scratch = manager = None
    if arguments.checkpoint:
        # Saving is a collective: every worker saves, and only the chief's files are kept. The others write to a folder
        # of their own beside them, by number: what a killed worker leaves there, its successor goes on with.
        if not chief:
            scratch = os.path.join(arguments.checkpoint, f"workertemp_{strategy.cluster_resolver.task_id}")
        folder = scratch or arguments.checkpoint
        checkpoint = tf.train.Checkpoint(model=model, optimizer=optimizer, epoch=epoch)
        manager = tf.train.CheckpointManager(checkpoint, folder, max_to_keep=2)
        latest = tf.train.latest_checkpoint(arguments.checkpoint)
        if latest:
            checkpoint.restore(latest).assert_existing_objects_matched()
            print(f"resumed after epoch {epoch.numpy()} from {latest}", flush=True)

    first, last = int(epoch.numpy()), arguments.epochs
    train_data = iter(
        strategy.distribute_datasets_from_function(
            shuffled_shard(train_pictures, train_labels, batch=batch, steps=steps, epochs=(first, last))
        )
    )
    test_data = iter(strategy.distribute_datasets_from_function(fixed_shard(test_pictures, test_labels)))

    def accuracy():
        return float(count_correct(test_data)) / len(test_labels)

    for number in range(first + 1, last + 1):
        total = 0.0
        for _ in range(steps):
            total += float(train_step(train_data))
            time.sleep(arguments.steps_delay)
        print(f"epoch {number}/{last} loss {total / steps:.6f} accuracy {accuracy():.3f}", flush=True)
        epoch.assign(number)
        if manager:
            manager.save()

    result = accuracy()
    if chief:
        print(f"accuracy {result:.3f}", flush=True)
    if scratch:
        shutil.rmtree(scratch, ignore_errors=True)


if __name__ == "__main__":
    main()
