"""What stands around a pod: which nodes it may go to, beside whom, and who schedules it."""

from __future__ import annotations

from typing import Any

from phalanx.engine.kubernetes.names import Names
from phalanx.names import TRAINING_TYPES
from phalanx.plan.cluster import Cluster
from phalanx.plan.marks import ROLE, RUN
from phalanx.plan.outline import Outline, Role

_HOST = "kubernetes.io/hostname"
#: Seconds for which a pod stays bound to a node that is not heard of; by itself Kubernetes waits for five minutes.
_LOST = 10
#: Volcano's scheduler reads the first, its controller the second.
_VOLCANO = ("scheduling.k8s.io/group-name", "scheduling.volcano.sh/group-name")
_KUEUE = "kueue.x-k8s.io"
#: The label of what Kueue is to admit.
QUEUE = f"{_KUEUE}/queue-name"
_COSCHEDULING = "scheduling.x-k8s.io/pod-group"


def placement(outline: Outline, cluster: Cluster, names: Names, role: Role) -> dict[str, Any]:
    """The parts of a pod's spec that say where it goes."""
    spec: dict[str, Any] = {}
    affinity: dict[str, Any] = {}
    if cluster.together:
        affinity["podAffinity"] = _required(cluster.together, {"matchLabels": {RUN: names.run}})
    if role.type in cluster.apart:
        trains = [one.type for one in outline.roles if one.type in TRAINING_TYPES]
        others = {
            "matchLabels": {RUN: names.run},
            "matchExpressions": [{"key": ROLE, "operator": "In", "values": trains}],
        }
        affinity["podAntiAffinity"] = _required(_HOST, others)
    if affinity:
        spec["affinity"] = affinity
    if cluster.spread:
        spec["topologySpreadConstraints"] = [
            {
                "maxSkew": 1,
                "topologyKey": cluster.spread,
                "whenUnsatisfiable": "DoNotSchedule",
                # Nodes that no pod of the run may use are no place to spread to.
                "nodeTaintsPolicy": "Honor",
                "labelSelector": {"matchLabels": {RUN: names.run, ROLE: role.type}},
            }
        ]
    if cluster.priority:
        spec["priorityClassName"] = cluster.priority
    if cluster.gang:
        spec["schedulerName"] = cluster.gang.scheduler
    # Nodes with GPUs are commonly kept free of pods that ask for none.
    gpu = [{"key": cluster.gpu, "operator": "Exists", "effect": "NoSchedule"}] if role.gpus else []
    spec["tolerations"] = [*gpu, *_lost_nodes(cluster, role)]
    return spec


def _lost_nodes(cluster: Cluster, role: Role) -> list[dict[str, Any]]:
    """How long a pod stays bound to a node that is not heard of; what the job says itself of that counts."""
    said = []
    for over in (cluster.pod, cluster.pods.get(role.type, {})):
        given = (over.get("spec") or {}).get("tolerations")
        said += [one.get("key") for one in given if isinstance(one, dict)] if isinstance(given, list) else []
    return [
        {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": _LOST}
        for key in ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
        if key not in said
    ]


def is_kueue_group(outline: Outline, cluster: Cluster) -> bool:
    """Whether the pods of several Jobs are one pod group of Kueue; one Job, or one JobSet, it admits whole."""
    return cluster.kueue is not None and not cluster.jobset and len(outline.roles) > 1


def group_marks(outline: Outline, cluster: Cluster, names: Names) -> tuple[dict[str, str], dict[str, str]]:
    """The labels and annotations by which whoever starts all or none knows a pod's group."""
    if cluster.kueue is not None and is_kueue_group(outline, cluster):
        total = str(sum(role.count for role in outline.roles))
        return {QUEUE: cluster.kueue, f"{_KUEUE}/pod-group-name": names.run}, {f"{_KUEUE}/pod-group-total-count": total}
    if cluster.gang is None:
        return {}, {}
    if cluster.gang.kind == "volcano":
        return {}, dict.fromkeys(_VOLCANO, names.run)
    return {_COSCHEDULING: names.run}, {}


def pod_group(outline: Outline, cluster: Cluster) -> dict[str, Any] | None:
    """The PodGroup: as many pods as the run can begin with, or none of them."""
    if cluster.gang is None:
        return None
    fewest = sum(role.min or role.count for role in outline.roles)
    if cluster.gang.kind == "volcano":
        spec: dict[str, Any] = {"minMember": fewest}
        if cluster.queue:
            spec["queue"] = cluster.queue
        if cluster.priority:
            spec["priorityClassName"] = cluster.priority
        return {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "PodGroup", "spec": spec}
    spec = {"minMember": fewest, "scheduleTimeoutSeconds": max(int(outline.policies.health.start), 1)}
    return {"apiVersion": "scheduling.x-k8s.io/v1alpha1", "kind": "PodGroup", "spec": spec}


def _required(key: str, pods: dict[str, Any]) -> dict[str, Any]:
    return {"requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": key, "labelSelector": pods}]}
