"""Imports TensorFlow once, then forks a process per TF_CONFIG and tells how each fared.

Reads a JSON list of cases on stdin: {"name", "tasks": [TF_CONFIG text or null, ...], "hangs", "do", "environ"};
writes a JSON object on stdout: name -> one outcome per task. An outcome is `replicas=N`, `ExceptionName: text`,
`signal N`, or `blocked`: no other task of the case is left but those expected to hang, and PATIENCE seconds have
passed, or LONGEST have in any case. At most two processes at once; no eager context before a fork.
"""

from __future__ import annotations

import dataclasses
import json
import os
import select
import signal
import sys
import time
from typing import Any

import tensorflow as tf

AT_ONCE = 2
PATIENCE = 2.0
LONGEST = 30.0


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


@dataclasses.dataclass
class Running:
    pid: int
    case: dict[str, Any]
    place: int
    since: float = dataclasses.field(default_factory=time.monotonic)


def start(case: dict[str, Any], running: dict[int, Running]) -> None:
    for place, text in enumerate(case["tasks"]):
        read_end, write_end = os.pipe()
        pid = os.fork()
        if pid == 0:
            os.close(read_end)
            child(text, case, write_end)
        os.close(write_end)
        running[read_end] = Running(pid=pid, case=case, place=place)


def given_up(task: Running, running: dict[int, Running]) -> bool:
    left = sum(other.case is task.case for other in running.values())
    waited = time.monotonic() - task.since
    return waited > LONGEST or (left <= task.case["hangs"] and waited > PATIENCE)


def main() -> None:
    waiting = json.load(sys.stdin)
    outcomes: dict[str, list[str]] = {case["name"]: ["blocked"] * len(case["tasks"]) for case in waiting}
    running: dict[int, Running] = {}
    while waiting or running:
        while waiting and len(running) + len(waiting[0]["tasks"]) <= AT_ONCE:
            start(waiting.pop(0), running)
        ready, _, _ = select.select(list(running), [], [], 0.05)
        done = [pipe for pipe, task in running.items() if pipe not in ready and given_up(task, running)]
        for pipe in done:
            os.kill(running[pipe].pid, signal.SIGKILL)
        for pipe in ready:
            said = os.read(pipe, 4096).decode()
            if said:
                outcomes[running[pipe].case["name"]][running[pipe].place] = said
            else:
                done.append(pipe)
        for pipe in done:
            task = running.pop(pipe)
            os.close(pipe)
            _, status = os.waitpid(task.pid, 0)
            if os.WIFSIGNALED(status) and os.WTERMSIG(status) != signal.SIGKILL:
                outcomes[task.case["name"]][task.place] = f"signal {os.WTERMSIG(status)}"
    json.dump(outcomes, sys.stdout)


if __name__ == "__main__":
    main()
