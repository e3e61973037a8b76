"""Pods, Jobs and events as the API of Kubernetes 1.34 writes them."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

RUN = "ctr-1130-120000"


def pod(
    name: str = "worker-0",
    *,
    phase: str = "Running",
    state: Mapping[str, Any] | None = None,
    node: str = "node-1",
    run: str = RUN,
    **status: Any,
) -> dict[str, Any]:
    """One pod of a run: `name` is ROLE-INDEX; `state` is that of its container."""
    role, _, index = name.rpartition("-")
    running = {"running": {"startedAt": "2026-11-30T12:00:05Z"}}
    found: dict[str, Any] = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": f"{run}-{name}-x7k2p",
            "namespace": "ml",
            "uid": f"uid-{run}-{name}",
            "resourceVersion": "100",
            "creationTimestamp": "2026-11-30T12:00:00Z",
            "labels": {
                "phalanx/run": run,
                "phalanx/role": role,
                "batch.kubernetes.io/job-completion-index": index,
                "batch.kubernetes.io/job-name": f"{run}-{role}",
            },
            "annotations": {"batch.kubernetes.io/job-completion-index": index},
        },
        "spec": {
            "nodeName": node,
            "containers": [
                {"name": "task", "image": "registry.example.com/ctr:1", "resources": {"limits": {"memory": "2Gi"}}}
            ],
        },
        "status": {
            "phase": phase,
            "podIP": "10.0.0.7",
            "containerStatuses": [
                {
                    "name": "task",
                    "ready": phase == "Running" and (state is None or "running" in state),
                    "restartCount": 0,
                    "image": "registry.example.com/ctr:1",
                    "imageID": "registry.example.com/ctr@sha256:5f6a",
                    "state": dict(state if state is not None else running),
                }
            ],
        },
    }
    found["status"].update(copy.deepcopy(status))
    if phase == "Pending" and state is None:
        del found["status"]["containerStatuses"]
    return found


def ended(code: int, reason: str = "Error", message: str = "") -> dict[str, Any]:
    """The state of a container that has ended."""
    return {
        "terminated": {
            "exitCode": code,
            "reason": reason,
            "startedAt": "2026-11-30T12:00:05Z",
            "finishedAt": "2026-11-30T12:01:05Z",
            **({"message": message} if message else {}),
        }
    }


def waiting(reason: str, message: str = "") -> dict[str, Any]:
    """The state of a container that waits."""
    return {"waiting": {"reason": reason, **({"message": message} if message else {})}}


def condition(kind: str, reason: str, message: str = "", *, status: str = "True") -> dict[str, Any]:
    """One condition of a pod or a Job."""
    return {"type": kind, "status": status, "reason": reason, "message": message}


def event(about: Mapping[str, Any], reason: str, message: str, *, last: str = "2026-11-30T12:00:09Z") -> dict[str, Any]:
    """An event about an object."""
    meta = about["metadata"]
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": f"{meta['name']}.{reason.lower()}", "namespace": "ml", "resourceVersion": "101"},
        "involvedObject": {"kind": about["kind"], "name": meta["name"], "namespace": "ml", "uid": meta["uid"]},
        "reason": reason,
        "message": message,
        "lastTimestamp": last,
        "type": "Warning",
    }


def job(
    role: str = "worker", *, run: str = RUN, parallelism: int = 2, suspend: bool = False, **status: Any
) -> dict[str, Any]:
    """One role's Job."""
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "name": f"{run}-{role}",
            "namespace": "ml",
            "uid": f"uid-{run}-{role}",
            "resourceVersion": "90",
            "labels": {"phalanx/run": run, "phalanx/role": role},
        },
        "spec": {"parallelism": parallelism, "completions": parallelism, "suspend": suspend},
        "status": dict(status),
    }
