"""Rules about the keys beside `cluster` and `task`, and inside `task`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any

from phalanx.tfconfig.finding import Severity
from phalanx.tfconfig.quote import shown
from phalanx.tfconfig.rule import Case, Hit, Rule
from phalanx.tfconfig.rules.shape import what
from phalanx.tfconfig.spelling import TASK, TOP, Guess, guess
from phalanx.tfconfig.tolerant import escape

#: Keys that TensorFlow or a service writes; none of them is a mistyped `cluster` or `task` (R04, R98).
_OWN_RULE = frozenset({"rpc_layer", "session_master"})
_VENDOR = MappingProxyType(
    {
        "environment": "Kubeflow's TFJob and Google's AI Platform write it",
        "job": "Google's AI Platform writes it",
        "trial": "Google's AI Platform writes it",
        "master": "TensorFlow 1 wrote it",
        "model_dir": "tf.estimator reads it",
        "service": "tf.estimator reads it",
        "session_config": "tf.estimator reads it",
    }
)
#: What services write inside `task`.
_VENDOR_TASK = frozenset({"type", "index", "trial", "cloud", "environment"})


def mistyped(top: Mapping[str, Any]) -> dict[str, Guess]:
    """Top-level keys that stand for `cluster` or `task` where the right one is missing."""
    known = {*TOP, *_VENDOR, *_OWN_RULE}
    return _stand_ins(top, {key: guess(key, TOP) for key in top if key not in known})


def mistyped_in_task(task: Mapping[str, Any]) -> dict[str, Guess]:
    """Keys of the task that stand for `type` or `index` where the right one is missing."""
    return _stand_ins(task, {key: guess(key, TASK) for key in task if key not in _VENDOR_TASK})


def _stand_ins(written: Mapping[str, Any], guesses: Mapping[str, Guess | None]) -> dict[str, Guess]:
    return {key: meant for key, meant in guesses.items() if meant is not None and meant.word not in written}


def _top_typo(case: Case) -> Iterator[Hit]:
    for key, meant in mistyped(case.top).items():
        message = f'{shown(key, 40)} is no key that TensorFlow reads; did you mean "{meant.word}"?'
        yield Hit(f"/{escape(key)}", message, f'write "{meant.word}"', key=True)


def _task_typo(case: Case) -> Iterator[Hit]:
    for key, meant in mistyped_in_task(case.written_task or {}).items():
        message = f'{shown(key, 40)} is no key of a task; did you mean "{meant.word}"?'
        yield Hit(f"/task/{escape(key)}", message, f'write "{meant.word}"', key=True)


def _extra(case: Case) -> Iterator[Hit]:
    typos = mistyped(case.top)
    for key in case.meaning.config.extra:
        if key not in typos and key not in _OWN_RULE:
            why = f": {_VENDOR[key]}" if key in _VENDOR else ""
            yield Hit(f"/{escape(key)}", f"{shown(key, 40)} is kept; TensorFlow 2 does not read it{why}", key=True)


def _session_master(case: Case) -> Iterator[Hit]:
    if case.top.get("session_master") is not None:
        yield Hit("/session_master", key=True)


def _rpc_layer(case: Case) -> Iterator[Hit]:
    layer = case.top.get("rpc_layer")
    if layer not in (None, "", "grpc"):
        told = shown(layer, 20) if isinstance(layer, str) else what(layer)
        yield Hit("/rpc_layer", f"rpc_layer is {told}; TensorFlow's wheels have grpc and no other")


_RESOLVER = "tensorflow/python/distribute/cluster_resolver/tfconfig_cluster_resolver.py"

RULES = (
    Rule(
        id="top-key-typo",
        severity=Severity.ERROR,
        message="A key looks like a mistyped cluster or task.",
        find=_top_typo,
        consequence="TensorFlow finds no cluster: it trains alone and says nothing, or it misses the task.",
        source=f"R11; {_RESOLVER}",
    ),
    Rule(
        id="task-key-typo",
        severity=Severity.ERROR,
        message="A key of the task looks like a mistyped type or index.",
        find=_task_typo,
        consequence="ValueError: When `cluster_spec` is given, you must also specify `task_type` and `task_id`.",
        source=f"R28; {_RESOLVER}",
    ),
    Rule(
        id="extra-key",
        severity=Severity.INFO,
        message="A key that TensorFlow does not read is kept.",
        find=_extra,
        consequence="TensorFlow ignores it.",
        source="R98; measured on TensorFlow 2.21",
    ),
    Rule(
        id="session-master",
        severity=Severity.WARNING,
        message="session_master replaces the address that sessions connect to.",
        find=_session_master,
        consequence="Programs of TensorFlow 1 connect there, whatever the cluster says; TensorFlow 2 ignores it.",
        fix="take it out, unless a TPU service put it there",
        source=f"R04; {_RESOLVER}",
    ),
    Rule(
        id="rpc-layer",
        severity=Severity.ERROR,
        message="rpc_layer names a transport that TensorFlow does not have.",
        find=_rpc_layer,
        consequence="NotFoundError: No server factory registered for the given ServerDef.",
        fix='write "grpc", or leave the key out',
        source="measured on TensorFlow 2.21",
    ),
)
