"""Rules about types: where an object, a list, a text or a number is wanted and something else stands."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

from phalanx.tfconfig.finding import Severity
from phalanx.tfconfig.meaning import MAX_INDEX, number
from phalanx.tfconfig.quote import brief, shown
from phalanx.tfconfig.rule import Case, Hit, Rule
from phalanx.tfconfig.tolerant import escape

_JSON = {dict: "an object", list: "a list", str: "a text", bool: "true or false", int: "a number", float: "a number"}


def what(value: Any) -> str:
    """The kind of a JSON value in words, never the value itself."""
    return "null" if value is None else _JSON.get(type(value), "a value")


def _not_object(case: Case) -> Iterator[Hit]:
    value = case.document.value
    if not isinstance(value, dict) and _inner(value) is None:
        yield Hit(message=f"this is {what(value)}, not an object with cluster and task")


def _inner(value: Any) -> dict[str, Any] | None:
    """The object that a text holds as JSON; None where it holds none."""
    if not isinstance(value, str):
        return None
    try:
        inner = json.loads(value)
    except (ValueError, RecursionError):
        return None
    return inner if isinstance(inner, dict) else None


def _double_encoded(case: Case) -> Iterator[Hit]:
    if _inner(case.document.value) is not None:
        yield Hit()


def _cluster(case: Case) -> Iterator[Hit]:
    if "cluster" in case.top and not isinstance(case.top["cluster"], dict):
        yield Hit("/cluster", f"cluster is {what(case.top['cluster'])}, not an object from task types to addresses")


def _jobs(case: Case) -> Iterator[tuple[str, str, Any]]:
    """Type, pointer and what is listed."""
    for kind, listed in case.jobs.items():
        yield kind, f"/cluster/{escape(kind)}", listed


def _job_string(case: Case) -> Iterator[Hit]:
    for kind, pointer, listed in _jobs(case):
        if isinstance(listed, str) and listed.strip():
            yield Hit(pointer, f"the addresses of {kind} are one text, not a list of texts")


def _job_empty_string(case: Case) -> Iterator[Hit]:
    for kind, pointer, listed in _jobs(case):
        if isinstance(listed, str) and not listed.strip():
            yield Hit(pointer, f"the addresses of {kind} are an empty text", f"leave {kind} out")


def _job_shape(case: Case) -> Iterator[Hit]:
    for kind, pointer, listed in _jobs(case):
        if not isinstance(listed, dict | list | str):
            yield Hit(pointer, f"the addresses of {kind} are {what(listed)}, not a list of texts")


def _job_empty(case: Case) -> Iterator[Hit]:
    for kind, pointer, listed in _jobs(case):
        if isinstance(listed, dict | list) and not listed:
            yield Hit(pointer, f"{kind} is there and has no address", f"leave {kind} out")


def _items(case: Case) -> Iterator[tuple[str, str, str, Any]]:
    """Type, the index as written, pointer and item of everything that stands where an address should."""
    for kind, pointer, listed in _jobs(case):
        if isinstance(listed, list):
            for index, item in enumerate(listed):
                if not isinstance(item, str):
                    yield kind, str(index), f"{pointer}/{index}", item
        elif isinstance(listed, dict):
            for index, item in listed.items():
                yield kind, index, f"{pointer}/{escape(index)}", item


def _address_type(case: Case) -> Iterator[Hit]:
    for kind, index, pointer, item in _items(case):
        if not isinstance(item, str):
            yield Hit(pointer, f"the address of {kind}:{brief(index, 20)} is {what(item)}, not a text")


def _sparse_index(case: Case) -> Iterator[Hit]:
    for kind, pointer, listed in _jobs(case):
        if not isinstance(listed, dict):
            continue
        seen: dict[int, str] = {}
        for key in listed:
            index = number(key)
            at = f"{pointer}/{escape(key)}"
            if index is None or not 0 <= index <= MAX_INDEX:
                yield Hit(at, f"{shown(key, 40)} is no index of {kind}", key=True)
            elif index in seen:
                yield Hit(at, f"{shown(key, 40)} is the same index of {kind} as {shown(seen[index], 40)}", key=True)
            seen.setdefault(index if index is not None else -1, key)


def _task(case: Case) -> Iterator[Hit]:
    if "task" in case.top and case.written_task is None:
        task = case.top["task"]
        yield Hit("/task", f'task is {what(task)}, not an object such as {{"type": "worker", "index": 0}}')


def _in_task(key: str, wrong: Callable[[Any], str | None]) -> Callable[[Case], Iterator[Hit]]:
    """Ask `wrong` about one member of the task."""

    def find(case: Case) -> Iterator[Hit]:
        task = case.written_task or {}
        if key in task and (message := wrong(task[key])):
            yield Hit(f"/task/{key}", message)

    return find


def _type_shape(value: Any) -> str | None:
    return None if isinstance(value, str) else f"the task's type is {what(value)}, not a text"


def _index_string(value: Any) -> str | None:
    return "the index is a text, not a number" if isinstance(value, str) and number(value) is not None else None


def _index_float(value: Any) -> str | None:
    return "the index is written with a decimal point" if isinstance(value, float) else None


def _index_type(value: Any) -> str | None:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return None
    return None if isinstance(value, str) and number(value) is not None else f"the index is {what(value)}, not a number"


_LISTS = '"worker": ["host:port", "host:port"]'
_NO_LIST = "TypeError: The tasks for job … must be a list or a dictionary from integers to strings."
_SPEC = "tensorflow/python/training/server_lib.py, ClusterSpec"
_RESOLVER = "tensorflow/python/distribute/cluster_resolver/tfconfig_cluster_resolver.py"

RULES = (
    Rule(
        id="not-object",
        severity=Severity.ERROR,
        message="TF_CONFIG is no JSON object.",
        find=_not_object,
        consequence="With a list or a text TensorFlow trains alone and says nothing; a number or null is a TypeError.",
        fix='write {"cluster": {…}, "task": {…}}, or unset TF_CONFIG to train alone',
        source="measured on TensorFlow 2.21",
    ),
    Rule(
        id="double-encoded",
        severity=Severity.ERROR,
        message="TF_CONFIG is JSON inside a JSON text: encoded twice.",
        find=_double_encoded,
        consequence='TensorFlow looks for "cluster" in the text itself: it trains alone or raises TypeError.',
        fix="encode it once",
        source="measured on TensorFlow 2.21",
    ),
    Rule(
        id="cluster-shape",
        severity=Severity.ERROR,
        message="cluster is no object.",
        find=_cluster,
        consequence="TypeError: `cluster` must be a dictionary mapping one or more job names to lists.",
        fix=f"write {{{_LISTS}}}",
        source=f"measured on TensorFlow 2.21; {_SPEC}",
    ),
    Rule(
        id="job-string",
        severity=Severity.ERROR,
        message="The addresses of a task type are one text, not a list.",
        find=_job_string,
        consequence=_NO_LIST,
        fix=f"write a list: {_LISTS}",
        source=f"R18; {_SPEC}",
    ),
    Rule(
        id="job-empty-string",
        severity=Severity.ERROR,
        message="The addresses of a task type are an empty text.",
        find=_job_empty_string,
        consequence=_NO_LIST,
        source=f"R18; {_SPEC}",
    ),
    Rule(
        id="job-shape",
        severity=Severity.ERROR,
        message="The addresses of a task type are no list.",
        find=_job_shape,
        consequence=_NO_LIST,
        fix=f"write a list ({_LISTS}), or leave the type out",
        source=f"R18; measured on TensorFlow 2.21; {_SPEC}",
    ),
    Rule(
        id="job-empty",
        severity=Severity.WARNING,
        message="A task type has no address.",
        find=_job_empty,
        consequence="TensorFlow counts the type as present.",
        source="measured on TensorFlow 2.21",
    ),
    Rule(
        id="address-type",
        severity=Severity.ERROR,
        message="An address is no text.",
        find=_address_type,
        consequence="TypeError: Task address … must be bytes or unicode.",
        fix='write "host:port"',
        source=f"measured on TensorFlow 2.21; {_SPEC}",
    ),
    Rule(
        id="sparse-index",
        severity=Severity.ERROR,
        message="A key of the sparse form is no index, or one that is there already.",
        find=_sparse_index,
        consequence="ValueError from int(), or one address replaces the other in silence.",
        fix=f'write indices from "0" to "{MAX_INDEX}", each once',
        source=f"R12; {_SPEC}",
    ),
    Rule(
        id="task-shape",
        severity=Severity.ERROR,
        message="task is no object.",
        find=_task,
        consequence="TypeError, or as if there were no task.",
        fix='write {"type": "worker", "index": 0}',
        source=f"R28; {_RESOLVER}",
    ),
    Rule(
        id="task-type-shape",
        severity=Severity.ERROR,
        message="The task's type is no text.",
        find=_in_task("type", _type_shape),
        consequence="ValueError: Unrecognized task_type.",
        fix='write "worker", "chief", "ps" or "evaluator"',
        source=f"R28; {_RESOLVER}",
    ),
    Rule(
        id="index-string",
        severity=Severity.WARNING,
        message="The index is a text.",
        find=_in_task("index", _index_string),
        consequence="TensorFlow 2 takes it through int(); tf.estimator and other readers of TF_CONFIG refuse it.",
        fix="write the number without quotes",
        source="R04; measured on TensorFlow 2.21",
    ),
    Rule(
        id="index-float",
        severity=Severity.ERROR,
        message="The index is written with a decimal point.",
        find=_in_task("index", _index_float),
        consequence="TensorFlow cuts it through int() and says nothing; tf.estimator and other readers refuse it.",
        fix="write a whole number",
        source="measured on TensorFlow 2.21",
    ),
    Rule(
        id="index-type",
        severity=Severity.ERROR,
        message="The index is no number.",
        find=_in_task("index", _index_type),
        consequence="TypeError or ValueError from int(); true counts as 1.",
        fix="write a whole number from 0 on",
        source=f"measured on TensorFlow 2.21; {_RESOLVER}",
    ),
)
