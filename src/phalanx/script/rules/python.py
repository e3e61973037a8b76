"""Rules about Python itself: what raises at its line whatever TensorFlow is installed."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping

from phalanx.script.module import Module, stored
from phalanx.script.program import Program
from phalanx.script.rule import Hit, Rule
from phalanx.script.rules.tensorflow1 import tried
from phalanx.tfconfig.finding import Severity

#: What everybody calls them; a name of the program's own may come from where nobody sees.
_MODULES: Mapping[str, str] = {
    **{name: name for name in ("argparse", "datetime", "glob", "json", "keras", "logging", "math", "os", "random")},
    **{name: name for name in ("re", "shutil", "socket", "subprocess", "sys", "tempfile", "time", "uuid")},
    "tf": "tensorflow as tf",
    "tfds": "tensorflow_datasets as tfds",
    "np": "numpy as np",
    "pd": "pandas as pd",
    "plt": "matplotlib.pyplot as plt",
}
#: With these, a name may come from anywhere.
_ANYWHERE = frozenset({"exec", "eval", "globals", "locals", "vars", "setattr", "builtins", "__builtins__"})


def _forgotten(program: Program) -> Iterator[Hit]:
    for module in program.modules:
        if module.words & _ANYWHERE or any(map(_is_star, module.nodes)):
            continue
        bound = {*stored(module.nodes), *(name for node in module.nodes for name in _bound(node))}
        told: set[str] = set()
        for node in module.nodes:
            if not isinstance(node, ast.Name) or node.id not in _MODULES or node.id in bound or node.id in told:
                continue
            if _is_read(module, node) and not tried(module, node):
                told.add(node.id)
                said = f"{node.id} is used and imported nowhere in the file"
                yield Hit(module, node, said, fix=f"import {_MODULES[node.id]}")


def _is_read(module: Module, name: ast.Name) -> bool:
    """Not as an annotation, which may never be looked at."""
    at: ast.AST = name
    while (above := module.parents.get(at)) is not None and not isinstance(at, ast.stmt):
        if (isinstance(above, ast.arg | ast.AnnAssign) and above.annotation is at) or (
            isinstance(above, ast.FunctionDef | ast.AsyncFunctionDef) and above.returns is at
        ):
            return False
        at = above
    return isinstance(name.ctx, ast.Load)


def _is_star(node: ast.AST) -> bool:
    return isinstance(node, ast.ImportFrom) and any(alias.name == "*" for alias in node.names)


def _bound(node: ast.AST) -> Iterator[str]:
    """Names that have a meaning by an import, a pattern, or in a place that is not seen."""
    match node:
        case ast.alias(name=name, asname=other):
            yield other or name.partition(".")[0]
        case ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
            yield name
        case ast.MatchMapping(rest=str(name)):
            yield name
        case ast.Global(names=names) | ast.Nonlocal(names=names):
            yield from names
        case _ if type(node).__name__ in ("TypeVar", "ParamSpec", "TypeVarTuple"):  # of Python 3.12
            yield getattr(node, "name", "")


RULES = (
    Rule(
        id="import-forgotten",
        severity=Severity.ERROR,
        message="A module that is used and imported nowhere.",
        find=_forgotten,
        consequence="NameError when the line is reached.",
        fix="import it",
        source="Python",
    ),
)
