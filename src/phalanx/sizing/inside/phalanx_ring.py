"""What TensorFlow's gRPC costs on this machine: a byte that one task sends another, and a hop that carries none.

Two servers of this process add up a tensor around a ring, as workers of MultiWorkerMirroredStrategy do: both ends' CPU
time is then this process's, and nothing has to be started.
"""

import os
import resource
import socket
import sys
import threading
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

#: Bytes of the large tensor: enough to outweigh the call, and less than the allocator returns to the kernel at once.
_LARGE, _SMALL = 16 << 20, 4
#: How often it is added up before that counts, at each time, and how many times; the median is taken.
_WARM, _ROUNDS, _MORE, _TIMES = 2, 2, 50, 5
#: Hops of a ring of two.
_HOPS = 2
#: Seconds after which there is no answer: a loopback that is shut, a machine that others use.
_PATIENCE = 15.0


def ring(anew: float) -> "dict[str, float]":
    """`sent`: core seconds of a byte that is sent and received; `hop`: those of a hop of one worker.

    Empty where this machine does not let it be measured.
    `anew`: core seconds of a byte that the kernel hands out. How many it does is the allocator's luck, from 0.2 to 1.8
    for each byte in processes that did the same (facts §10), so they are counted, and taken off.
    """
    found: "dict[str, float]" = {}

    def ask() -> None:
        try:
            found.update(_measured(anew))
        except Exception:  # noqa: BLE001 - a look goes on without it
            return

    asked = threading.Thread(target=ask, daemon=True)
    asked.start()
    asked.join(_PATIENCE)
    return dict(found)


def _measured(anew: float) -> "dict[str, float]":
    tf = sys.modules["tensorflow"]
    os.environ.update({"no_grpc_proxy": "127.0.0.1"})  # gRPC would go to 127.0.0.1 by way of http_proxy
    config = tf.compat.v1.ConfigProto(
        device_count={"GPU": 0}, intra_op_parallelism_threads=1, inter_op_parallelism_threads=2
    )
    config.experimental.collective_group_leader = "/job:worker/replica:0/task:0"
    cluster = tf.train.ClusterSpec({"worker": ["127.0.0.1:%d" % port for port in _ports()]})
    servers = [
        tf.distribute.Server(cluster, job_name="worker", task_index=task, protocol="grpc", config=config)
        for task in range(2)
    ]
    large, small = (
        [_call(task, server.target, config, size) for task, server in enumerate(servers)] for size in (_LARGE, _SMALL)
    )
    # Of two workers each sends as many bytes as its tensor has, and makes each hop.
    hop = _cost(small, _MORE, anew) / (2.0 * _HOPS)
    return {"sent": max(_cost(large, _ROUNDS, anew) / 2.0 - _HOPS * hop, 0.0) / _LARGE, "hop": hop}


def _cost(calls: "list[Any]", rounds: int, anew: float) -> float:
    """CPU seconds of one round, less what memory has cost."""
    _rounds(calls, _WARM)
    costs: "list[float]" = []
    for _ in range(_TIMES):
        start, pages = time.process_time(), _pages()
        _rounds(calls, rounds)
        costs.append(time.process_time() - start - (_pages() - pages) * anew)
    return max(sorted(costs)[_TIMES // 2], 0.0) / rounds


def _pages() -> int:
    """Bytes that the kernel has handed this process so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt * resource.getpagesize()


def _ports() -> "list[int]":
    held = [socket.create_server(("127.0.0.1", 0)) for _ in range(2)]
    ports = [int(one.getsockname()[1]) for one in held]
    for one in held:
        one.close()
    return ports


def _call(task: int, target: str, config: "Any", size: int) -> "Any":
    tf = sys.modules["tensorflow"]
    graph = tf.Graph()
    with graph.as_default(), tf.device("/job:worker/task:%d/cpu:0" % task):
        zeros = tf.fill((size // 4,), tf.compat.v1.placeholder_with_default(0.0, ()))
        done = tf.raw_ops.CollectiveReduce(
            input=zeros,
            group_size=2,
            group_key=1,
            instance_key=size,
            merge_op="Add",
            final_op="Id",
            subdiv_offsets=[0],
            communication_hint="ring",
        ).op
    return tf.compat.v1.Session(target, graph=graph, config=config).make_callable(done)


def _rounds(calls: "list[Any]", rounds: int) -> None:
    def work(call: "Any") -> None:
        for _ in range(rounds):
            call()

    threads = [threading.Thread(target=work, args=(call,), daemon=True) for call in calls]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
