"""The PodTemplateSpecs that a job lays over its pods, looked through: whatever they hold, the API server judges."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from phalanx.job.complaint import Loc
from phalanx.job.model import Job


def overlays(job: Job) -> Iterator[tuple[Loc, Mapping[str, Any]]]:
    """Each template that a job lays over its pods, with where it is said."""
    said = job.on.kubernetes
    yield ("on", "kubernetes", "pod"), said.pod
    for name, role in said.roles.items():
        yield ("on", "kubernetes", "roles", name, "pod"), role.pod


def containers(template: Mapping[str, Any]) -> Iterator[tuple[Loc, Mapping[str, Any]]]:
    """Its containers, with where they are in its spec."""
    for key in ("containers", "initContainers"):
        for number, container in enumerate(mappings(template.get("spec", {}).get(key))):
            yield (key, number), container


def mappings(value: object) -> list[Mapping[str, Any]]:
    """The mappings of a list; whatever else a template holds, the API server judges."""
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []
