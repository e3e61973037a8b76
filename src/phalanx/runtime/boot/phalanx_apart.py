"""A `fit` that trains apart: the cluster has several workers, and the model knows of no strategy that joins them.

Keras asks for the strategy where a model is built. Built outside `strategy.scope()`, or under a strategy of one
process, it trains in each worker by itself, and nothing else says so: the job ends well, with as many models.
"""

import os
import sys

TYPE_CHECKING = False  # as in phalanx_standby
if TYPE_CHECKING:
    from typing import Any

#: Strategies of one process; the first is what there is without any.
_DEFAULT = "_DefaultDistributionStrategy"
_ALONE = (_DEFAULT, "MirroredStrategy", "OneDeviceStrategy", "CentralStorageStrategy")
_CHIEFS = ("chief", "master")


class Apart:
    """Looks at each `fit` as it begins. Nothing in it raises."""

    def __init__(self, notes: "Any") -> None:
        """`notes`: of phalanx_keras3."""
        self._notes = notes

    def begins(self, callbacks: "Any") -> None:
        """`callbacks`: the list that a `fit` of Keras 3 or tf_keras goes through, which knows the model."""
        try:
            kind = type(callbacks.model.distribute_strategy).__name__
            if kind not in _ALONE or "horovod" in sys.modules:
                return
            workers, leads = _place()
            if workers > 1:
                self._notes.tell(_message(kind, workers), leads=leads)
        except Exception:  # noqa: BLE001 - not told, and never the program's trouble
            return


def _place() -> "tuple[int, bool]":
    """How many train, and whether this is the first of them. None where a ps or an evaluator has a part in it."""
    import json  # Keras has loaded it

    config = json.loads(os.environ.get("TF_CONFIG") or "{}")
    cluster, task = config.get("cluster") or {}, config.get("task") or {}
    chiefs = sum(len(cluster.get(kind) or ()) for kind in _CHIEFS)
    kind = task.get("type")
    if cluster.get("ps") or kind not in (*_CHIEFS, "worker"):
        return 0, False
    return chiefs + len(cluster.get("worker") or ()), kind in _CHIEFS or (not chiefs and int(task["index"]) == 0)


def _message(kind: str, workers: int) -> str:
    why = "the model was built outside strategy.scope()" if kind == _DEFAULT else f"{kind} is of one process"
    task = os.environ.get("PHALANX_TASK") or "this worker"
    return f"{task} trains by itself: {why}, so the {workers} workers train {workers} models"
