"""Whether a model is made in the scope of a strategy: the `with` around the call, or around a call that leads to it."""

from __future__ import annotations

import ast
import collections
import dataclasses
import functools
import itertools
from collections.abc import Iterable, Iterator

from phalanx.script.module import Module
from phalanx.script.program import Program

#: Other ways into a scope, which are not followed.
_OTHER_WAYS = frozenset({"__enter__", "enter_context", "ExitStack", "experimental_set_strategy"})
#: Names within names that are followed.
_DEEP = 8

_Function = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
_Named = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
_Owner = _Named | ast.Lambda


@dataclasses.dataclass(frozen=True, kw_only=True, eq=False)
class Scopes:
    """The scopes of a program. What is not read is neither surely inside nor surely outside."""

    program: Program

    def outside(self, module: Module, model: ast.expr) -> tuple[Module, ast.Call] | None:
        """The call that made the model, where that is surely in no scope: no `with` of any kind is on a way to it."""
        made = None if self.program.words & _OTHER_WAYS else self._made(module, model)
        if made is None:
            return None
        perhaps = any(_withs(*made)) or any(
            owner is None or owner.decorator_list or owner.name in self._within for owner in _owners(*made)
        )
        return None if perhaps else made

    def inside(self, module: Module, model: ast.expr) -> bool:
        """Whether it was surely made in one: `with strategy.scope():` stands around the call, or around its maker's."""
        made = self._made(module, model)
        if made is not None and _in_scope(*made):
            return True
        stands_for = self.program.values(module).assigned(model) if isinstance(model, ast.Name) else None
        return made is not None and stands_for is not None and _in_scope(module, stands_for)

    def _made(self, module: Module, node: ast.expr | None, depth: int = 0) -> tuple[Module, ast.Call] | None:
        """The call of Keras, or of an own class of models, that made it."""
        if depth > _DEEP:
            return None
        match node:
            case ast.Name():
                return self._made(module, self.program.values(module).assigned(node), depth + 1)
            case ast.Call(func=func):
                returned = self.program.returned(module, func)
                if returned is not None:
                    return self._made(*returned, depth + 1)
                keras = self.program.keras_name(self.program.maker(module, node) or "")
                return (module, node) if keras is not None and keras.is_model else None
        return None

    @functools.cached_property
    def _within(self) -> frozenset[str]:
        """Names of the functions and classes that may run within a `with`, or of which that is not seen."""
        defined: dict[str, list[_Named]] = collections.defaultdict(list)
        for module in self.program.modules:
            for node in module.nodes:
                if isinstance(node, _Named):
                    defined[node.name].append(node)
        found = {name for module in self.program.modules for name in _used_within(module)}
        waiting = list(found)
        while waiting:
            for node in defined.get(waiting.pop(), ()):
                new = set(_names(ast.walk(node))) - found
                found |= new
                waiting += new
        return frozenset(found)


def _withs(module: Module, node: ast.AST) -> Iterator[ast.With | ast.AsyncWith]:
    """Those it stands in, up to its function."""
    inside = itertools.takewhile(lambda it: not isinstance(it, _Function), module.above(node))
    return (it for it in inside if isinstance(it, ast.With | ast.AsyncWith))


def _in_scope(module: Module, node: ast.AST) -> bool:
    for statement in _withs(module, node):
        for item in statement.items:
            match item.context_expr:
                case ast.Call(func=ast.Attribute(attr="scope")):
                    return True
    return False


def _owners(module: Module, node: ast.AST) -> Iterator[_Named | None]:
    """The functions and classes it is defined in, of which a decorator may enter anything; None: one without a name."""
    return (None if isinstance(it, ast.Lambda) else it for it in module.above(node) if isinstance(it, _Owner))


def _used_within(module: Module) -> Iterator[str]:
    """Names that a `with` or its block mentions, and those that are handed on without being called."""
    for node in module.nodes:
        if isinstance(node, ast.With | ast.AsyncWith):
            yield from _names(ast.walk(node))
        elif isinstance(node, ast.Name | ast.Attribute) and isinstance(node.ctx, ast.Load):
            above = module.parents.get(node)
            called = isinstance(above, ast.Call) and above.func is node
            if not called and not isinstance(above, ast.Attribute):
                yield from _names((node,))


def _names(nodes: Iterable[ast.AST]) -> Iterator[str]:
    for node in nodes:
        match node:
            case ast.Name(id=name) | ast.Attribute(attr=name):
                yield name
