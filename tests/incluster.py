"""Jobs for Kubernetes, made of a few lines: their declaration, and the objects they become."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from phalanx.engine.kubernetes.objects import objects
from phalanx.engine.kubernetes.static import static_objects
from phalanx.job.flags import Flags
from phalanx.job.incluster import InCluster, declare_in_cluster

if TYPE_CHECKING:
    from collections.abc import Mapping

#: What every job of these tests says; a text may say it anew.
BASE = """command: [python, train.py]
name: digits
image: registry.example.com/digits@sha256:0123
"""
#: In place of the agent's zip, which changes with each line of code.
AGENT = b"the agent"


def in_cluster(folder: Path, text: str, **flags: Any) -> InCluster:
    """The job of BASE and `text`, written into the folder."""
    said = {line.partition(":")[0] for line in text.splitlines() if line[:1].strip()}
    base = "".join(f"{line}\n" for line in BASE.splitlines() if line.partition(":")[0] not in said)
    (folder / "job.yaml").write_text(base + text, encoding="utf-8")
    return declare_in_cluster(("job.yaml",), Flags(**flags), cwd=folder)


def made(folder: Path, text: str, *, run: str = "digits", agent: bytes = AGENT, key: str | None = None) -> list[Any]:
    """The objects of that job."""
    said = in_cluster(folder, text)
    return list(objects(said.outline, said.cluster, run=run, agent=agent, key=key))


def of_kind(manifests: list[Any], kind: str) -> list[Mapping[str, Any]]:
    """Those of one kind, in their order."""
    return [one for one in manifests if one["kind"] == kind]


def static(folder: Path, text: str, *, run: str = "digits") -> list[Any]:
    """The objects of that job without an agent."""
    said = in_cluster(folder, text)
    return list(static_objects(said.outline, said.cluster, run=run))


def pods(manifests: list[Any]) -> dict[str, Any]:
    """Each pod's template, by the name of its Job, or by its role in a JobSet."""
    found = {job["metadata"]["name"]: job["spec"]["template"] for job in of_kind(manifests, "Job")}
    for jobset in of_kind(manifests, "JobSet"):
        found |= {one["name"]: one["template"]["spec"]["template"] for one in jobset["spec"]["replicatedJobs"]}
    return found
