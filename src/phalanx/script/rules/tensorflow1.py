"""Rules about names that the installed TensorFlow does not have: tf.estimator, TensorFlow 1."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from phalanx.script.module import Module
from phalanx.script.program import Program
from phalanx.script.rule import Hit, Rule
from phalanx.tfconfig.finding import Severity
from phalanx.tfconfig.rules.circumstances import ESTIMATOR_GONE

_ESTIMATORS = ("tensorflow.estimator", "tensorflow.compat.v1.estimator")
#: Names of TensorFlow 1 that no TensorFlow 2 has; asked where nobody can look into the installed package.
_GONE = frozenset(
    f"tensorflow.{name}"
    for name in [
        "contrib",
        "Session",
        "placeholder",
        "app",
        "flags",
        "logging",
        "gfile",
        "get_variable",
        "global_variables_initializer",
        "layers",
        "ConfigProto",
        "GPUOptions",
        "InteractiveSession",
        "train.Server",
        "train.MonitoredTrainingSession",
        "train.AdamOptimizer",
        "train.SyncReplicasOptimizer",
        "train.replica_device_setter",
        "train.get_or_create_global_step",
    ]
)
#: How a program asks which TensorFlow it has, and goes other ways.
_ASKS = frozenset(
    {"__version__", "VERSION", "hasattr", "version_info", "LooseVersion", "StrictVersion", "parse_version"}
)


def _estimator(program: Program) -> Iterator[Hit]:
    if program.tensorflow is None or program.tensorflow < ESTIMATOR_GONE:
        return
    found = [
        (module, node, "tf.estimator")
        for module, node, dotted in names(program)
        if any(f"{dotted}.".startswith(f"{name}.") for name in _ESTIMATORS)
    ]
    yield from once(program, f"TensorFlow {'.'.join(map(str, program.tensorflow[:2]))}", found)


def _first(program: Program) -> Iterator[Hit]:
    if program.tensorflow is None or program.tensorflow < (2, 0) or program.words & _ASKS:
        return
    found: list[tuple[Module, ast.AST, str]] = []
    for module, node, dotted in names(program):
        if not dotted.startswith("tensorflow.") or dotted.startswith((*_ESTIMATORS, "tensorflow.keras")):
            continue
        if program.installed is not None and program.installed.has("tensorflow"):
            gone = program.installed.lacks(dotted)
        else:
            gone = next((name for name in _GONE if f"{dotted}.".startswith(f"{name}.")), None)
        if gone is not None:
            found.append((module, node, gone.replace("tensorflow.", "tf.", 1)))
    yield from once(program, f"TensorFlow {'.'.join(map(str, program.tensorflow[:2]))}", found)


def names(program: Program) -> Iterator[tuple[Module, ast.AST, str]]:
    """Every name of TensorFlow or Keras that the program uses, the longest each; imported ones too.

    Not where the use is tried: under `try`, or where the program looks what is there.
    """
    for module in program.modules:
        for node in module.nodes:
            if isinstance(node, ast.ImportFrom) and node.module and not node.level:
                found: list[tuple[ast.AST, str]] = [
                    (alias, f"{node.module}.{alias.name}") for alias in node.names if alias.name != "*"
                ]
            elif isinstance(node, ast.Import):
                found = [(alias, alias.name) for alias in node.names]
            elif isinstance(node, ast.Attribute) and not isinstance(module.parents.get(node), ast.Attribute):
                dotted = module.dotted(node)
                stored = not isinstance(node.ctx, ast.Load)
                found = [] if dotted is None or stored else [(node, dotted)]
            else:
                continue
            for at, dotted in found:
                if dotted.partition(".")[0] in ("tensorflow", "keras") and not tried(module, node):
                    yield module, at, dotted


def once(program: Program, who: str, found: Sequence[tuple[Module, ast.AST, str]]) -> Iterator[Hit]:
    """A hit for each name that is gone: where it is sure to be reached, else where it stands first."""
    places: dict[str, list[tuple[Module, ast.AST]]] = {}
    for module, node, name in found:
        places.setdefault(name, []).append((module, node))
    for name, those in places.items():
        module, node = next((it for it in those if program.reached(*it)), those[0])
        more = f" (here and at {len(those) - 1} more place{'s' if len(those) > 2 else ''})"  # noqa: PLR2004 - plural
        yield Hit(module, node, f"{who} has no {name}{more if len(those) > 1 else ''}")


def tried(module: Module, node: ast.AST) -> bool:
    """Under `try`, or in its handler: whoever catches it knows what to do without."""
    return any(isinstance(it, ast.Try) for it in (node, *module.above(node)))


RULES = (
    Rule(
        id="script-estimator-gone",
        severity=Severity.ERROR,
        message="TensorFlow 2.16 and later have no tf.estimator.",
        find=_estimator,
        consequence="AttributeError: module 'tensorflow' has no attribute 'estimator'.",
        fix="name a Python with TensorFlow 2.15 or earlier (--python), or move to Keras or a custom loop",
        source="R89",
    ),
    Rule(
        id="tensorflow-name-gone",
        severity=Severity.ERROR,
        message="A name of TensorFlow 1 that the installed TensorFlow does not have.",
        find=_first,
        consequence="AttributeError when the line is reached.",
        fix="import tensorflow.compat.v1 as tf where it is there, or write it anew for TensorFlow 2",
        source="the installed TensorFlow's own list of names",
    ),
)
