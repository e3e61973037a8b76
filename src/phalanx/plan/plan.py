"""One generation, complete: who runs what, where, at which address, with which environment."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from phalanx.names import TaskId
from phalanx.plan.host import Host
from phalanx.plan.outline import Outline
from phalanx.tfconfig.model import Cluster


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class PlannedTask:
    """One start of one task, as its agent receives it."""

    id: TaskId
    host: int
    argv: tuple[str, ...]
    #: The variables added to the user's environment, TF_CONFIG left out: it is `head + tail` below.
    env: Mapping[str, str]
    #: Its `host:port` in the cluster; None for a task without a server.
    address: str | None = None
    #: Place among the replicas, 0 for the chief; None where it does not train.
    rank: int | None = None
    attempt: int = 1
    #: This task's end of TF_CONFIG; None gives it none.
    tail: str | None = None
    #: Replaces the shared beginning for a task that sees another cluster (an Estimator's evaluator, R03).
    head: str | None = None
    #: The CPUs it is pinned to; none: all that its host has for it.
    cpus: tuple[int, ...] = ()

    def again(self, attempt: int) -> PlannedTask:
        """The same place in the cluster for a later attempt."""
        return dataclasses.replace(self, attempt=attempt, env={**self.env, "PHALANX_ATTEMPT": str(attempt)})

    @property
    def port(self) -> int | None:
        """The port TensorFlow will listen on."""
        return int(self.address.rpartition(":")[2]) if self.address else None


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Plan:
    """What `bind` made for one generation. Equal inputs give equal plans."""

    run: str
    generation: int
    outline: Outline
    hosts: tuple[Host, ...]
    tasks: tuple[PlannedTask, ...]
    cluster: Cluster | None = None
    #: The beginning of every task's TF_CONFIG: the cluster, written once.
    head: str = ""
    #: By host: why its tasks are not pinned, where they would have been.
    unpinned: Mapping[int, str] = dataclasses.field(default_factory=dict)

    def tf_config(self, task: PlannedTask) -> str | None:
        """The exact text of the task's TF_CONFIG; None where it gets none."""
        if task.tail is None:
            return None
        return (self.head if task.head is None else task.head) + task.tail

    def task(self, task: TaskId) -> PlannedTask:
        """The planned task of that name. Raises KeyError."""
        for planned in self.tasks:
            if planned.id == task:
                return planned
        raise KeyError(str(task))
