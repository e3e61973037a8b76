"""Plain pods: TF_CONFIG and no agent, for images without a Python for it and for people who want nothing inside.

The cluster is fixed, so one file for each role holds all of TF_CONFIG but the task, which a pod knows by its index.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from phalanx.engine.kubernetes import access
from phalanx.engine.kubernetes.around import pod_group
from phalanx.engine.kubernetes.names import Names, check
from phalanx.engine.kubernetes.objects import Manifest, grouped, in_host_order, named, service
from phalanx.engine.kubernetes.pods import INDEX, home, literal, secret_variables, template
from phalanx.engine.kubernetes.start import ROOT, static_line
from phalanx.errors import InputError
from phalanx.names import KNOWN_TYPES, TaskId, join_host_port
from phalanx.plan import own
from phalanx.plan.bind import serves
from phalanx.plan.cluster import Cluster
from phalanx.plan.outline import Outline, Role, Strategy
from phalanx.tfconfig.bodies import Bodies
from phalanx.tfconfig.model import Cluster as TfCluster

#: Every task has a pod to itself, and with it all ports.
PORT = 2222
#: Bytes that Linux takes for one variable.
_VARIABLE = 131_072

#: What nobody does where there is no agent and no lead.
LOST = (
    "nobody waits for all tasks before the first starts, and nobody gives up: a pod that never comes holds all others",
    "no preflight: versions, folders and names are not compared before TensorFlow starts",
    "nobody names the culprit: a failure or a hang is seen in the pods' own logs, if at all",
    "nothing is restarted as a group: with MultiWorkerMirroredStrategy one lost pod ends the run",
    "the size is fixed: no scale, no going on with fewer",
    "parameter servers and an evaluator go on after the end: delete the run",
    "no records, no report, no metrics, no progress; values of secrets are not masked in logs",
    "no saving before a node is drained, unless the script handles TERM itself",
    "Keras 3's fit is not mended, and no thread or core settings are made",
)


def static_objects(outline: Outline, cluster: Cluster, *, run: str) -> tuple[Manifest, ...]:
    """Every manifest of a run without an agent. Raises InputError where names or TF_CONFIG do not fit."""
    names = Names(run=run, jobset=cluster.jobset)
    check(names, outline)
    heads = _heads(outline, names)
    files = {text: role for role, text in reversed(heads.items())}  # all roles see one cluster, but for R03
    data = {**{name: text for text, name in files.items()}, **_programs(outline)}
    shared = {role: files[text] for role, text in heads.items()}
    made: list[tuple[Manifest, str]] = []
    if data:
        config = {"apiVersion": "v1", "kind": "ConfigMap", "immutable": True, "data": data}
        made.append((config, names.cluster))
    if not cluster.jobset:
        made.append((service(names, port=PORT), names.service))
    made.append((access.policy(cluster, names), names.run))
    if (group := pod_group(outline, cluster)) is not None:
        made.append((group, run))
    jobs = [
        (role.type, _job(outline, cluster, names, role, shared.get(role.type), leads=number == 0))
        for number, role in enumerate(in_host_order(outline))
    ]
    manifests = [named(one, name, outline, cluster, names) for one, name in made]
    return (*manifests, *grouped(outline, cluster, names, jobs))


def _heads(outline: Outline, names: Names) -> dict[str, str]:
    """By role: the text of TF_CONFIG up to the task."""
    if outline.strategy is Strategy.NONE or (outline.is_alone() and not outline.force_tf_config):
        return {}
    jobs = {
        role.type: [join_host_port(names.address(role.type, index), PORT) for index in range(role.count)]
        for role in outline.roles
        if role.in_cluster
    }
    bodies = Bodies(TfCluster.dense(jobs), strategy=outline.strategy.value)
    heads = {role.type: bodies.of(TaskId(role.type, 0)).head for role in outline.roles if role.type in KNOWN_TYPES}
    largest = max(map(len, heads.values()))
    if largest > _VARIABLE - len('{"type":"evaluator","index":100000}}'):
        raise InputError(
            f"TF_CONFIG of {len(outline.tasks())} tasks is {largest // 1000} kB, and Linux takes 131 for one variable",
            hint="a shorter name makes every address in it shorter: --name",
        )
    return heads


def _programs(outline: Outline) -> dict[str, str]:
    """Our own programs that some role runs: without an agent they come as files."""
    if any(own.SERVER in role.command for role in outline.roles):
        return {"server.py": Path(*own.found_here([own.SERVER])).read_text(encoding="utf-8")}
    return {}


def _job(
    outline: Outline, cluster: Cluster, names: Names, role: Role, config: str | None, *, leads: bool
) -> dict[str, Any]:
    """`config`: the file of the beginning of its TF_CONFIG; None where it gets none."""
    mounted = config is not None or own.SERVER in role.command
    spec = {
        "volumes": [
            {"name": "work", "emptyDir": {}},
            *([{"name": "cluster", "configMap": {"name": names.cluster}}] if mounted else []),
        ]
    }
    container = {
        "command": ["/bin/sh", "-c", static_line(role.type, config), "phalanx"],
        "args": [_word(word, outline, names, role) for word in role.command],
        "env": [
            {"name": "PHALANX_POD_INDEX", "valueFrom": {"fieldRef": {"fieldPath": INDEX}}},
            *home(),
            *({"name": name, "value": _word(value, outline, names, role)} for name, value in role.env.items()),
            *secret_variables(cluster),
        ],
        "volumeMounts": [
            {"name": "work", "mountPath": f"{ROOT}/work"},
            *([{"name": "cluster", "mountPath": f"{ROOT}/cluster", "readOnly": True}] if mounted else []),
        ],
        **({"ports": [{"name": "tensorflow", "containerPort": PORT}]} if serves(outline, role) else {}),
    }
    # A worker of ParameterServerStrategy and an evaluator may come back at their address; of all others one is all.
    again = role.type == "evaluator" or (outline.strategy is Strategy.PS and role.type == "worker")
    job: dict[str, Any] = {"completions": role.count, "parallelism": role.count, "completionMode": "Indexed"}
    job["backoffLimitPerIndex"] = outline.policies.restart.max if again else 0
    job["maxFailedIndexes"] = 0
    if leads:
        job["successPolicy"] = {"rules": [{"succeededIndexes": "0"}]}
    if cluster.deadline is not None:
        job["activeDeadlineSeconds"] = max(int(cluster.deadline), 1)
    if cluster.ttl is not None:
        job["ttlSecondsAfterFinished"] = int(cluster.ttl)
    return job | {"template": template(outline, cluster, names, role, spec=spec, container=container)}


def _word(text: str, outline: Outline, names: Names, role: Role) -> str:
    """With its placeholders filled in, as a word that Kubernetes passes on."""
    task_dir = f"{ROOT}/work/{role.type}_$(PHALANX_POD_INDEX)"
    filled = literal(text).replace("{run}", names.run).replace("{generation}", "1").replace("{task_dir}", task_dir)
    filled = filled.replace(own.SERVER, f"{ROOT}/cluster/server.py")
    return filled.replace("{checkpoint}", outline.checkpoint) if outline.checkpoint else filled
