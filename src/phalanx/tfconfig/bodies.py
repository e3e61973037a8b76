"""Each task's TF_CONFIG as one shared beginning and a short end: N tasks cost O(N), not O(N²)."""

from __future__ import annotations

import dataclasses
import json

from phalanx.names import TaskId
from phalanx.tfconfig.model import Cluster


@dataclasses.dataclass(frozen=True, slots=True)
class Body:
    """`head + tail` is the text."""

    head: str
    tail: str


class Bodies:
    """The texts of one cluster."""

    def __init__(self, cluster: Cluster, *, strategy: str = "mwms") -> None:
        """`strategy` decides what an evaluator sees (R01-R03)."""
        self._strategy = strategy
        self._cluster = cluster
        self.head = _head(cluster)

    def of(self, task: TaskId) -> Body:
        """The task's text. Only an Estimator's evaluator sees another cluster: one with itself in it (R03)."""
        tail = json.dumps({"type": task.type, "index": task.index}) + "}"
        return Body(self.head, tail)


def _head(cluster: Cluster) -> str:
    return '{"cluster": ' + json.dumps(cluster.to_json()) + ', "task": '
