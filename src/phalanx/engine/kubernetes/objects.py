"""Outline and cluster → all objects of a run, in the order in which they are applied. Pure.

The run key is in a Secret and nowhere else. A client makes a random one. Rendered files must hold none and yet be all
that is needed: there the Secret is one that Kubernetes itself fills, with the token of an account that may do nothing,
and the run key is that token's hash (`RunKey.of`).
"""

from __future__ import annotations

import base64
import dataclasses
import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

from phalanx.engine.kubernetes import access
from phalanx.engine.kubernetes.around import QUEUE, is_kueue_group, pod_group
from phalanx.engine.kubernetes.names import Names, check
from phalanx.engine.kubernetes.pods import account_of, agent_pod, labels_of
from phalanx.errors import InputError
from phalanx.plan.cluster import Cluster
from phalanx.plan.marks import CONTAINER, RUN
from phalanx.plan.outline import Outline, Role
from phalanx.plan.pods import FINAL, PORT, pod_sets
from phalanx.plan.size import elastic_of
from phalanx.plan.wire import to_wire

Manifest = dict[str, Any]

#: Bytes of the agent in one ConfigMap: `kubectl apply` writes an object into one of its own annotations, in base64,
#: and those are 256 KiB at most.
PIECE = 180_000
#: Bytes of an outline, for the same reason.
_OUTLINE = 200_000

#: Failed pods of one index before its Job fails. The lead's own budget ends a run earlier; this is for a lead that
#: never comes up.
_FEWEST_TRIES = 20
#: Seconds that objects of a run that a client has started stay after its end.
TTL = 86_400
#: Hosts that may lead next.
_LINE = 5


def in_host_order(outline: Outline) -> tuple[Role, ...]:
    """The roles as their pods are numbered: first the one whose pod 0 carries the lead."""
    return tuple(outline.role(pods.role) for pods in pod_sets(outline))


def objects(
    outline: Outline,
    cluster: Cluster,
    *,
    run: str,
    agent: bytes,
    key: str | None = None,
    own_key: bool = False,
    imports: Mapping[str, Sequence[str]] | None = None,
) -> tuple[Manifest, ...]:
    """Every manifest of a run. Raises InputError where a name does not fit, or an object would be too large.

    `agent`: the agent's zip. `key`: the run key in hex, None where nobody is there to make one (rendered files): then
    Kubernetes makes it, or with `own_key` somebody makes the Secret by hand. `imports`: by role, the imports its script
    begins with, which a standby may do before it knows which task it is.
    """
    names = Names(run=run, jobset=cluster.jobset)
    check(names, outline)
    if key is not None and cluster.ttl is None:
        cluster = dataclasses.replace(cluster, ttl=float(TTL))
    pieces = [agent[at : at + PIECE] for at in range(0, len(agent), PIECE)] or [b""]
    made = [
        *_accounts(outline, cluster, names),
        *([] if own_key else _key(names, key)),
        *((_piece(number, piece), names.agent(number)) for number, piece in enumerate(pieces)),
        (_outline_map(outline, pod_facts(outline, cluster, names, imports or {})), names.outline),
        *(((_report(), names.report),) if cluster.role else ()),
        *_network(cluster, names),
    ]
    group = pod_group(outline, cluster)
    if group is not None:
        made.append((group, run))
    manifests = [named(one, name, outline, cluster, names) for one, name in made]
    jobs = _jobs(outline, cluster, names, pieces=len(pieces), key="key" if key is not None or own_key else "token")
    return (*manifests, *jobs)


def _jobs(outline: Outline, cluster: Cluster, names: Names, *, pieces: int, key: str) -> list[Manifest]:
    parts = [names.agent(number) for number in range(pieces)]
    jobs = []
    for number, role in enumerate(in_host_order(outline)):
        leads = number == 0
        pod = agent_pod(outline, cluster, names, role, pieces=parts, key=key, leads=leads)
        spec = job_spec(outline, cluster, role, pod, leads=leads)
        jobs.append((role.type, spec))
    return grouped(outline, cluster, names, jobs)


def grouped(
    outline: Outline, cluster: Cluster, names: Names, jobs: Sequence[tuple[str, dict[str, Any]]]
) -> list[Manifest]:
    """The Jobs of all roles, the lead's first: each by itself, or as one JobSet."""
    waits = cluster.kueue is not None and not is_kueue_group(outline, cluster)
    queue = {QUEUE: cluster.kueue} if cluster.kueue is not None and waits else {}
    suspended = {"suspend": True} if waits else {}
    if not cluster.jobset:
        made = []
        for role, spec in jobs:
            job = {"apiVersion": "batch/v1", "kind": "Job", "spec": {**suspended, **spec}}
            made.append(named(job, names.job(role), outline, cluster, names, role=role, labels=queue))
        return made
    ttl = {"ttlSecondsAfterFinished": int(cluster.ttl)} if cluster.ttl is not None else {}
    spec = {
        **suspended,
        "network": {"enableDNSHostnames": True, "publishNotReadyAddresses": True, "subdomain": names.service},
        "successPolicy": {"operator": "All", "targetReplicatedJobs": [jobs[0][0]]},
        "failurePolicy": {"maxRestarts": 0},
        **ttl,
        "replicatedJobs": [
            {
                "name": role,
                "replicas": 1,
                "template": {
                    "metadata": {"labels": labels_of(outline, cluster, names, role)},
                    "spec": {key: value for key, value in of.items() if key != "ttlSecondsAfterFinished"},
                },
            }
            for role, of in jobs
        ],
    }
    jobset = {"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "spec": spec}
    return [named(jobset, names.run, outline, cluster, names, labels=queue)]


def job_spec(outline: Outline, cluster: Cluster, role: Role, pod: Mapping[str, Any], *, leads: bool) -> dict[str, Any]:
    """One role's Job: its completion index is the number of a host of that role, and a lost pod's index comes again."""
    elastic = elastic_of(outline) if role.type == "worker" else None
    spec: dict[str, Any] = {
        "completions": role.count,
        "parallelism": role.count,
        "completionMode": "Indexed",
        "backoffLimitPerIndex": max(_FEWEST_TRIES, 2 * outline.policies.restart.max),
        **_replacement(cluster),
    }
    if elastic is None or elastic.fewest == elastic.most:
        # One host that cannot be had is the end; an elastic group goes on without it.
        spec["maxFailedIndexes"] = 0
    if leads:
        # Whose exit 0 it is that makes the run a success, whatever is being replaced beside it.
        spec["successPolicy"] = {"rules": [{"succeededIndexes": "0"}]}
    if cluster.deadline is not None:
        spec["activeDeadlineSeconds"] = max(math.ceil(cluster.deadline), 1)
    if cluster.ttl is not None:
        spec["ttlSecondsAfterFinished"] = int(cluster.ttl)
    return spec | {"template": dict(pod)}


def _replacement(cluster: Cluster) -> dict[str, Any]:
    """Which pods are replaced, and when.

    The API takes a policy on exit codes only for Jobs that wait until the pod before is surely gone, and that of a
    lost node never is. So where the lead may end its Jobs itself, there is none: a pod is replaced as soon as it is
    being deleted. Where it may not, codes after which another pod would change nothing end the Job.
    """
    if cluster.role and not cluster.jobset:
        return {"podReplacementPolicy": "TerminatingOrFailed"}
    final = {"containerName": CONTAINER, "operator": "In", "values": list(FINAL)}
    rules = [
        {"action": "FailJob", "onExitCodes": final},
        {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]},
    ]
    return {"podReplacementPolicy": "Failed", "podFailurePolicy": {"rules": rules}}


def _accounts(outline: Outline, cluster: Cluster, names: Names) -> list[tuple[Manifest, str]]:
    if not cluster.role:
        return []
    roles = in_host_order(outline)
    account = account_of(cluster, names, roles[0])
    jobs = [names.job(role.type) for role in roles]
    own = [(access.account(), names.lead)] if account == names.lead else []
    return [
        *own,
        (access.role(access.lead_rules(names, jobs, scales=not cluster.jobset)), names.lead),
        (access.binding(names.lead, account, cluster.namespace), names.lead),
    ]


def _key(names: Names, key: str | None) -> list[tuple[Manifest, str]]:
    if key is not None:
        data = {"key": base64.b64encode(key.encode()).decode()}
        secret = {"apiVersion": "v1", "kind": "Secret", "type": "Opaque", "immutable": True, "data": data}
        return [(secret, names.key)]
    filled = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"annotations": {"kubernetes.io/service-account.name": names.key}},
        "type": "kubernetes.io/service-account-token",
    }
    return [(access.account(), names.key), (filled, names.key)]


def _piece(number: int, piece: bytes) -> Manifest:
    data = {f"agent.{number:02d}": base64.b64encode(piece).decode()}
    return {"apiVersion": "v1", "kind": "ConfigMap", "immutable": True, "binaryData": data}


def _outline_map(outline: Outline, facts: Mapping[str, Any]) -> Manifest:
    data = {"outline.json": _json(to_wire(outline)), "pod.json": _json(facts)}
    size = sum(map(len, data.values()))
    if size > _OUTLINE:
        raise InputError(
            f"commands and env of this job are {size // 1000} kB, and a ConfigMap that `kubectl apply` takes holds "
            f"{_OUTLINE // 1000}",
            hint="keep long values in a file of the image",
        )
    return {"apiVersion": "v1", "kind": "ConfigMap", "immutable": True, "data": data}


def pod_facts(outline: Outline, cluster: Cluster, names: Names, imports: Mapping[str, Sequence[str]]) -> dict[str, Any]:
    """What a pod must know beside the outline: pod.json."""
    sets = pod_sets(outline)
    line = [names.address(pods.role, index) for pods in sets for index in range(min(pods.count, _LINE + 1))]
    return {
        "run": names.run,
        "roles": [[pods.role, pods.first, pods.most] for pods in sets],
        "lead": line[0],
        "port": PORT,
        "line": line[1 : _LINE + 1],
        "shared": cluster.pvc is not None,
        "secrets": {one.env or one.name: one.path for one in cluster.secrets},
        "grace": cluster.grace,
        "imports": {role: list(lines) for role, lines in imports.items() if lines},
    }


def _report() -> Manifest:
    """Empty: the lead may then change it by name, and needs no right to make any."""
    return {"apiVersion": "v1", "kind": "ConfigMap"}


def _network(cluster: Cluster, names: Names) -> list[tuple[Manifest, str]]:
    made = [] if cluster.jobset else [(service(names, port=PORT), names.service)]
    return [*made, (access.policy(cluster, names), names.run)]


def service(names: Names, *, port: int) -> Manifest:
    """The headless Service, which gives each pod its name: also while it starts, long before it could be ready."""
    spec = {
        "clusterIP": "None",
        "publishNotReadyAddresses": True,
        "selector": {RUN: names.run},
        "ports": [{"name": "grpc" if port != PORT else "lead", "port": port, "targetPort": port}],
    }
    return {"apiVersion": "v1", "kind": "Service", "spec": spec}


def named(
    manifest: Manifest,
    name: str,
    outline: Outline,
    cluster: Cluster,
    names: Names,
    *,
    role: str | None = None,
    labels: Mapping[str, str] | None = None,
) -> Manifest:
    """With name, namespace, labels and annotations, in the order in which people read a manifest."""
    annotations = {**cluster.annotations, **manifest.get("metadata", {}).get("annotations", {})}
    metadata: dict[str, Any] = {
        "name": name,
        **({"namespace": cluster.namespace} if cluster.namespace else {}),
        "labels": {**labels_of(outline, cluster, names, role), **(labels or {})},
        **({"annotations": annotations} if annotations else {}),
    }
    head = {"apiVersion": manifest["apiVersion"], "kind": manifest["kind"], "metadata": metadata}
    return head | {key: value for key, value in manifest.items() if key not in head}


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
