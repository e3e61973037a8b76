"""Who will like which movie: the same tables as loop.py, trained by tf_keras' fit under ParameterServerStrategy.

Keras 3 cannot fit under this strategy, so this is tf_keras by name. Reads TF_CONFIG as TensorFlow does and nothing else.
"""

import argparse

import tensorflow as tf
import tf_keras as keras
from movielens import MOVIES, SEED, TRAIN, USERS, load_ratings

TASTE = 16  # numbers of a taste
DECAY = 0.05


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epochs", type=int, default=6)
    parser.add_argument("--batch", type=int, default=1000, help="ratings a step, on one worker (default: 1000)")
    parser.add_argument("--checkpoint", metavar="DIR", help="save here after each epoch and resume from it; shared")
    return parser.parse_args()


def build_model(mean):
    user, movie = (keras.Input((), dtype="int64", name=name) for name in ("user", "movie"))

    def rows(count, width, of):
        # What decays is what was looked up: to weigh the table itself would move all of it in every step.
        return keras.layers.Embedding(
            count,
            width,
            embeddings_initializer=keras.initializers.RandomNormal(stddev=0.1),
            activity_regularizer=keras.regularizers.L2(DECAY),
        )(of)

    taste = keras.layers.Dot(axes=1)([rows(USERS, TASTE, user), rows(MOVIES, TASTE, movie)])
    stars = keras.layers.Add()([taste, rows(USERS, 1, user), rows(MOVIES, 1, movie)])
    return keras.Model([user, movie], keras.layers.Rescaling(1.0, offset=mean)(stars))


def main():
    arguments = parse_arguments()
    resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
    if resolver.task_type in ("worker", "ps"):
        tf.distribute.Server(
            resolver.cluster_spec(), job_name=resolver.task_type, task_index=resolver.task_id, protocol="grpc"
        ).join()  # never returns: who started these tasks ends them, once the chief is done

    # From here on this is the chief, the only one that reads the ratings.
    keras.utils.set_random_seed(SEED)
    train, test = load_ratings()
    workers, servers = map(resolver.cluster_spec().num_tasks, ("worker", "ps"))
    strategy = tf.distribute.ParameterServerStrategy(
        resolver, variable_partitioner=tf.distribute.experimental.partitioners.FixedShardsPartitioner(servers)
    )

    def part_of_a_worker(context):
        me = tf.distribute.coordinator.experimental_get_current_worker_index()
        ratings = tf.data.Dataset.from_tensor_slices(((train.users, train.movies), train.stars))
        mine = ratings.shard(workers, me).shuffle(TRAIN, seed=SEED)
        return mine.repeat().batch(arguments.batch).prefetch(2)

    with strategy.scope():
        model = build_model(float(train.stars.mean()))
        model.compile(keras.optimizers.Adam(5e-3), loss="mse")

    def test_error():
        predicted = model((test.users, test.movies), training=False)[:, 0]
        return float(tf.sqrt(tf.reduce_mean((predicted - test.stars) ** 2)))

    # Of the hooks of a callback this strategy allows only those of epochs.
    say = keras.callbacks.LambdaCallback(
        on_epoch_end=lambda epoch, logs: print(
            f"epoch {epoch + 1}/{arguments.epochs} loss {logs['loss']:.6f} rmse {test_error():.6f}", flush=True
        )
    )
    backup = [keras.callbacks.BackupAndRestore(arguments.checkpoint)] if arguments.checkpoint else []
    model.fit(
        keras.utils.experimental.DatasetCreator(part_of_a_worker),
        epochs=arguments.epochs,
        steps_per_epoch=TRAIN // arguments.batch,
        callbacks=[*backup, say],
        verbose=0,
    )
    print(f"rmse {test_error():.3f}", flush=True)


if __name__ == "__main__":
    main()
