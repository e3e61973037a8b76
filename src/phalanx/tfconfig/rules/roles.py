"""Rules about who is in the cluster: which types, how many of each, and what the strategy makes of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from phalanx.names import KNOWN_TYPES, TRAINING_TYPES
from phalanx.tfconfig.finding import Severity
from phalanx.tfconfig.quote import shown
from phalanx.tfconfig.rule import Case, Hit, Rule
from phalanx.tfconfig.spelling import guess_type
from phalanx.tfconfig.tolerant import escape

#: The first TensorFlow that reads the sparse form from JSON, whose keys are texts (R12).
SPARSE_SINCE = (2, 6)


def _at(kind: str) -> str:
    return f"/cluster/{escape(kind)}"


def _has(case: Case, kind: str) -> bool:
    """Whether the cluster has an address of that type, under its own name or one that stands for it."""
    jobs = case.cluster.jobs if case.cluster else {}
    return any(of and (name == kind or stands_for(name) == kind) for name, of in jobs.items())


def stands_for(name: str) -> str | None:
    """The known task type that a name stands for; None for a known type and for one like none."""
    meant = guess_type(name)
    return meant.word if meant else None


def _master(case: Case) -> Iterator[Hit]:
    if "master" in case.jobs:
        yield Hit(_at("master"), key=True)
    if case.type == "master":
        yield Hit("/task/type", "this is a master, which TensorFlow 2 knows only as chief")


def _unknown(case: Case) -> Iterator[Hit]:
    for kind in case.jobs:
        if kind not in KNOWN_TYPES and kind != "master":
            yield _unknown_hit(kind, _at(kind), key=True)
    if case.type is not None and case.type not in KNOWN_TYPES and case.type != "master":
        yield _unknown_hit(case.type, "/task/type", key=False)


def _unknown_hit(kind: str, pointer: str, *, key: bool) -> Hit:
    meant = stands_for(kind)
    message = f"{shown(kind, 40)} is no task type of TensorFlow" + (f'; did you mean "{meant}"?' if meant else "")
    beside = "take it out of the cluster: an extra role is started beside it"
    fix = f'write "{meant}", on all nodes alike' if meant else beside
    return Hit(pointer, message, fix, key=key)


def _several(kind: str) -> Callable[[Case], Iterator[Hit]]:
    def find(case: Case) -> Iterator[Hit]:
        of = case.cluster.jobs.get(kind, {}) if case.cluster else {}
        if len(of) > 1:
            yield Hit(_at(kind), f"the cluster has {len(of)} of {kind}; TensorFlow allows one", key=True)

    return find


def _nobody_trains(case: Case) -> Iterator[Hit]:
    if case.cluster is not None and case.type != "evaluator" and not any(_has(case, kind) for kind in TRAINING_TYPES):
        yield Hit("/cluster", key=True)


def _ps_in_mwms(case: Case) -> Iterator[Hit]:
    of = case.cluster.jobs.get("ps") if case.cluster else None
    if of:
        yield Hit(_at("ps"), key=True)


def _empty_leader(case: Case) -> Iterator[Hit]:
    for kind in ("ps", "chief"):
        if case.jobs.get(kind) in ([], {}):
            yield Hit(_at(kind), f"{kind} is there and empty, and TensorFlow looks for its leader in it", key=True)


def _needs(kind: str, why: str) -> Callable[[Case], Iterator[Hit]]:
    """A type that the strategy cannot do without. A sparse cluster shows only a part of the types."""

    def find(case: Case) -> Iterator[Hit]:
        if case.cluster is not None and not case.cluster.sparse and not _has(case, kind):
            yield Hit("/cluster", f"the cluster has no {kind}: {why}", key=True)

    return find


def _sparse(case: Case) -> Iterator[str]:
    """Types written as an object of indices."""
    return (kind for kind, listed in case.jobs.items() if isinstance(listed, dict) and listed)


def _gaps(case: Case, kind: str) -> bool:
    of = case.cluster.jobs.get(kind, {}) if case.cluster else {}
    return bool(of) and max(of) != len(of) - 1


def _sparse_gaps(case: Case) -> Iterator[Hit]:
    for kind in _sparse(case):
        if _gaps(case, kind):
            yield Hit(_at(kind), f"{kind} is written as an object with gaps in its indices", key=True)


def _sparse_told(case: Case) -> Iterator[Hit]:
    for kind in _sparse(case):
        if case.strategy == "ps" or not _gaps(case, kind):
            version = ".".join(map(str, SPARSE_SINCE))
            message = f"{kind} is written as an object of indices (the sparse form), which wants TensorFlow {version}"
            yield Hit(_at(kind), message, key=True)


def _sparse_version(case: Case) -> Iterator[Hit]:
    if case.tf_version is not None and case.tf_version < SPARSE_SINCE:
        for kind in _sparse(case):
            has = ".".join(map(str, case.tf_version))
            yield Hit(_at(kind), f"{kind} is written in the sparse form, which TensorFlow {has} cannot read", key=True)


def _single(case: Case) -> Iterator[Hit]:
    jobs = case.cluster.jobs if case.cluster else {}
    if sum(map(len, jobs.values())) == 1 and any(jobs.get(kind) for kind in TRAINING_TYPES):
        yield Hit("/cluster", key=True)


_CHECKS = "tensorflow/python/distribute/multi_worker_util.py"
_ALL_ALIKE = "on all nodes alike"

RULES = (
    Rule(
        id="master-job",
        severity=Severity.ERROR,
        message="master is the chief in an older dialect, which TensorFlow 2 does not know.",
        find=_master,
        consequence="ValueError: Disallowed task type found in cluster spec.",
        fix=f'write "chief", {_ALL_ALIKE}',
        source=f"R06; R98; measured on TensorFlow 2.21; {_CHECKS}",
        strategies=("mwms", "ps"),
    ),
    Rule(
        id="master-job-estimator",
        severity=Severity.WARNING,
        message="master is the chief in an older dialect, which only tf.estimator still knows.",
        find=_master,
        consequence="tf.estimator takes it for the chief; every other strategy refuses it.",
        fix=f'write "chief", {_ALL_ALIKE}',
        source="R06; R98; tensorflow_estimator/python/estimator/run_config.py",
        strategies=("estimator",),
    ),
    Rule(
        id="unknown-type",
        severity=Severity.ERROR,
        message="A task type that TensorFlow does not know.",
        find=_unknown,
        consequence="ValueError: Disallowed task type found in cluster spec, or Unrecognized task_type.",
        source=f"R08; R96; measured on TensorFlow 2.21; {_CHECKS}",
    ),
    Rule(
        id="several-chiefs",
        severity=Severity.ERROR,
        message="The cluster has more than one chief.",
        find=_several("chief"),
        consequence="ValueError: There must be at most one 'chief' job.",
        fix="keep one chief and list the others as worker",
        source=f"R98; measured on TensorFlow 2.21; {_CHECKS}",
    ),
    Rule(
        id="several-evaluators",
        severity=Severity.ERROR,
        message="The cluster has more than one evaluator.",
        find=_several("evaluator"),
        consequence="ValueError: There must be at most one 'evaluator' job.",
        fix="keep one evaluator",
        source=f"R98; {_CHECKS}",
    ),
    Rule(
        id="nobody-trains",
        severity=Severity.ERROR,
        message="The cluster has neither a chief nor a worker.",
        find=_nobody_trains,
        consequence="ValueError or AssertionError: TensorFlow looks for a leader and finds none.",
        fix='list the trainers under "worker"',
        source=f"{_CHECKS}, collective_leader",
        strategies=("mwms",),
    ),
    Rule(
        id="ps-in-mwms",
        severity=Severity.ERROR,
        message="MultiWorkerMirroredStrategy has no parameter servers, and the cluster lists some.",
        find=_ps_in_mwms,
        consequence="A silent hang: TensorFlow takes ps:0 for the leader, and nobody serves there.",
        fix="take ps out of the cluster, or use ParameterServerStrategy (--strategy ps)",
        source=f"measured on TensorFlow 2.21; {_CHECKS}, coordination_leader",
        strategies=("mwms",),
    ),
    Rule(
        id="empty-leader",
        severity=Severity.ERROR,
        message="An empty ps or chief: TensorFlow looks for its leader in it.",
        find=_empty_leader,
        consequence="TensorFlow 2.21 dies of SIGSEGV when MultiWorkerMirroredStrategy is made.",
        fix="leave the empty type out",
        source=f"measured on TensorFlow 2.21; {_CHECKS}, collective_leader",
        strategies=("mwms",),
    ),
    Rule(
        id="ps-needs-chief",
        severity=Severity.ERROR,
        message="ParameterServerStrategy needs a chief.",
        find=_needs("chief", "nobody coordinates"),
        consequence="No process hands out the steps: workers and ps wait for ever.",
        fix=f'list one chief, {_ALL_ALIKE}: "chief": ["host:port"]',
        source="R10; measured on TensorFlow 2.21",
        strategies=("ps",),
    ),
    Rule(
        id="ps-needs-ps",
        severity=Severity.ERROR,
        message="ParameterServerStrategy needs a ps.",
        find=_needs("ps", "nobody holds the variables"),
        consequence="ValueError: There must be at least one ps.",
        fix="list at least one ps, or use MultiWorkerMirroredStrategy (--strategy mwms)",
        source="R10; tensorflow/python/distribute/parameter_server_strategy_v2.py",
        strategies=("ps",),
    ),
    Rule(
        id="ps-needs-worker",
        severity=Severity.ERROR,
        message="ParameterServerStrategy needs a worker.",
        find=_needs("worker", "nobody trains"),
        consequence="ValueError: There must be at least one worker.",
        fix='list at least one address under "worker"',
        source="R10; tensorflow/python/distribute/parameter_server_strategy_v2.py",
        strategies=("ps",),
    ),
    Rule(
        id="estimator-needs-chief",
        severity=Severity.ERROR,
        message="tf.estimator needs a chief.",
        find=_needs("chief", "tf.estimator wants exactly one"),
        consequence='ValueError: If "cluster" is set in TF_CONFIG, it must have one "chief" node.',
        fix=f"list worker 0 as the chief, {_ALL_ALIKE}",
        source="R10; tensorflow_estimator/python/estimator/run_config.py",
        strategies=("estimator",),
    ),
    Rule(
        id="sparse-gaps",
        severity=Severity.ERROR,
        message="A task type is written in the sparse form and has gaps, where every task must see every other.",
        find=_sparse_gaps,
        consequence="The lowest task hangs in silence, the others get: The task_id … exceeds the maximum id.",
        fix="write the full list of addresses on every node",
        source="R12; measured on TensorFlow 2.21; tensorflow/tensorflow#14502",
        strategies=("mwms", "estimator"),
    ),
    Rule(
        id="sparse-version",
        severity=Severity.ERROR,
        message="The sparse form is newer than this TensorFlow.",
        find=_sparse_version,
        consequence="TypeError or KeyError: indices stay texts.",
        fix="write lists, or use a newer TensorFlow",
        source="R12; tensorflow/tensorflow#48065",
    ),
    Rule(
        id="sparse-form",
        severity=Severity.INFO,
        message="A task type is written in the sparse form.",
        find=_sparse_told,
        consequence="TensorFlow reads it as the list of these indices; with ParameterServerStrategy gaps are fine.",
        source="R12; tensorflow/python/training/server_lib.py, ClusterSpec",
    ),
    Rule(
        id="single-task",
        severity=Severity.INFO,
        message="The cluster has one task: a job of one needs no TF_CONFIG.",
        find=_single,
        consequence="It trains alone, as it would without TF_CONFIG.",
        fix="unset TF_CONFIG, unless the script reads it",
        source="R26; R27; measured on TensorFlow 2.21",
        strategies=("mwms",),
    ),
    Rule(
        id="single-task-estimator",
        severity=Severity.WARNING,
        message="The cluster has one task: tf.estimator runs otherwise than without TF_CONFIG.",
        find=_single,
        consequence="tf.estimator takes it for a cluster and runs otherwise than it would locally.",
        fix="unset TF_CONFIG for a job of one",
        source="R26",
        strategies=("estimator",),
    ),
)
