"""What a TF_CONFIG means, in plain words: who leads, who trains, who waits for whom, what starts where."""

from __future__ import annotations

import dataclasses
import json
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from phalanx.names import KNOWN_TYPES, TaskId
from phalanx.tfconfig.address import read
from phalanx.tfconfig.check import STRATEGIES, check, infer
from phalanx.tfconfig.finding import Severity
from phalanx.tfconfig.model import Cluster, TfConfig
from phalanx.tfconfig.parse import Parsed, parse
from phalanx.tfconfig.quote import brief

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

#: What each strategy is called when people read about it.
_NAMES: Mapping[str, str] = MappingProxyType(
    {
        "mwms": "MultiWorkerMirroredStrategy",
        "ps": "ParameterServerStrategy (V2)",
        "estimator": "tf.estimator.train_and_evaluate",
    }
)

#: Up to this many tasks are named one by one; more are told as a range.
NAMED = 8

#: Characters of a strange task type, and of an address, that are shown.
_TYPE = 40
_ADDRESS = 300

#: Keys that vendors and older TensorFlows write beside `cluster` and `task` (R04, R98).
_KEY_DIALECTS = {
    "environment": "`environment` is written by Kubeflow's TFJob and Google's AI Platform; TensorFlow 2 ignores it.",
    "job": "`job` is the job's description that Google's AI Platform adds; TensorFlow ignores it.",
    "trial": "`trial` is the number of a tuning trial that Google's AI Platform adds; TensorFlow ignores it.",
    "rpc_layer": "`rpc_layer` names the transport; TensorFlow has `grpc` and no other.",
    "session_master": "`session_master` is TensorFlow 1: it replaces the address that a session connects to.",
    "sparseCluster": "`sparseCluster` is what Kubeflow's TFJob wrote for dynamic workers; TensorFlow never reads it.",
}

#: Task types of other dialects (R06, R08, R98).
_TYPE_DIALECTS = {
    "master": "`master` is the chief in the dialect of Google's AI Platform; TensorFlow 2 knows it only as `chief`.",
    "ps_hosts": "`ps_hosts` is a flag of TensorFlow 1 programs; in TF_CONFIG the type is `ps`.",
    "worker_hosts": "`worker_hosts` is a flag of TensorFlow 1 programs; in TF_CONFIG the type is `worker`.",
}


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Member:
    """A task, its address as written (secrets masked), and the port of it where that can be told."""

    task: TaskId
    address: str
    port: int | None


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Host:
    """What starts on one host, in training order."""

    name: str
    members: tuple[Member, ...]


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Verdict:
    """Whether a strategy accepts this TF_CONFIG; `why` holds a reason for each no."""

    strategy: str
    accepts: bool
    why: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Explanation:
    """One TF_CONFIG explained, in words that may be shown: see `quote`.

    `strategy` is the one the words are about (what `auto` came to), `replicas` the tasks that train, in the order of
    their ranks, `counts` the tasks of each type, `waits` who waits for whom, `hosts` what starts where.
    """

    config: TfConfig
    strategy: str
    chief: TaskId | None
    replicas: tuple[TaskId, ...]
    counts: Mapping[str, int]
    training: tuple[str, ...]
    waits: tuple[str, ...]
    hosts: tuple[Host, ...]
    verdicts: tuple[Verdict, ...]
    evaluator: str
    notes: tuple[str, ...]

    def sections(self) -> Iterator[tuple[str, tuple[str, ...]]]:
        """Title and sentences, in reading order; empty sections are left out."""
        yield "Who trains", self.training
        yield "Who waits for whom", self.waits
        yield "What starts where", tuple(self._starts())
        yield "Which strategies accept it", tuple(self._accepted())
        if self.evaluator:
            yield "The evaluator", (self.evaluator,)
        if self.notes:
            yield "Notes", self.notes

    def to_json(self) -> dict[str, Any]:
        """The same as data, for `phalanx explain --json`."""
        return {
            "strategy": self.strategy,
            "task": str(self.config.task) if self.config.task else None,
            "chief": str(self.chief) if self.chief else None,
            "replicas": [str(task) for task in self.replicas],
            "counts": dict(self.counts),
            "training": list(self.training),
            "waits": list(self.waits),
            "hosts": {host.name: {str(m.task): m.address for m in host.members} for host in self.hosts},
            "strategies": {v.strategy: {"accepts": v.accepts, "why": list(v.why)} for v in self.verdicts},
            "evaluator": self.evaluator,
            "notes": list(self.notes),
        }

    def _accepted(self) -> Iterator[str]:
        """What every strategy refuses is said once."""
        common = [why for why in self.verdicts[0].why if all(why in verdict.why for verdict in self.verdicts)]
        if common:
            yield f"None, because of this: {'; '.join(common)}"
        for verdict in self.verdicts:
            own = [why for why in verdict.why if why not in common]
            yes = "nothing else against it" if common else "yes"
            yield f"{_NAMES[verdict.strategy]}: {'no: ' + '; '.join(own) if own else yes}"

    def _starts(self) -> Iterator[str]:
        shown = self.hosts if len(self.hosts) <= NAMED else (*self.hosts[: NAMED - 2], self.hosts[-1])
        for host in shown:
            yield f"{host.name}: {spell([m.task for m in host.members])}"
        if len(shown) < len(self.hosts):
            yield f"and {len(self.hosts) - len(shown):,} more hosts"
        if not self.hosts:
            yield "one process, wherever you start it"


def explain(config: TfConfig, *, strategy: str = "auto", tf_version: str | None = None) -> Explanation:
    """Say what TensorFlow makes of `config`.

    `strategy` is auto, mwms, ps or estimator, `tf_version` such as `2.21`; InputError for others, as `check` raises it.
    What is wrong with a config appears as the reasons why a strategy refuses it.
    """
    parsed = parse(json.dumps(config.to_json()))
    config = _tame(config)
    cluster = config.cluster or Cluster(jobs={})
    meant = infer(parsed) if strategy == "auto" else strategy
    replicas = tuple(t for t in cluster.replicas() if not (meant == "ps" and t.type == "chief"))
    return Explanation(
        config=config,
        strategy=meant,
        chief=cluster.chief,
        replicas=replicas,
        counts={kind: len(of) for kind, of in cluster.jobs.items()},
        training=tuple(_training(cluster, replicas, meant)),
        waits=tuple(_waits(cluster, replicas, meant)),
        hosts=_hosts(cluster),
        verdicts=_verdicts(parsed, tf_version),
        evaluator=_evaluator(config, cluster, meant),
        notes=tuple(_notes(config, cluster)),
    )


def spell(tasks: Sequence[TaskId]) -> str:
    """`chief:0, worker:0, worker:1`; a run of more than eight of a type as `worker:0 to worker:9998`."""
    parts: list[str] = []
    kinds: dict[str, list[TaskId]] = {}
    for task in tasks:
        kinds.setdefault(task.type, []).append(task)
    for of in kinds.values():
        parts += [str(t) for t in of] if len(of) <= NAMED else [f"{of[0]} to {of[-1]} ({len(of):,} tasks)"]
    return ", ".join(parts)


def _tame(config: TfConfig) -> TfConfig:
    """The config with task types that may be shown: strange ones cut, without secrets and control characters."""
    cluster, task = config.cluster, config.task
    if cluster is not None and not cluster.jobs.keys() <= {*KNOWN_TYPES}:
        names = {kind: brief(kind, _TYPE) for kind in cluster.jobs}
        jobs = {names[kind]: of for kind, of in cluster.jobs.items()}
        cluster = Cluster(jobs=jobs, sparse=frozenset(names[kind] for kind in cluster.sparse))
    if task is not None:
        task = TaskId(brief(task.type, _TYPE), task.index)
    return dataclasses.replace(config, cluster=cluster, task=task)


def _count(n: int, noun: str) -> str:
    return f"{n} {noun}" if n == 1 else f"{n:,} {noun}s"


def _servers(cluster: Cluster) -> str:
    n = len(cluster.jobs.get("ps", {}))
    return f"{_count(n, 'parameter server')} {'holds' if n == 1 else 'hold'} the variables."


def _training(cluster: Cluster, replicas: tuple[TaskId, ...], strategy: str) -> Iterator[str]:
    """R22: how chief and worker counts combine."""
    if not cluster.jobs:
        yield "No cluster: TensorFlow trains alone, as 1 replica, and says nothing about it."
        return
    if strategy == "ps":
        trains = "trains" if len(replicas) == 1 else "train, each at its own pace"
        yield f"{_count(len(replicas), 'worker')} {trains}: {spell(replicas) or 'none'}."
        if cluster.jobs.get("chief"):
            yield f"{cluster.chief} coordinates: it runs the script, hands out the steps and does not train itself."
        else:
            yield "Nobody coordinates: ParameterServerStrategy needs a chief."
        yield _servers(cluster)
        return
    ranks = (
        ", ".join(f"{task} is rank {rank}" for rank, task in enumerate(replicas))
        if len(replicas) <= NAMED
        else f"{spell(replicas)} are ranks 0 to {len(replicas) - 1:,}"
    )
    yield f"{_count(len(replicas), 'training replica')}: {ranks or 'none'}."
    if cluster.chief is not None:
        why = "" if cluster.chief.type == "chief" else ", for the cluster names no chief"
        yield f"{cluster.chief} is the chief{why}: it saves the model and writes the summaries."
    if strategy == "estimator" and cluster.jobs.get("ps"):
        yield _servers(cluster)


def _waits(cluster: Cluster, replicas: tuple[TaskId, ...], strategy: str) -> Iterator[str]:
    """How each strategy behaves, measured on TensorFlow 2.21 (facts 1-4)."""
    ps = bool(cluster.jobs.get("ps"))
    if strategy == "ps":
        coordinator = "chief:0" if cluster.jobs.get("chief") else "the chief, once there is one,"
        yield f"At the start {coordinator} waits for every worker and ps, silently and for ever."
        yield "Workers and ps wait for its orders and never end by themselves: whoever started them has to stop them."
        yield "When a worker dies the others go on; when a ps dies the chief fails."
    elif strategy == "estimator":
        yield f"The workers wait for {cluster.chief or 'the chief'} to make the variables."
        if ps:
            yield "Every worker waits for every ps; ps never end by themselves."
    elif ps:
        yield "Everybody waits for ps:0, which TensorFlow takes for the leader here; it never answers: a silent hang."
    elif len(replicas) > 1:
        yield f"At the start all {len(replicas):,} wait for each other, silently and for up to an hour."
        yield f"{replicas[0]} leads: the others join through it, so it is best started first."
        yield "At each step all wait for the slowest; when one ends, the others fail."
    else:
        yield "Nobody waits for anybody."


def _hosts(cluster: Cluster) -> tuple[Host, ...]:
    hosts: dict[str, list[Member]] = {}
    names: dict[str, str] = {}
    for task in cluster.tasks():
        text = cluster.jobs[task.type][task.index]
        address = read(text)
        host = address.host or text
        names.setdefault(host, brief(host, _ADDRESS))
        hosts.setdefault(host, []).append(Member(task=task, address=brief(text, _ADDRESS), port=address.port))
    return tuple(Host(name=names[host], members=tuple(members)) for host, members in hosts.items())


def _verdicts(parsed: Parsed, tf_version: str | None) -> tuple[Verdict, ...]:
    """The rules of `check` decide, so that the two verbs never disagree."""
    verdicts = []
    for strategy in STRATEGIES:
        found = check(parsed, strategy=strategy, tf_version=tf_version)
        why = tuple(dict.fromkeys(f.message.rstrip(".") for f in found if f.severity is Severity.ERROR))
        if strategy == "ps" and parsed.case.cluster is None:
            why = (*why, "it has no cluster to coordinate")  # ValueError: Cluster spec must be non-empty
        verdicts.append(Verdict(strategy=strategy, accepts=not why, why=why))
    return tuple(verdicts)


def _evaluator(config: TfConfig, cluster: Cluster, strategy: str) -> str:
    """R01-R03: each document says something else about the evaluator."""
    listed, own = bool(cluster.jobs.get("evaluator")), config.task is not None and config.task.type == "evaluator"
    if not listed and not own:
        return ""
    role = (
        "It scores checkpoints as they appear in the shared folder; nobody waits for it, and it does not end by itself."
    )
    if strategy == "ps":
        place = (
            "In the cluster it makes the chief wait for ever, as it runs no server: leave it out of `cluster`."
            if listed
            else "It stands outside the cluster, as ParameterServerStrategy wants."
        )
    elif strategy == "estimator":
        place = "The evaluator's own TF_CONFIG must list it; the others do not need to."
    elif listed:
        place = "It is no replica; the same script there would train a copy of its own, so branch on the task type."
    else:
        place = "It makes no strategy: MultiWorkerMirroredStrategy fails there with KeyError: 'evaluator'."
    return f"{role} {place}"


def _notes(config: TfConfig, cluster: Cluster) -> Iterator[str]:
    """R12, R98: which dialect this is."""
    yield from (text for key, text in _KEY_DIALECTS.items() if key in config.extra)
    yield from (text for kind, text in _TYPE_DIALECTS.items() if kind in cluster.jobs)
    for kind in ("chief", "evaluator"):
        if len(cluster.jobs.get(kind, {})) > 1:
            yield f"Several of `{kind}` are a dialect of some cloud services; TensorFlow allows one."
    for kind in sorted(cluster.sparse):
        gaps = max(cluster.jobs[kind], default=0) >= len(cluster.jobs[kind])
        only = "with gaps, which only ParameterServerStrategy takes" if gaps else "read like the list of them"
        yield f"`{kind}` is written as an object of indices (the sparse form), {only}."
