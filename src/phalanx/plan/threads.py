"""How many threads TensorFlow starts, where it would count wrong: it takes the number of CPUs that it may use."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence

from phalanx.names import TaskId
from phalanx.plan.host import Host
from phalanx.plan.outline import Outline, Strategy

#: A connection's queues, 64 by themselves, each with a thread of its own (facts §6).
QUEUES = "TF_GRPC_WORKER_CACHE_QUEUES"
WITHIN, BETWEEN = "TF_NUM_INTRAOP_THREADS", "TF_NUM_INTEROP_THREADS"


def thread_settings(
    outline: Outline, placed: Mapping[TaskId, Host], cpus: Mapping[TaskId, Sequence[int]]
) -> Mapping[TaskId, dict[str, str]]:
    """Variables for each task; none where TensorFlow counts right. `cpus`: of those that are pinned.

    Said also where it would count the same: sums are made in parts, one a thread, so that a task which starts on all
    CPUs, since others use its own (`agent.crowd`), would train to other last digits than before.
    With a thread for each core of a host of 64, a container of 4 spends its CPU time early in each period, and waits.
    With one thread between operations, as on one CPU, a worker of ParameterServerStrategy waits for itself (facts §4).
    """
    fellows = Counter(host.id for host in placed.values())
    settings: dict[TaskId, dict[str, str]] = {}
    for task, host in placed.items():
        env = settings[task] = {}
        if outline.sharing.threads and task in cpus:
            env[WITHIN] = str(len(cpus[task]))
        elif outline.sharing.threads and 0 < host.quota < host.cpus:
            env[WITHIN] = str(outline.role(task.type).cpus or math.ceil(host.quota / fellows[host.id]))
        lone = len(cpus[task]) == 1 if task in cpus else host.cpus == 1 and outline.strategy is Strategy.PS
        if outline.sharing.between and lone:
            env[BETWEEN] = "2"
    return settings
