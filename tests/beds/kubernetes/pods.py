"""Objects that the tests of the cluster itself run: Indexed Jobs as phalanx makes them, of a few lines of Python."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from beds.kubernetes.cluster import IMAGE, until

if TYPE_CHECKING:
    from beds.kubernetes.cluster import Cluster

#: What the `restricted` profile asks of a container.
RESTRICTED: dict[str, Any] = {
    "allowPrivilegeEscalation": False,
    "readOnlyRootFilesystem": True,
    "capabilities": {"drop": ["ALL"]},
}
#: Sleeps until it is told to end, as a task that heeds TERM does.
WAITS = "import signal, sys\nsignal.signal(15, lambda *_: sys.exit(143))\nprint('up', flush=True)\nsignal.pause()\n"


def pod(script: str, **more: Any) -> dict[str, Any]:
    """The spec of a restricted pod that runs a Python script in the container `task`."""
    task = {
        "name": "task",
        "image": IMAGE,
        "command": ["python3", "-u", "-c", script],
        "securityContext": RESTRICTED,
        "resources": {"requests": {"cpu": "50m"}, "limits": {"memory": "256Mi"}},
        **more.pop("task", {}),
    }
    return {
        "restartPolicy": "Never",
        "terminationGracePeriodSeconds": 5,
        "securityContext": {"runAsNonRoot": True, "runAsUser": 65532, "seccompProfile": {"type": "RuntimeDefault"}},
        "automountServiceAccountToken": False,
        "containers": [task],
        **more,
    }


def job(name: str, count: int, script: str, **more: Any) -> dict[str, Any]:
    """An Indexed Job, one pod a node, whose pods have the names NAME-i.NAME."""
    spread = {
        "maxSkew": 1,
        "topologyKey": "kubernetes.io/hostname",
        "whenUnsatisfiable": "ScheduleAnyway",
        "labelSelector": {"matchLabels": {"job-name": name}},
    }
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name},
        "spec": {
            "completions": count,
            "parallelism": count,
            "completionMode": "Indexed",
            "backoffLimitPerIndex": 10,
            "podReplacementPolicy": "Failed",
            "podFailurePolicy": {
                "rules": [{"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}]
            },
            "template": {"spec": pod(script, subdomain=name, topologySpreadConstraints=[spread], **more)},
        },
    }


def service(name: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name},
        "spec": {"clusterIP": "None", "publishNotReadyAddresses": True, "selector": {"job-name": name}},
    }


def running(cluster: Cluster, name: str, index: int, *, namespace: str, other: str = "") -> dict[str, Any]:
    """The pod of an index once it runs; another one than that with the uid `other`."""

    def look() -> dict[str, Any] | None:
        labels = f"job-name={name},batch.kubernetes.io/job-completion-index={index}"
        for found in cluster.list("pods", namespace=namespace, labels=labels):
            told = found["status"].get("containerStatuses", [])
            if found["metadata"]["uid"] != other and any("running" in container["state"] for container in told):
                return found
        return None

    found: dict[str, Any] = until(look, f"pod {name}-{index}", seconds=120)
    return found


def ended(cluster: Cluster, name: str, *, namespace: str) -> str:
    """The phase in which a pod ends."""
    return str(
        until(
            lambda: (
                (phase := cluster.get("pod", name, namespace=namespace)["status"].get("phase"))
                in {"Succeeded", "Failed"}
                and phase
            ),
            f"the end of pod {name}",
        )
    )
