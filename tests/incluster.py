"""Jobs for Kubernetes, made of a few lines: their declaration, and the objects they become."""

from __future__ import annotations

import dataclasses
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
#: One of each sort.
JOBS = {
    "mwms": "roles: {worker: {count: 2, cpus: 4, memory: 8Gi, gpus: 1}}\non: {kubernetes: {namespace: ml}}\n",
    "ps": """roles:
  chief: {cpus: 2}
  worker: {count: 3}
  ps: {count: 2, memory: 16Gi}
  evaluator: {}
checkpoint: gs://bucket/ctr
on: {kubernetes: {namespace: ml, apart: [ps]}}
""",
    "elastic": "roles: {worker: {count: 4, min: 2, max: 8}}\non: {kubernetes: {namespace: ml}}\n",
    "rbac-none": "roles: {worker: {count: 2}}\non: {kubernetes: {rbac: none}}\n",
    "pvc": """roles: {worker: {count: 2}}
checkpoint: /data/ckpt
secrets:
  - {name: s3, env: AWS_SECRET_ACCESS_KEY, from: {secret: s3, key: secret}}
  - {name: gcs, path: /secrets/gcs.json, from: {secret: gcs, key: key.json}}
on:
  kubernetes:
    namespace: ml
    rbac: none
    runs: {pvc: runs}
    pull_secrets: [registry]
    pod:
      spec:
        volumes: [{name: data, persistentVolumeClaim: {claimName: data}}]
        containers:
          - {name: task, volumeMounts: [{name: data, mountPath: /data}]}
          - {name: proxy, image: registry.example.com/proxy:1}
        initContainers: [{name: fetch, image: registry.example.com/fetch:1}]
""",
    "placement": """roles: {worker: {count: 4}, ps: {count: 1}}
placement: {together: zone, spread: host}
on:
  kubernetes:
    namespace: ml
    rbac: none
    apart: [ps]
    priority: high
    shm: 2Gi
    deadline: 12h
    ttl: 1d
    grace: 1m
    labels: {team: ads}
    annotations: {example.com/cost: "7"}
    scrapers: [{namespace: monitoring, labels: {app: prometheus}}, {cidr: 10.0.0.0/24}]
    pod: {spec: {nodeSelector: {pool: train}, tolerations: [{key: pool, operator: Exists}]}}
    roles: {ps: {pod: {spec: {nodeSelector: {pool: memory}}}}}
""",
    "kueue": "roles: {worker: {count: 2}}\non: {kubernetes: {rbac: none, queue: team-a}}\n",
    "kueue-group": "roles: {worker: {count: 3}, ps: {count: 2}}\non: {kubernetes: {rbac: none, queue: team-a}}\n",
    "volcano": "roles: {worker: {count: 2}}\non: {kubernetes: {rbac: none, gang: {scheduler: volcano}, queue: q}}\n",
    "coscheduling": """roles: {worker: {count: 4, min: 2}}
on: {kubernetes: {rbac: none, gang: {scheduler: coscheduling}}}
""",
    "jobset": """roles: {worker: {count: 2}, ps: {}}
on: {kubernetes: {namespace: ml, jobset: on, queue: team-a, ttl: 1h}}
""",
    "unrestricted": "roles: {worker: {count: 2}}\non: {kubernetes: {rbac: none, restricted: off}}\n",
}
#: In place of the agent's zip, which changes with each line of code.
AGENT = b"the agent"


def in_cluster(folder: Path, text: str, **flags: Any) -> InCluster:
    """The job of BASE and `text`, written into the folder."""
    said = {line.partition(":")[0] for line in text.splitlines() if line[:1].strip()}
    base = "".join(f"{line}\n" for line in BASE.splitlines() if line.partition(":")[0] not in said)
    (folder / "job.yaml").write_text(base + text, encoding="utf-8")
    return declare_in_cluster(("job.yaml",), Flags(**flags), cwd=folder)


def made(
    folder: Path, text: str, *, run: str = "digits", agent: bytes = AGENT, key: str | None = None, namespace: str = ""
) -> list[Any]:
    """The objects of that job; `namespace` in place of its own."""
    said = in_cluster(folder, text)
    cluster = dataclasses.replace(said.cluster, namespace=namespace) if namespace else said.cluster
    return list(objects(said.outline, cluster, run=run, agent=agent, key=key))


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
