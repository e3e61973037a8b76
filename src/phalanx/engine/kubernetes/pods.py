"""The pod of one task: what it starts with, what it may do, what it has, and what it finds where."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from phalanx.engine.kubernetes.around import group_marks, placement
from phalanx.engine.kubernetes.names import Names
from phalanx.engine.kubernetes.overlay import laid_over
from phalanx.engine.kubernetes.start import ROOT, agent_line
from phalanx.plan import marks
from phalanx.plan.cluster import Cluster
from phalanx.plan.marks import CONTAINER, ROLE, RUN
from phalanx.plan.outline import Outline, Role
from phalanx.plan.pods import PORT

#: Meshes put a proxy before every port, and TensorFlow's gRPC does not survive it (R47). Labels and annotations:
#: each mesh reads one of the two.
_NO_MESH_LABELS = {"kuma.io/sidecar-injection": "disabled", "sidecar.istio.io/inject": "false"}
_NO_MESH = {
    "consul.hashicorp.com/connect-inject": "false",
    "kuma.io/sidecar-injection": "disabled",
    "linkerd.io/inject": "disabled",
    "sidecar.istio.io/inject": "false",
}
#: What the restricted profile wants of every container.
_CONFINED = {
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
    "readOnlyRootFilesystem": True,
}
_BATCH = "batch.kubernetes.io"
#: Where a pod finds its completion index before its own variables are made.
INDEX = f"metadata.annotations['{marks.INDEX}']"
_GROUP_READS, _ALL_READ = 0o440, 0o444


def labels_of(outline: Outline, cluster: Cluster, names: Names, role: str | None = None) -> dict[str, str]:
    """The labels of an object of the run; `role`: of one that belongs to it alone."""
    return {
        **cluster.labels,
        "app.kubernetes.io/name": outline.name,
        "app.kubernetes.io/instance": names.run,
        "app.kubernetes.io/managed-by": "phalanx",
        RUN: names.run,
        **({"app.kubernetes.io/component": role, ROLE: role} if role else {}),
    }


def agent_pod(
    outline: Outline, cluster: Cluster, names: Names, role: Role, *, pieces: Sequence[str], key: str, leads: bool
) -> dict[str, Any]:
    """The template of a role's pods, with the agent inside.

    `pieces` are the agent's ConfigMaps, `key` is the item of the Secret that holds the run key; `leads`: the first of
    the pods carries the lead.
    """
    account = {"serviceAccountName": names.lead} if leads and cluster.role else {}
    spec = {
        "automountServiceAccountToken": leads and cluster.role,
        **account,
        "volumes": [
            {"name": "agent", "projected": {"sources": [{"configMap": {"name": name}} for name in pieces]}},
            {"name": "run", "configMap": {"name": names.outline}},
            {"name": "key", "secret": _readable(cluster, names.key, [{"key": key, "path": "key"}])},
            {"name": "work", "emptyDir": {}},
            {"name": "runs", "persistentVolumeClaim": {"claimName": cluster.pvc}}
            if cluster.pvc
            else {"name": "runs", "emptyDir": {}},
        ],
    }
    container = {
        "command": ["/bin/sh", "-c", agent_line()],
        "env": [*_identity(names, role), *home(), *secret_variables(cluster)],
        "volumeMounts": [
            {"name": "agent", "mountPath": f"{ROOT}/agent", "readOnly": True},
            {"name": "run", "mountPath": f"{ROOT}/run", "readOnly": True},
            {"name": "key", "mountPath": f"{ROOT}/key", "readOnly": True},
            {"name": "work", "mountPath": f"{ROOT}/work"},
            {"name": "runs", "mountPath": f"{ROOT}/runs"},
        ],
        **({"ports": [{"name": "lead", "containerPort": PORT}]} if leads else {}),
    }
    return template(outline, cluster, names, role, spec=spec, container=container)


def template(
    outline: Outline,
    cluster: Cluster,
    names: Names,
    role: Role,
    *,
    spec: Mapping[str, Any],
    container: Mapping[str, Any],
) -> dict[str, Any]:
    """What the pods of every kind have in common, `spec` and `container` added, the job's own overlays on top."""
    labels, annotations = group_marks(outline, cluster, names)
    ours: dict[str, Any] = {
        "metadata": {
            "labels": {**labels_of(outline, cluster, names, role.type), **_NO_MESH_LABELS, **labels},
            "annotations": {**cluster.annotations, **_NO_MESH, **annotations},
        },
        "spec": {
            "restartPolicy": "Never",
            "subdomain": names.service,
            "terminationGracePeriodSeconds": max(math.ceil(cluster.grace), 1),
            "enableServiceLinks": False,
            "automountServiceAccountToken": False,
            **({"imagePullSecrets": [{"name": one} for one in cluster.pull_secrets]} if cluster.pull_secrets else {}),
            **_security(cluster),
            **placement(outline, cluster, names, role),
            "volumes": [{"name": "tmp", "emptyDir": {}}, *_memory_volumes(cluster, role), *_secret_volumes(cluster)],
            "containers": [
                {
                    "name": CONTAINER,
                    "image": cluster.image,
                    "imagePullPolicy": cluster.pull,
                    **({"workingDir": cluster.folder} if cluster.folder else {}),
                    "resources": _resources(cluster, role),
                    "volumeMounts": [
                        {"name": "tmp", "mountPath": "/tmp"},  # noqa: S108 - the pod's own
                        *_memory_mounts(cluster, role),
                        *_secret_mounts(cluster),
                    ],
                    "terminationMessagePolicy": "FallbackToLogsOnError",
                }
            ],
        },
    }
    added = {"spec": {**spec, "containers": [{"name": CONTAINER, **container}]}}
    made = laid_over(laid_over(laid_over(ours, added), cluster.pod), cluster.pods.get(role.type, {}))
    _beside(made["spec"])
    if cluster.restricted:
        for key in ("containers", "initContainers"):
            for one in made["spec"].get(key, []):
                one["securityContext"] = laid_over(_CONFINED, one.get("securityContext") or {})
    return made


def _beside(spec: dict[str, Any]) -> None:
    """Containers of the job's own end with the task: as plain ones they would keep a pod, and its Job, from ending."""
    others = [one for one in spec["containers"] if one.get("name") != CONTAINER]
    if others:
        spec["containers"] = [one for one in spec["containers"] if one.get("name") == CONTAINER]
        sidecars = [{**one, "restartPolicy": "Always"} for one in others]
        spec["initContainers"] = [*spec.get("initContainers", []), *sidecars]


def account_of(cluster: Cluster, names: Names, role: Role) -> str:
    """The account that the pods of the role run as: what the job lays over, else ours."""
    for over in (cluster.pods.get(role.type, {}), cluster.pod):
        if said := over.get("spec", {}).get("serviceAccountName"):
            return str(said)
    return names.lead


def literal(text: str) -> str:
    """As a value or an argument that Kubernetes leaves alone: it fills in `$(NAME)` itself."""
    return text.replace("$(", "$$(")


def _identity(names: Names, role: Role) -> list[dict[str, Any]]:
    """Who a pod is, and how often its index has been replaced: the downward API gives empty text for what is not."""
    fields = {
        "PHALANX_POD_INDEX": INDEX,
        "PHALANX_POD_FAILED": f"metadata.annotations['{_BATCH}/job-index-failure-count']",
        "PHALANX_POD_IGNORED": f"metadata.annotations['{_BATCH}/job-index-ignored-failure-count']",
        "PHALANX_POD_NAME": "metadata.name",
        "PHALANX_POD_IP": "status.podIP",
        "PHALANX_POD_NODE": "spec.nodeName",
    }
    return [
        {"name": "PHALANX_POD_ROLE", "value": role.type},
        *({"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}} for name, path in fields.items()),
        {"name": "PHALANX_POD_ADDRESS", "value": names.address(role.type, "$(PHALANX_POD_INDEX)")},
    ]


def home() -> list[dict[str, Any]]:
    """Where a user that no image knows may write: Keras and its like look below HOME, getpass looks for USER."""
    return [
        {"name": "HOME", "value": f"{ROOT}/work/home"},
        {"name": "TMPDIR", "value": f"{ROOT}/work/tmp"},
        {"name": "USER", "value": "phalanx"},
    ]


def _security(cluster: Cluster) -> dict[str, Any]:
    if not cluster.restricted:
        return {}
    context: dict[str, Any] = {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}
    if cluster.user is not None:
        context |= {"runAsUser": cluster.user, "runAsGroup": cluster.user, "fsGroup": cluster.user}
        # A volume of millions of files would be walked at each start otherwise.
        context["fsGroupChangePolicy"] = "OnRootMismatch"
    return {"securityContext": context}


def _readable(cluster: Cluster, secret: str, items: list[dict[str, str]]) -> dict[str, Any]:
    """A Secret's volume that the container's user can read: by its group where we know that."""
    owned = cluster.restricted and cluster.user is not None
    return {"secretName": secret, "defaultMode": _GROUP_READS if owned else _ALL_READ, "items": items}


def _resources(cluster: Cluster, role: Role) -> dict[str, Any]:
    """Limits are what is asked for: such pods are evicted last, and one that takes more is told so."""
    asked: dict[str, Any] = {}
    if role.cpus:
        asked["cpu"] = str(role.cpus)
    if role.memory:
        asked["memory"] = quantity(role.memory)
    if role.gpus:
        asked[cluster.gpu] = str(role.gpus)
    asked |= {f"hugepages-{size}": quantity(number) for size, number in cluster.hugepages.items()}
    return {"requests": dict(asked), "limits": dict(asked)} if asked else {}


def quantity(number: int) -> str:
    """Bytes in the largest binary unit that divides them."""
    for unit, power in (("Gi", 3), ("Mi", 2), ("Ki", 1)):
        if number and number % 1024**power == 0:
            return f"{number // 1024**power}{unit}"
    return str(number)


def _memory_volumes(cluster: Cluster, role: Role) -> list[dict[str, Any]]:
    volumes: list[dict[str, Any]] = []
    if cluster.shm is not None or role.gpus:
        limit = {"sizeLimit": quantity(cluster.shm)} if cluster.shm is not None else {}
        volumes.append({"name": "shm", "emptyDir": {"medium": "Memory", **limit}})
    volumes += [
        {"name": f"hugepages-{size.lower()}", "emptyDir": {"medium": f"HugePages-{size}"}} for size in cluster.hugepages
    ]
    return volumes


def _memory_mounts(cluster: Cluster, role: Role) -> list[dict[str, Any]]:
    mounts: list[dict[str, Any]] = []
    if cluster.shm is not None or role.gpus:
        mounts.append({"name": "shm", "mountPath": "/dev/shm"})  # noqa: S108 - the pod's own
    return mounts + [
        {"name": f"hugepages-{size.lower()}", "mountPath": f"/hugepages-{size}"} for size in cluster.hugepages
    ]


def secret_variables(cluster: Cluster) -> list[dict[str, Any]]:
    """Values of Secrets as variables: the manifest names them, and holds none."""
    return [
        {"name": one.env, "valueFrom": {"secretKeyRef": {"name": one.secret, "key": one.key}}}
        for one in cluster.secrets
        if one.env
    ]


def _secret_volumes(cluster: Cluster) -> list[dict[str, Any]]:
    return [
        {"name": f"secret-{number}", "secret": _readable(cluster, one.secret, [{"key": one.key, "path": "value"}])}
        for number, one in enumerate(cluster.secrets)
        if one.path
    ]


def _secret_mounts(cluster: Cluster) -> list[dict[str, Any]]:
    return [
        {"name": f"secret-{number}", "mountPath": one.path, "subPath": "value", "readOnly": True}
        for number, one in enumerate(cluster.secrets)
        if one.path
    ]
