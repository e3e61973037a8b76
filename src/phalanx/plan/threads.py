"""How many threads TensorFlow starts, where it would count wrong: it takes the number of CPUs that it may use."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from phalanx.names import TaskId
from phalanx.plan.host import Host
from phalanx.plan.outline import Outline, Strategy
from phalanx.plan.placement import fellows

#: A connection's queues, 64 by themselves, each with a thread of its own (facts §6).
QUEUES = "TF_GRPC_WORKER_CACHE_QUEUES"
WITHIN, BETWEEN = "TF_NUM_INTRAOP_THREADS", "TF_NUM_INTEROP_THREADS"


def thread_settings(
    outline: Outline, placed: Mapping[TaskId, Host], cpus: Mapping[TaskId, Sequence[int]]
) -> Mapping[TaskId, dict[str, str]]:
    """Variables for each task; none for one that has its host for itself. `cpus`: of those that are pinned.

    Sums are made in parts, one a thread: so the number follows from the job and the machine, and not from whether the
    task is pinned just now, or a run would end with other last digits where others are on the machine. And with a
    thread for each core of 64, a container of 4 spends its CPU time early in each period, and waits.
    With one thread between operations, as on one CPU, a worker of ParameterServerStrategy waits for itself (facts §4).
    """
    by_host = fellows(placed, placed)
    settings: dict[TaskId, dict[str, str]] = {}
    for task, host in placed.items():
        env = settings[task] = {}
        here = by_host[host.id]
        if outline.sharing.threads and (len(here) > 1 or 0 < host.quota < host.cpus):
            env[WITHIN] = str(outline.role(task.type).cpus or _even(outline, host, here))
        lone = len(cpus[task]) == 1 if task in cpus else host.cpus == 1 and outline.strategy is Strategy.PS
        if outline.sharing.between and lone:
            env[BETWEEN] = "2"
    return settings


def _even(outline: Outline, host: Host, here: Sequence[TaskId]) -> int:
    """What is left by those that were promised a number, for each of the others."""
    claims = [outline.role(task.type).cpus for task in here]
    left = (host.quota or host.cpus) - sum(claim or 0 for claim in claims)
    return max(math.ceil(left / claims.count(None)), 1)
