"""Rules about who this is: a type and an index that the cluster has."""

from __future__ import annotations

from collections.abc import Iterator

from phalanx.names import KNOWN_TYPES, an
from phalanx.tfconfig.finding import Severity
from phalanx.tfconfig.rule import Case, Hit, Rule
from phalanx.tfconfig.rules.keys import mistyped, mistyped_in_task


def _meant(case: Case, word: str) -> bool:
    """Whether a mistyped top-level key stands for `word`: that rule speaks already."""
    return any(guess.word == word for guess in mistyped(case.top).values())


def _missing(case: Case) -> Iterator[Hit]:
    if case.cluster is not None and "task" not in case.top and not _meant(case, "task"):
        yield Hit()


def _member_missing(case: Case, key: str) -> Iterator[Hit]:
    typos = {guess.word for guess in mistyped_in_task(case.written_task or {}).values()}
    if case.written_task is not None and key not in case.written_task and key not in typos and case.cluster is not None:
        yield Hit("/task")


def _type_missing(case: Case) -> Iterator[Hit]:
    return _member_missing(case, "type")


def _index_missing(case: Case) -> Iterator[Hit]:
    return _member_missing(case, "index")


def _without_cluster(case: Case) -> Iterator[Hit]:
    empty = "cluster" not in case.top or case.top["cluster"] == {}
    if "task" in case.top and empty and not _meant(case, "cluster"):
        who = f": this says it is {case.task}" if case.task and case.type in KNOWN_TYPES else ""
        yield Hit("/task", f"there is a task and no cluster{who}")


def _negative(case: Case) -> Iterator[Hit]:
    if case.task is not None and case.task.index < 0:
        yield Hit("/task/index", f"the index is {case.task.index}")


def _range(case: Case) -> Iterator[Hit]:
    task, cluster = case.task, case.cluster
    if task is None or cluster is None or task.type not in cluster.jobs or task.index < 0:
        return
    of = cluster.jobs[task.type]
    if task.index in of:
        return
    if not of:
        message = f"{task} is not in the cluster: {task.type} has no address"
    elif task.type in cluster.sparse:
        has = ", ".join(str(i) for i in list(of)[:8]) + (", …" if len(of) > 8 else "")  # noqa: PLR2004 - enough to see
        message = f"{task} is not in the cluster: {task.type} has the indices {has}"
    else:
        message = f"{task} is not in the cluster: {task.type} has {len(of)}, so the index goes from 0 to {len(of) - 1}"
    yield Hit("/task/index", message)


def _not_in_cluster(case: Case) -> Iterator[Hit]:
    kind, cluster = case.type, case.cluster
    if kind not in KNOWN_TYPES or kind == "evaluator" or cluster is None or kind in cluster.jobs:
        return
    message = f"this is {an(kind)}, and the cluster has none"
    if kind == "chief" and cluster.chief is not None:
        message += f"; where no chief is listed {cluster.chief} is the chief"
        fix = 'write {"type": "worker", "index": 0} there, or list the chief on all nodes alike'
        yield Hit("/task/type", message, fix)
    else:
        yield Hit("/task/type", message)


_BOTH = "ValueError: When `cluster_spec` is given, you must also specify `task_type` and `task_id`."
_CHECKS = "tensorflow/python/distribute/multi_worker_util.py, _validate_cluster_spec"

RULES = (
    Rule(
        id="task-missing",
        severity=Severity.ERROR,
        message="There is a cluster and no task: nobody knows which member this is.",
        find=_missing,
        consequence=_BOTH,
        fix='add "task": {"type": "worker", "index": 0}, with its own index on each node',
        source="R28; measured on TensorFlow 2.21",
    ),
    Rule(
        id="task-type-missing",
        severity=Severity.ERROR,
        message="The task has no type.",
        find=_type_missing,
        consequence=_BOTH,
        fix='add "type": "worker"',
        source="R28; measured on TensorFlow 2.21",
    ),
    Rule(
        id="task-index-missing",
        severity=Severity.ERROR,
        message="The task has no index.",
        find=_index_missing,
        consequence=_BOTH,
        fix='add "index": 0, with its own number on each node',
        source="R28; measured on TensorFlow 2.21",
    ),
    Rule(
        id="task-without-cluster",
        severity=Severity.ERROR,
        message="There is a task and no cluster.",
        find=_without_cluster,
        consequence="TensorFlow trains alone, as one replica, and says nothing.",
        fix="add the cluster; to train alone, unset TF_CONFIG",
        source="measured on TensorFlow 2.21",
    ),
    Rule(
        id="index-negative",
        severity=Severity.ERROR,
        message="The index is below 0.",
        find=_negative,
        consequence="InvalidArgumentError: Invalid device filter; older versions abort.",
        fix="count from 0",
        source="R14; measured on TensorFlow 2.21",
    ),
    Rule(
        id="index-range",
        severity=Severity.ERROR,
        message="The cluster has no task of that index.",
        find=_range,
        consequence="ValueError: The `task_id` … exceeds the maximum id of ….",
        fix="give the index that this node's address has in the list, counted from 0",
        source=f"R13; measured on TensorFlow 2.21; {_CHECKS}",
    ),
    Rule(
        id="task-not-in-cluster",
        severity=Severity.ERROR,
        message="The cluster has no task of that type.",
        find=_not_in_cluster,
        consequence="ValueError: `task_type` … not found in cluster_spec.",
        fix="list this node's address under its type on all nodes alike",
        source=f"R09; measured on TensorFlow 2.21; {_CHECKS}",
    ),
)
