"""Which tf.distribute strategy a script names, read from its syntax tree. Nothing is imported or run."""

from __future__ import annotations

import ast

#: A name that says it, and the word of job.yaml.
_NAMES = {
    "MultiWorkerMirroredStrategy": "mwms",
    "CollectiveAllReduceStrategy": "mwms",
    "ParameterServerStrategy": "ps",
    "ParameterServerStrategyV2": "ps",
    "train_and_evaluate": "estimator",
}


def strategy_in(source: str) -> tuple[str, str] | None:
    """`("mwms", "MultiWorkerMirroredStrategy")`: the one strategy the script names; None for none or several.

    A module the script imports may build another; so this is a hint and decides nothing.
    """
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    found = {_NAMES[name]: name for node in ast.walk(tree) if (name := _name(node)) in _NAMES}
    if "estimator" in found:  # takes a strategy as an argument, and decides what a failure means
        return "estimator", found["estimator"]
    return next(iter(found.items())) if len(found) == 1 else None


def _name(node: ast.AST) -> str:
    match node:
        case ast.Attribute(attr=name) | ast.Name(id=name) | ast.alias(name=name):
            return name
    return ""
