"""Rules about models of the functional style: what Keras 3 no longer lets TensorFlow's operations do in them."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from phalanx.script.module import Module
from phalanx.script.program import Program
from phalanx.script.rule import Hit, Rule
from phalanx.script.rules.context import CREATES
from phalanx.tfconfig.finding import Severity

_INPUTS = ("Input", "layers.Input")
#: TensorFlow's packages of operations.
_OPERATIONS = tuple(f"tensorflow.{part}." for part in ("math", "nn", "image", "linalg", "signal", "strings"))
#: Layers one after the other that are followed.
_DEEP = 60
_THREE = 3


def _operation(program: Program) -> Iterator[Hit]:
    for call in program.calls:
        if not (call.name in CREATES or call.name.startswith(_OPERATIONS)) or not call.node.args:
            continue
        first = call.node.args[0]
        given = first.elts if isinstance(first, ast.List | ast.Tuple) else [first]
        if any(_is_symbolic(program, call.module, it, 0) for it in given):
            name = call.name.replace("tensorflow.", "tf.", 1)
            yield Hit(call.module, call.node, f"{name} is called on what a Keras layer makes of an Input")


def _is_symbolic(program: Program, module: Module, node: ast.expr | None, depth: int) -> bool:
    """Whether it is surely what stands for a tensor in a functional model of Keras 3."""
    if depth > _DEEP:
        return False
    match node:
        case ast.Name():
            return _is_symbolic(program, module, program.values(module).assigned(node), depth + 1)
        case ast.Call(func=func, args=args):
            if (name := module.dotted(func)) is not None:
                keras = program.keras_name(name)
                return keras is not None and keras.generation == _THREE and keras.name in _INPUTS
            layer = program.keras_name(program.maker(module, func) or "")
            made = layer is not None and layer.generation == _THREE and layer.name.startswith("layers.")
            return made and any(_is_symbolic(program, module, it, depth + 1) for it in args[:1])
    return False


RULES = (
    Rule(
        id="keras3-symbolic",
        severity=Severity.ERROR,
        message="An operation of TensorFlow within a functional model of Keras 3.",
        find=_operation,
        consequence="ValueError: A KerasTensor cannot be used as input to a TensorFlow function.",
        fix="keras.ops has the same operation; or a Lambda layer, or a layer of your own, around it",
        source="measured on Keras 3.15",
    ),
)
