"""How a run becomes objects of Kubernetes: what `on.kubernetes`, the image and the placement say, resolved."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

#: Whom containers run as: nobody in particular, as distroless images have it.
USER = 65532
#: The parts of a pod's template that a job may lay something over.
OVERLAID = ("metadata", "spec")


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Scraper:
    """Who else may reach the lead's port: pods by namespace and labels, or addresses."""

    namespace: str | None = None
    labels: Mapping[str, str] = dataclasses.field(default_factory=dict)
    cidr: str | None = None


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Given:
    """A value that a pod gets from a Secret of its namespace: as a variable, or as a file."""

    name: str
    secret: str
    key: str
    env: str | None = None
    path: str | None = None


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Gang:
    """Whose PodGroup the pods belong to."""

    #: `volcano` or `coscheduling`.
    kind: str
    #: What the scheduler itself is called.
    scheduler: str


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Cluster:
    """Everything about a run's objects that is not in its outline. Durations in seconds, sizes in bytes."""

    image: str
    context: str | None = None
    #: None: that of the context.
    namespace: str | None = None
    pull: str = "IfNotPresent"
    pull_secrets: tuple[str, ...] = ()
    #: Whether the lead gets a token and a Role.
    role: bool = True
    #: The claim that run folders lie on.
    pvc: str | None = None
    #: Kueue's, or with a gang Volcano's.
    queue: str | None = None
    gang: Gang | None = None
    jobset: bool = False
    priority: str | None = None
    #: Roles kept off the hosts of those that train.
    apart: tuple[str, ...] = ()
    #: Keys of labels of nodes.
    together: str | None = None
    spread: str | None = None
    gpu: str = "nvidia.com/gpu"
    shm: int | None = None
    #: Bytes by the size of a page.
    hugepages: Mapping[str, int] = dataclasses.field(default_factory=dict)
    deadline: float | None = None
    ttl: float | None = None
    #: From TERM to KILL of a pod.
    grace: float = 30.0
    #: None: the cluster chooses.
    user: int | None = USER
    restricted: bool = True
    scrapers: tuple[Scraper, ...] = ()
    labels: Mapping[str, str] = dataclasses.field(default_factory=dict)
    annotations: Mapping[str, str] = dataclasses.field(default_factory=dict)
    #: PodTemplateSpecs laid over that of every role, and of one.
    pod: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    pods: Mapping[str, Mapping[str, Any]] = dataclasses.field(default_factory=dict)
    secrets: tuple[Given, ...] = ()
    #: Where commands start; None: where the image says.
    folder: str | None = None

    @property
    def kueue(self) -> str | None:
        """The queue of Kueue that admits the run."""
        return self.queue if self.gang is None else None
