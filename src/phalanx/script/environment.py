"""Where a module changes the variables of its environment."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import NamedTuple

from phalanx.script.module import Module


class Change(NamedTuple):
    """`os.environ["TF_CONFIG"] = …`; `value` is None where the variable is taken away."""

    module: Module
    node: ast.AST
    name: str
    value: ast.expr | None


def changes(module: Module) -> Iterator[Change]:
    """Every change that names its variable and always makes it: `setdefault` is none."""
    for node in module.nodes:
        if isinstance(node, ast.Call):
            yield from _by_call(module, node)
            continue
        match node:
            case ast.Assign(targets=[ast.Subscript(value=base, slice=ast.Constant(value=str(name)))], value=value):
                if module.dotted(base) == "os.environ":
                    yield Change(module, node, name, value)
            case ast.Delete(targets=[ast.Subscript(value=base, slice=ast.Constant(value=str(name)))]):
                if module.dotted(base) == "os.environ":
                    yield Change(module, node, name, None)


def _by_call(module: Module, call: ast.Call) -> Iterator[Change]:
    match module.dotted(call.func), call.args:
        case "os.environ.pop", [ast.Constant(value=str(name)), *_]:
            yield Change(module, call, name, None)
        case "os.putenv", [ast.Constant(value=str(name)), value]:
            yield Change(module, call, name, value)
        case "os.environ.update", [ast.Dict(keys=keys, values=values)]:
            for key, value in zip(keys, values, strict=True):
                if isinstance(key, ast.Constant) and isinstance(key.value, str):
                    yield Change(module, call, key.value, value)
