"""Which tf.distribute strategy a script names, read from its syntax tree. Nothing is imported or run."""

from __future__ import annotations

import ast
from pathlib import Path

from phalanx.agent.preflight.imports import Source, read
from phalanx.agent.preflight.start import Start, start_of_script

#: A name that says it, and the word of job.yaml.
_NAMES = {
    "MultiWorkerMirroredStrategy": "mwms",
    "CollectiveAllReduceStrategy": "mwms",
    "ParameterServerStrategy": "ps",
    "ParameterServerStrategyV2": "ps",
    "train_and_evaluate": "estimator",
}


def strategy_of(script: Path | Start) -> tuple[str, str] | None:
    """`("mwms", "MultiWorkerMirroredStrategy")`: the one strategy it names; None for none, several, or no script.

    Where the script itself names none, the modules beside it that it always imports are read. An installed one may
    build another; so this is a hint and decides nothing.
    """
    try:
        own, *beside = read(script if isinstance(script, Start) else start_of_script(script)).files
    except OSError:
        return None
    found = _named(own)
    if not found:
        for source in beside:
            found |= _named(source)
    if "estimator" in found:  # takes a strategy as an argument, and decides what a failure means
        return "estimator", found["estimator"]
    return next(iter(found.items())) if len(found) == 1 else None


def _named(source: Source) -> dict[str, str]:
    nodes = ast.walk(source.tree) if source.tree is not None else ()
    return {_NAMES[name]: name for node in nodes if (name := _name(node)) in _NAMES}


def _name(node: ast.AST) -> str:
    match node:
        case ast.Attribute(attr=name) | ast.Name(id=name) | ast.alias(name=name):
            return name
    return ""
