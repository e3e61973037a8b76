"""A worker that says when each of its steps was done, and goes on from its checkpoint: for `bench/recovery.py`."""

import sys
import time

import tensorflow as tf

FOLDER = sys.argv[1]
SAVE_EVERY = 5


def main():
    strategy = tf.distribute.MultiWorkerMirroredStrategy()
    resolver = strategy.cluster_resolver
    chief = resolver.task_id in (0, None)
    with strategy.scope():
        weight = tf.Variable(0.0)
    step = tf.Variable(0, dtype=tf.int64)

    @tf.function
    def train_step():
        def on_replica():
            with tf.GradientTape() as tape:
                loss = (weight - 3.0) ** 2
            gradient = tape.gradient(loss, weight)
            weight.assign_sub(0.01 * tf.distribute.get_replica_context().all_reduce("mean", gradient))
            return loss

        return strategy.reduce("mean", strategy.run(on_replica), axis=None)

    checkpoint = tf.train.Checkpoint(weight=weight, step=step)
    mine = FOLDER if chief else f"{FOLDER}/other"
    manager = tf.train.CheckpointManager(checkpoint, mine, max_to_keep=2)
    if latest := tf.train.latest_checkpoint(FOLDER):
        checkpoint.restore(latest)
    while True:
        loss = float(train_step())
        step.assign_add(1)
        number = int(step)
        print(f"step {number} {time.time():.6f} {loss:.9f}", flush=True)
        if number % SAVE_EVERY == 0:
            manager.save()
        time.sleep(0.05)


main()
