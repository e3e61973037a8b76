"""A data worker of tf.data service: reads and prepares batches, and sends them to whoever trains."""

import argparse

import tensorflow as tf

service = tf.data.experimental.service

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--dispatcher", metavar="HOST:PORT", required=True)
    parser.add_argument("--address", metavar="HOST:PORT", required=True, help="where the training reaches this worker")
    arguments = parser.parse_args()
    server = service.WorkerServer(
        service.WorkerConfig(
            dispatcher_address=arguments.dispatcher,
            worker_address=arguments.address,
            port=int(arguments.address.rpartition(":")[2]),
            heartbeat_interval_ms=1000,
        )
    )
    print(f"data worker at {arguments.address}", flush=True)
    server.join()  # never returns: it is ended from outside when the training is done
