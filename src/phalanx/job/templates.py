"""The PodTemplateSpecs that a job lays over its pods, looked through: whatever they hold, the API server judges."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from phalanx.job.complaint import Loc
from phalanx.job.model import Job
from phalanx.plan.marks import CONTAINER

#: What a pod's template may not say over ours, and why.
_OURS = {
    "restartPolicy": "a pod that ends is replaced by its Job",
    "hostname": "pods are named by their Jobs",
    "subdomain": "pods are named below the run's Service",
}
_OURS_IN_TASK = {
    "image": "say it as the job's `image`, or in the `pod` of one role",
    "command": "say it as the job's `command`",
    "args": "say it as the job's `command`",
}


def mistakes(job: Job) -> Iterator[tuple[Loc, str]]:
    """What a template may not say over ours, and what cannot be laid over anything."""
    for loc, template in overlays(job):
        yield from _shape(loc, template)
        for key in _OURS.keys() & template.get("spec", {}).keys():
            yield (*loc, "spec", key), f"{key} is phalanx's own: {_OURS[key]}"
        for at, container in containers(template):
            if container.get("name") == CONTAINER and at[0] == "containers":
                of_role = {"image"} if "roles" in loc else set()  # one role's may be another, say without CUDA
                for key in (_OURS_IN_TASK.keys() & container.keys()) - of_role:
                    why = f"{key} of the container `{CONTAINER}` is phalanx's own: {_OURS_IN_TASK[key]}"
                    yield (*loc, "spec", *at, key), why
        yield from _labels((*loc, "metadata", "labels"), template.get("metadata", {}).get("labels"))
    yield from _labels(("on", "kubernetes", "labels"), job.on.kubernetes.labels)


def _shape(loc: Loc, template: Mapping[str, Any]) -> Iterator[tuple[Loc, str]]:
    """Lists that are merged by name have to be such, or what is laid over ours would take its place."""
    spec = template.get("spec", {})
    for key in ("containers", "initContainers", "volumes", "imagePullSecrets"):
        yield from _named((*loc, "spec", key), spec, "name")
    for at, container in containers(template):
        for key, name in (("env", "name"), ("volumeMounts", "mountPath")):
            yield from _named((*loc, "spec", *at, key), container, name)
        if "securityContext" in container and not isinstance(container["securityContext"], dict):
            yield (*loc, "spec", *at, "securityContext"), "securityContext must be a mapping"


def _named(at: Loc, holder: Mapping[str, Any], name: str) -> Iterator[tuple[Loc, str]]:
    key = at[-1]
    if key not in holder:
        return
    items = holder[str(key)]
    if not isinstance(items, list):
        yield at, f"{key} must be a list"
    for number, item in enumerate(items if isinstance(items, list) else ()):
        if not isinstance(item, dict) or not isinstance(item.get(name), str):
            yield (*at, number), f"each of {key} must be a mapping with a {name}"


def _labels(loc: Loc, labels: object) -> Iterator[tuple[Loc, str]]:
    for key in labels if isinstance(labels, dict) else ():
        if str(key).startswith("phalanx/"):
            yield (*loc, key), f"{key} is phalanx's own label, by which a run's objects are found; leave it out"


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
