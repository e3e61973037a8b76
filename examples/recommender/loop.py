"""Who will like which movie: matrix factorisation under ParameterServerStrategy, with a custom loop.

Each person and each movie has a row of a table: how far they lie above the mean, and a taste of a few numbers. The
tables are cut over all parameter servers, and a step fetches and moves only the rows of its own ratings. Reads
TF_CONFIG as TensorFlow does and nothing else.
"""

import argparse

import tensorflow as tf
from movielens import MOVIES, SEED, TRAIN, USERS, load_ratings

TASTE = 16  # numbers of a taste
RATE, DECAY = 0.02, 0.05


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epochs", type=int, default=12)
    parser.add_argument("--batch", type=int, default=1000, help="ratings a step, on one worker (default: 1000)")
    parser.add_argument("--checkpoint", metavar="DIR", help="save here after each epoch and resume from it; shared")
    return parser.parse_args()


def main():
    arguments = parse_arguments()
    resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
    if resolver.task_type in ("worker", "ps"):
        tf.distribute.Server(
            resolver.cluster_spec(), job_name=resolver.task_type, task_index=resolver.task_id, protocol="grpc"
        ).join()  # never returns: who started these tasks ends them, once the chief is done

    # From here on this is the chief, the only one that reads the ratings.
    train, test = load_ratings()
    batch, steps = arguments.batch, TRAIN // arguments.batch
    mean = train.stars.mean()
    servers = resolver.cluster_spec().num_tasks("ps")
    strategy = tf.distribute.ParameterServerStrategy(
        resolver, variable_partitioner=tf.distribute.experimental.partitioners.FixedShardsPartitioner(servers)
    )
    coordinator = tf.distribute.coordinator.ClusterCoordinator(strategy)

    def table(rows, seed):
        return tf.Variable(tf.random.stateless_normal([rows, 1 + TASTE], seed=[SEED, seed], stddev=0.1))

    with strategy.scope():
        users, movies = table(USERS, 0), table(MOVIES, 1)
        epoch = tf.Variable(0, dtype=tf.int64)

    def rows_of(who, what):
        return tf.nn.embedding_lookup(users, who), tf.nn.embedding_lookup(movies, what)

    def predict(user, movie):
        return mean + user[:, 0] + movie[:, 0] + tf.reduce_sum(user[:, 1:] * movie[:, 1:], axis=1)

    @tf.function
    def train_step(epoch, number):
        """The number-th part of an epoch. Whoever takes the step: each rating comes once in an epoch, in its order."""
        rows = tf.random.experimental.index_shuffle(
            tf.range(number * batch, (number + 1) * batch), seed=[SEED, epoch], max_index=TRAIN - 1
        )
        who, what, stars = (tf.gather(column, rows) for column in train)
        with tf.GradientTape() as tape:
            user, movie = rows_of(who, what)
            error = tf.reduce_sum((predict(user, movie) - stars) ** 2)
            decay = DECAY * (tf.reduce_sum(user**2) + tf.reduce_sum(movie**2))
            loss = (error + decay) / 2
        shards = [shard for table in (users, movies) for shard in getattr(table, "variables", [table])]  # one ps: whole
        for shard, gradient in zip(shards, tape.gradient(loss, shards)):
            shard.scatter_sub(tf.IndexedSlices(RATE * gradient.values, gradient.indices))  # adds up, in any order
        return error / batch

    def test_error():
        return float(tf.sqrt(tf.reduce_mean((predict(*rows_of(test.users, test.movies)) - test.stars) ** 2)))

    manager = None
    if arguments.checkpoint:
        checkpoint = tf.train.Checkpoint(users=users, movies=movies, epoch=epoch)
        manager = tf.train.CheckpointManager(checkpoint, arguments.checkpoint, max_to_keep=2)
        if manager.latest_checkpoint:
            checkpoint.restore(manager.latest_checkpoint).assert_consumed()
            print(f"resumed after epoch {int(epoch)} from {manager.latest_checkpoint}", flush=True)

    for number in range(int(epoch) + 1, arguments.epochs + 1):
        order = tf.constant(number, tf.int64)
        losses = [coordinator.schedule(train_step, args=(order, tf.constant(step, tf.int64))) for step in range(steps)]
        coordinator.join()
        loss = sum(coordinator.fetch(losses)) / steps
        print(f"epoch {number}/{arguments.epochs} loss {loss:.6f} rmse {test_error():.6f}", flush=True)
        epoch.assign(number)
        if manager:
            manager.save()
    print(f"rmse {test_error():.3f}", flush=True)


if __name__ == "__main__":
    main()
