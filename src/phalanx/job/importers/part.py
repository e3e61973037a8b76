"""One role of a job that is being made from manifests: what is the role's own, and what may become the job's."""

from __future__ import annotations

import dataclasses
from typing import Any

from phalanx.job.importers.ledger import Spot

#: The name of our container in an overlay of pods.
TASK = ("spec", "containers", "task")
#: A place inside a PodTemplateSpec; containers go by their names.
Path = tuple[str, ...]


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Said:
    """A value of job.yaml and what it was made from; `why`, where it is not what was written."""

    value: Any
    spot: Spot
    why: str = ""


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Reference:
    """A value that is kept in a Secret of the cluster."""

    secret: str
    key: str
    spot: Spot
    why: str = ""


@dataclasses.dataclass(kw_only=True, slots=True)
class Part:
    """Filled by the readers of one pod template; `draft` puts several together."""

    kind: str
    root: Spot
    count: Said
    command: Said | None = None
    #: What else of the manifest went into the command.
    command_too: list[Spot] = dataclasses.field(default_factory=list)
    #: `cpus`, `memory`, `gpus`, `min`.
    fields: dict[str, Said] = dataclasses.field(default_factory=dict)
    #: Requests that say the same as the limits, each with its field.
    alike: list[tuple[str, Spot]] = dataclasses.field(default_factory=list)
    env: dict[str, Said] = dataclasses.field(default_factory=dict)
    secrets: dict[str, Reference] = dataclasses.field(default_factory=dict)
    #: What job.yaml says once for all roles: `image`, `folder`, `pull`, `priority` and their like.
    shared: dict[str, Said] = dataclasses.field(default_factory=dict)
    overlay: dict[Path, Said] = dataclasses.field(default_factory=dict)
    #: What the `restricted` profile does not allow.
    loose: list[Said] = dataclasses.field(default_factory=list)
    #: A hand-written TF_CONFIG: the variable's text, and the type of task that a script says.
    tf_config: Spot | None = None
    scripted: str | None = None
    by_hand: bool = False
