"""Imports TensorFlow once, then forks a process per TF_CONFIG and tells how each fared.

Reads a JSON list of cases on stdin: {"name", "tasks": [TF_CONFIG text or null, ...], "do", "seconds", "environ"};
writes a JSON object on stdout: name -> one outcome per task. An outcome is `replicas=N`, `ExceptionName: text`,
`blocked` (nothing after `seconds`) or `signal N`. At most two processes at once; no eager context before a fork.
"""

from __future__ import annotations

import json
import os
import select
import signal
import sys
import time
from typing import Any

import tensorflow as tf

AT_ONCE = 2


def mwms() -> str:
    return f"replicas={tf.distribute.MultiWorkerMirroredStrategy().num_replicas_in_sync}"


def reduce() -> str:
    """As mwms, and one all-reduce: only there do workers notice that they count differently."""
    strategy = tf.distribute.MultiWorkerMirroredStrategy()
    ones = strategy.run(lambda: tf.constant(1.0))
    return f"replicas={int(strategy.reduce('SUM', ones, axis=None))}"


def ps() -> str:
    resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
    return f"replicas={tf.distribute.ParameterServerStrategy(resolver).num_replicas_in_sync}"


def child(text: str | None, case: dict[str, Any], write_end: int) -> None:
    """Never returns. Leaves at once: no atexit, no destructors, the pages are the parent's."""
    os.environ.pop("TF_CONFIG", None)
    os.environ.update(case["environ"])
    if text is not None:
        os.environ["TF_CONFIG"] = text
    try:
        outcome = {"mwms": mwms, "reduce": reduce, "ps": ps}[case["do"]]()
    except BaseException as error:  # noqa: BLE001 - whatever TensorFlow does is the answer
        outcome = f"{type(error).__name__}: {error}"
    os.write(write_end, outcome.encode()[:4000])
    if case["do"] == "reduce":
        time.sleep(1)  # the peer must fail by itself, not because we left
    os._exit(0)


def main() -> None:
    waiting = json.load(sys.stdin)
    sys.stdout.flush()
    outcomes: dict[str, list[str]] = {case["name"]: ["blocked"] * len(case["tasks"]) for case in waiting}
    running: dict[int, tuple[int, str, int, float]] = {}  # pipe -> pid, case, task, deadline
    while waiting or running:
        while waiting and len(running) + len(waiting[0]["tasks"]) <= max(AT_ONCE, len(waiting[0]["tasks"])):
            case = waiting.pop(0)
            for place, text in enumerate(case["tasks"]):
                read_end, write_end = os.pipe()
                pid = os.fork()
                if pid == 0:
                    os.close(read_end)
                    child(text, case, write_end)
                os.close(write_end)
                running[read_end] = (pid, case["name"], place, time.monotonic() + case["seconds"])
        ready, _, _ = select.select(list(running), [], [], 0.05)
        now = time.monotonic()
        for pipe, (pid, name, place, deadline) in list(running.items()):
            if pipe in ready:
                said = os.read(pipe, 4096).decode()
                if said:
                    outcomes[name][place] = said
                    continue
                _, status = os.waitpid(pid, 0)
                if os.WIFSIGNALED(status):
                    outcomes[name][place] = f"signal {os.WTERMSIG(status)}"
            elif now > deadline:
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)
            else:
                continue
            os.close(pipe)
            del running[pipe]
    json.dump(outcomes, sys.stdout)


if __name__ == "__main__":
    main()
