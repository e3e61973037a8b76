"""The whole program of a worker or a ps that was given `command: server`: a tf.distribute.Server, joined for good.

Who it is, TF_CONFIG says. It never returns: the job ends it once the chief has succeeded (facts 2).
"""

import tensorflow as tf  # type: ignore[import-untyped]  # it has no types


def main() -> None:
    """Serve until somebody ends the process."""
    resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
    server = tf.distribute.Server(
        resolver.cluster_spec(),
        job_name=resolver.task_type,
        task_index=resolver.task_id,
        protocol=resolver.rpc_layer or "grpc",
    )
    server.join()


if __name__ == "__main__":
    main()
