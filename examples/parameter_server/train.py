"""A line fitted with ParameterServerStrategy: the chief hands out steps, workers take them, a ps keeps the variables."""

import tensorflow as tf

resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()

if resolver.task_type in ("worker", "ps"):
    server = tf.distribute.Server(
        resolver.cluster_spec(), job_name=resolver.task_type, task_index=resolver.task_id, protocol="grpc"
    )
    server.join()  # never returns: these tasks are ended from outside when the chief is done

# From here on this is the chief.
strategy = tf.distribute.ParameterServerStrategy(resolver)
coordinator = tf.distribute.coordinator.ClusterCoordinator(strategy)

with strategy.scope():
    slope, offset = tf.Variable(0.0), tf.Variable(0.0)


def points():
    """Points on y = 3x + 2, without end: each worker makes its own."""
    x = tf.data.Dataset.random().map(lambda n: tf.cast(n % 1000, tf.float32) / 1000)
    return x.map(lambda x: (x, 3 * x + 2)).batch(32)


@tf.function
def step(iterator):
    """One step on one worker, whichever is free."""

    def train(x, y):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((slope * x + offset - y) ** 2)
        for variable, gradient in zip((slope, offset), tape.gradient(loss, (slope, offset))):
            variable.assign_sub(0.3 * gradient)
        return loss

    return strategy.run(train, args=next(iterator))


iterator = iter(coordinator.create_per_worker_dataset(points))
for epoch in range(1, 6):
    losses = [coordinator.schedule(step, args=(iterator,)) for _ in range(40)]
    coordinator.join()
    print(f"epoch {epoch}/5 loss {losses[-1].fetch():.5f}")
print(f"y = {slope.numpy():.2f}x + {offset.numpy():.2f}")
