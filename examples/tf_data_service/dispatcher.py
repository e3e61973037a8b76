"""The dispatcher of tf.data service: knows the data workers and hands their work to the training."""

import argparse

import tensorflow as tf

service = tf.data.experimental.service

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--journal", metavar="DIR", help="keep what it knows here, so that a restart goes on from it")
    arguments = parser.parse_args()
    server = service.DispatchServer(
        service.DispatcherConfig(
            port=arguments.port, work_dir=arguments.journal, fault_tolerant_mode=arguments.journal is not None
        )
    )
    print(f"dispatcher at {server.target}", flush=True)
    server.join()  # never returns: it is ended from outside when the training is done
