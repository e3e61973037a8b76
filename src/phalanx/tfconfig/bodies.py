"""Each task's TF_CONFIG as one shared beginning and a short end: N tasks cost O(N), not O(N²)."""

from __future__ import annotations

import dataclasses
import functools
import json
from collections.abc import Iterator, Mapping
from typing import Any

from phalanx.errors import InputError
from phalanx.names import KNOWN_TYPES, TaskId
from phalanx.tfconfig.model import Cluster

#: What an Estimator's evaluator lists as its own address where it has none: it serves nobody (R03).
NOT_SERVED = "localhost:1"


@dataclasses.dataclass(frozen=True, slots=True)
class Body:
    """`head + tail` is the text."""

    head: str
    tail: str

    @property
    def text(self) -> str:
        """The value of TF_CONFIG."""
        return self.head + self.tail


class Bodies:
    """The texts of one cluster. The cluster is written once; a task adds some forty bytes.

    What an evaluator sees depends on the strategy (R01-R03): `estimator` lists it in its own text alone, every other
    strategy nowhere. Extra roles (R96) stand in no cluster and have no text.
    """

    def __init__(self, cluster: Cluster, *, strategy: str = "mwms", extra: Mapping[str, Any] | None = None) -> None:
        """`strategy` is mwms, ps, estimator or none; `extra` are further top-level keys, the same for every task.

        Raises InputError where `extra` holds cluster or task, or what JSON cannot.
        """
        self._cluster = cluster
        self._strategy = strategy
        self._tail = _end(extra or {})
        self._trained = cluster.without(*(kind for kind in cluster.jobs if kind not in KNOWN_TYPES), "evaluator")
        #: The beginning that every task but an Estimator's evaluator shares.
        self.head = _head(self._trained)

    def of(self, task: TaskId) -> Body:
        """The task's text. Raises InputError for a task that the cluster does not have."""
        if task.type == "evaluator":
            head = self._own_head if self._strategy == "estimator" else self.head
        elif self._trained.address(task) is not None:
            head = self.head
        else:
            of = len(self._cluster.jobs.get(task.type, {}))
            has = (
                f"{task.type} has {of}, counted from 0"
                if of and task.type in KNOWN_TYPES
                else f"no {task.type} is in it"
            )
            raise InputError(f"the cluster has no {task}: {has}")
        return Body(head, f'{{"type":{json.dumps(task.type)},"index":{task.index}}}{self._tail}')

    def __iter__(self) -> Iterator[tuple[TaskId, Body]]:
        """Every task of the cluster that has a text, in training order."""
        return ((task, self.of(task)) for task in self._cluster.tasks() if task.type in KNOWN_TYPES)

    @functools.cached_property
    def _own_head(self) -> str:
        own = self._cluster.jobs.get("evaluator") or {0: NOT_SERVED}
        return _head(Cluster(jobs={**self._trained.jobs, "evaluator": own}, sparse=self._trained.sparse))


def _head(cluster: Cluster) -> str:
    return f'{{"cluster":{json.dumps(cluster.to_json(), separators=(",", ":"))},"task":'


def _end(extra: Mapping[str, Any]) -> str:
    taken = {"cluster", "task"} & extra.keys()
    if taken:
        raise InputError(f"{taken.pop()} is written by phalanx; it cannot be an extra key")
    if not extra:
        return "}"
    try:
        text = json.dumps(dict(extra), separators=(",", ":"), allow_nan=False)
    except (TypeError, ValueError) as error:
        raise InputError(f"the extra keys cannot be written as JSON: {error}") from error
    return f",{text[1:]}"
