"""check, fix, parse and generate of large TF_CONFIGs on one core, beside writing every text by json.dumps.

python bench/tfconfig.py [TASKS]        (default 10,000)
"""

from __future__ import annotations

import json
import os
import statistics
import sys
import time
from collections.abc import Callable

from phalanx import tfconfig

ROUNDS = 5


def seconds(work: Callable[[], object], rounds: int = ROUNDS) -> float:
    """Median of `rounds`, after one to warm up."""
    work()
    times = []
    for _ in range(rounds):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def main() -> None:
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    tasks = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    addresses = [f"worker-{i:05d}.training.svc:2222" for i in range(tasks)]
    cluster = tfconfig.Cluster.dense({"worker": addresses})
    text = tfconfig.generate(cluster, tfconfig.TaskId("worker", tasks - 1))
    sparse = json.dumps({"cluster": {"worker": {str(i): a for i, a in enumerate(addresses)}}} | {"task": {}})
    bad = text.replace(":2222", "")
    quoted = text.replace('"', "'")

    def stream() -> int:
        return sum(len(value) for _, value in tfconfig.generate_all(cluster))

    def bodies() -> list[object]:
        return list(tfconfig.Bodies(cluster))

    def naive() -> int:
        # One in a hundred, for all of them would take minutes; every text costs the same.
        step = max(1, tasks // 100)
        return sum(
            len(json.dumps({"cluster": {"worker": addresses}, "task": {"type": "worker", "index": i}}))
            for i in range(0, tasks, step)
        )

    every = tasks / len(range(0, tasks, max(1, tasks // 100)))
    print(f"{tasks:,} tasks, {len(text):,} bytes a text, one core, median of {ROUNDS}")
    for name, work, factor in (
        ("check, nothing to find", lambda: tfconfig.check(text), 1.0),
        ("check, every address without a port", lambda: tfconfig.check(bad), 1.0),
        ("check, single quotes everywhere", lambda: tfconfig.check(quoted), 1.0),
        ("check, sparse form", lambda: tfconfig.check(sparse), 1.0),
        ("parse", lambda: tfconfig.parse(text), 1.0),
        ("json.loads alone", lambda: json.loads(text), 1.0),
        ("fix, single quotes everywhere", lambda: tfconfig.fix(quoted), 1.0),
        ("generate all, streamed", stream, 1.0),
        ("generate all, shared beginning", bodies, 1.0),
        ("json.dumps for each task (estimated from 1 %)", naive, every),
    ):
        print(f"  {name:<48} {seconds(work) * factor:9.4f} s")


if __name__ == "__main__":
    main()
