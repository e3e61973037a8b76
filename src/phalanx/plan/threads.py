"""How many threads TensorFlow starts, where it would count wrong: it sees a host's cores, and no limit on CPU time."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping

from phalanx.names import TaskId
from phalanx.plan.host import Host
from phalanx.plan.outline import Outline

#: A connection's queues, 64 by themselves, each with a thread of its own (facts §6).
QUEUES = "TF_GRPC_WORKER_CACHE_QUEUES"
THREADS = ("TF_NUM_INTRAOP_THREADS", "TF_NUM_INTEROP_THREADS")


def thread_settings(outline: Outline, placed: Mapping[TaskId, Host]) -> Mapping[TaskId, dict[str, str]]:
    """Variables for each task: none where it is pinned or may use its host freely, for TensorFlow counts right then.

    With a thread for each core of a host of 64, a container of 4 spends its CPU time early in each period, and waits.
    """
    fellows = Counter(host.id for host in placed.values())
    settings: dict[TaskId, dict[str, str]] = {}
    for task, host in placed.items():
        share = outline.role(task.type).cpus or math.ceil(host.quota / fellows[host.id])
        limited = outline.sharing.threads and 0 < host.quota < host.cpus
        settings[task] = {THREADS[0]: str(share)} if limited else {}
    return settings
