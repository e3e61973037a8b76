"""Cluster, task, and the two together: what a TF_CONFIG means once it can be read."""

from __future__ import annotations

import dataclasses
from bisect import bisect_left
from collections.abc import Iterator, Mapping
from typing import Any

from phalanx.names import TRAINING_TYPES, TaskId, training_order


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Cluster:
    """Task types, each with its addresses by index.

    `jobs` keeps the order in which the types were written. Indices of a dense type are 0..n-1; a type written as
    an object (`{"1": "w1:2222"}`, the sparse form of tf.train.ClusterSpec) keeps the indices it names and stands
    in `sparse`; so does a type whose indices have gaps, for a list could not say it.
    """

    jobs: Mapping[str, Mapping[int, str]]
    sparse: frozenset[str] = frozenset()
    _indices: Mapping[str, tuple[int, ...]] = dataclasses.field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Sort each type's indices once, so that `rank` and `tasks` of 10,000 tasks stay cheap."""
        indices = {kind: tuple(sorted(of)) for kind, of in self.jobs.items()}
        gaps = {kind for kind, of in indices.items() if of and (of[0] != 0 or of[-1] != len(of) - 1)}
        object.__setattr__(self, "_indices", indices)
        object.__setattr__(self, "sparse", self.sparse | gaps)

    @classmethod
    def dense(cls, jobs: Mapping[str, list[str] | tuple[str, ...]]) -> Cluster:
        """From lists of addresses, the usual form."""
        return cls(jobs={kind: dict(enumerate(addresses)) for kind, addresses in jobs.items()})

    def tasks(self) -> Iterator[TaskId]:
        """Every task: chief, workers, ps, evaluator, others; each type by index."""
        for kind in sorted(self.jobs, key=lambda kind: training_order(TaskId(kind, 0))):
            yield from (TaskId(kind, index) for index in self._indices[kind])

    def address(self, task: TaskId) -> str | None:
        """The task's `host:port`, or None where the cluster has no such task."""
        return self.jobs.get(task.type, {}).get(task.index)

    @property
    def chief(self) -> TaskId | None:
        """`chief:0` where the cluster has one, else `worker:0` (multi_worker_util.is_chief), else None."""
        for kind in TRAINING_TYPES:
            if self.jobs.get(kind):
                return TaskId(kind, self._indices[kind][0])
        return None

    def replicas(self) -> tuple[TaskId, ...]:
        """The tasks that train, in the order of their ranks: chief first, then workers by index (R22)."""
        return tuple(TaskId(kind, index) for kind in TRAINING_TYPES for index in self._indices.get(kind, ()))

    def rank(self, task: TaskId) -> int | None:
        """The task's place among the replicas, 0 for the chief; None where it does not train. O(log N)."""
        before = 0
        for kind in TRAINING_TYPES:
            of = self._indices.get(kind, ())
            if kind == task.type:
                return before + bisect_left(of, task.index) if task.index in self.jobs.get(kind, {}) else None
            before += len(of)
        return None

    def without(self, *kinds: str) -> Cluster:
        """The same cluster without these task types."""
        jobs = {kind: of for kind, of in self.jobs.items() if kind not in kinds}
        return Cluster(jobs=jobs, sparse=self.sparse & jobs.keys())

    def to_json(self) -> dict[str, Any]:
        """The value of `"cluster"`: lists, and objects for sparse types."""
        out: dict[str, Any] = {}
        for kind, of in self.jobs.items():
            order = self._indices[kind]
            out[kind] = {str(i): of[i] for i in order} if kind in self.sparse else [of[i] for i in order]
        return out


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class TfConfig:
    """One task's view: the cluster, who it is, and whatever else was written beside them (kept as it was).

    `cluster` or `task` is None where the text has none.
    """

    cluster: Cluster | None = None
    task: TaskId | None = None
    extra: Mapping[str, Any] = dataclasses.field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """What `json.dumps` turns into the variable's text."""
        out: dict[str, Any] = {}
        if self.cluster is not None:
            out["cluster"] = self.cluster.to_json()
        if self.task is not None:
            out["task"] = {"type": self.task.type, "index": self.task.index}
        return out | dict(self.extra)
