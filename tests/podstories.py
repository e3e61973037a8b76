"""What happens to the pods of a run, wherever they are: of three workers the second leads in the end."""

from __future__ import annotations

from launched import wait_for
from pods import Cluster, event

#: Trains until the generation that is to be the last one.
TRAIN = """
import os, time
generation = int(os.environ["PHALANX_GENERATION"])
print("up", generation, os.environ["PHALANX_TASK"], flush=True)
while generation < 3:
    time.sleep(0.1)
time.sleep(0.5)
"""


def lost(cluster: Cluster, index: int) -> None:
    cluster.kill("worker", index)
    if not cluster.replaces:
        cluster.replace("worker", index)


def told_to_end(cluster: Cluster, index: int) -> None:
    cluster.end("worker", index)
    if not cluster.replaces:
        cluster.replace("worker", index)


def loses_a_pod_and_then_its_lead(cluster: Cluster) -> None:
    cluster.start()
    event(cluster, "worker", 0, "task-started", 3, generation=1)
    lost(cluster, 1)
    event(cluster, "worker", 0, "task-started", 3, generation=2)
    lost(cluster, 0)
    event(cluster, "worker", 1, "task-started", 3, generation=3)
    event(cluster, "worker", 1, "run-ended", outcome="succeeded")
    wait_for(cluster.succeeded, "success")


def is_drained_of_a_pod_and_then_of_its_lead(cluster: Cluster) -> None:
    cluster.start()
    event(cluster, "worker", 0, "task-started", 3, generation=1)
    told_to_end(cluster, 1)
    event(cluster, "worker", 0, "task-started", 3, generation=2)
    told_to_end(cluster, 0)
    event(cluster, "worker", 1, "task-started", 3, generation=3)
    event(cluster, "worker", 1, "run-ended", outcome="succeeded")
    wait_for(cluster.succeeded, "success")
