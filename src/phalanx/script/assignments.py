"""What a name stands for where it is used, by the assignments of one module."""

from __future__ import annotations

import ast
import collections
import dataclasses
import functools
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from phalanx.script.module import Module, Scope, argument

#: Methods by which a list or a dictionary becomes another.
_CHANGES = frozenset({"append", "extend", "insert", "update", "pop", "remove", "clear", "setdefault", "popitem"})


class _Store(NamedTuple):
    """Where a name is given a meaning; `value` is None where that is no plain assignment (a loop, `global`, `+=`)."""

    statement: ast.AST
    value: ast.expr | None


@dataclasses.dataclass(frozen=True, kw_only=True, eq=False)
class Assignments:
    """The assignments of one module."""

    module: Module

    def of(self, name: ast.Name) -> ast.expr | None:
        """The one expression that a name stands for where it is used; None for none, several, or a loop's.

        Of several assignments in a row, all in the block where the function begins, it is the last before the use.
        """
        scope = self.module.scope_of(name)
        while True:
            stores = self._stores(scope).get(name.id, [])
            if len(stores) == 1:
                return stores[0].value
            if stores:
                return self._last(stores, name, scope) if scope is self.module.scope_of(name) else None
            if scope is None:
                return None
            if name.id in _parameters(scope):
                return None
            scope = self.module.scope_of(scope)

    def given(self, name: ast.Name) -> ast.expr | None:
        """What the one call of its function gives a parameter, or the whole of which a name is the first part."""
        scope = self.module.scope_of(name)
        if scope is None or name.id not in _parameters(scope):
            return self._unpacked.get(name.id)
        calls = self._calls.get(scope.name, []) if scope.name in self.module.functions else []
        at = [arg.arg for arg in (*scope.args.posonlyargs, *scope.args.args)]
        return argument(calls[0], at.index(name.id), name.id) if len(calls) == 1 and name.id in at else None

    @functools.cached_property
    def _calls(self) -> Mapping[str, list[ast.Call]]:
        found: dict[str, list[ast.Call]] = collections.defaultdict(list)
        for node in self.module.nodes:
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                found[node.func.id].append(node)
        return found

    @functools.cached_property
    def _unpacked(self) -> Mapping[str, ast.expr]:
        """`args, rest = parser.parse_known_args()`."""
        found: dict[str, ast.expr] = {}
        for node in self.module.nodes:
            match node:
                case ast.Assign(targets=[ast.Tuple(elts=[ast.Name(id=name), *_])], value=ast.Call() as value):
                    found[name] = value
        return found

    def entered(self, name: ast.Name) -> ast.expr | None:
        """`folder`, of `with TemporaryDirectory() as folder`: what was entered."""
        return self._entered.get(name.id)

    @functools.cached_property
    def _entered(self) -> Mapping[str, ast.expr]:
        return {
            item.optional_vars.id: item.context_expr
            for node in self.module.nodes
            if isinstance(node, ast.With | ast.AsyncWith)
            for item in node.items
            if isinstance(item.optional_vars, ast.Name)
        }

    def additions(self, name: ast.Name) -> tuple[ast.expr, ...]:
        """What is put into a thing after it was made: `config["task"]["index"] = 1`, `files.append(file)`."""
        return self._additions.get(name.id, ())

    @functools.cached_property
    def _additions(self) -> Mapping[str, tuple[ast.expr, ...]]:
        """By name, in whatever scope."""
        found: dict[str, tuple[ast.expr, ...]] = {}
        for node in self.module.nodes:
            for holder, values in _added(node):
                if (root := _root(holder)) is not None:
                    found[root] = (*found.get(root, ()), *values)
        return found

    def _last(self, stores: list[_Store], name: ast.Name, scope: Scope) -> ast.expr | None:
        block = self.module.tree if scope is None else scope
        if any(store.value is None or self.module.parents.get(store.statement) is not block for store in stores):
            return None
        before = [store for store in stores if _position(store.statement) < _position(name)]
        inside = [store for store in before if _encloses(store.statement, name)]
        before = [store for store in before if store not in inside]
        return before[-1].value if before else None

    def _stores(self, scope: Scope) -> Mapping[str, list[_Store]]:
        found = self._scopes.get(scope)
        return {} if found is None else found

    @functools.cached_property
    def _scopes(self) -> Mapping[Scope, Mapping[str, list[_Store]]]:
        """By scope and name what is assigned, in the order of the text."""
        scopes: dict[Scope, dict[str, list[_Store]]] = collections.defaultdict(lambda: collections.defaultdict(list))
        plain: set[ast.AST] = set()
        for node in self.module.nodes:
            for target, value in _plain(node):
                plain.add(target)
                scopes[self.module.scope_of(target)][target.id].append(_Store(node, value))
            if isinstance(node, ast.Global | ast.Nonlocal):
                for name in node.names:
                    scopes[None][name] += [_Store(node, None)] * 2
        for node in self.module.nodes:
            if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load) and node not in plain:
                scopes[self.module.scope_of(node)][node.id].append(_Store(node, None))
        for stores in (stores for scope in scopes.values() for stores in scope.values()):
            stores.sort(key=lambda store: _position(store.statement))
        return scopes


def _plain(node: ast.AST) -> Iterator[tuple[ast.Name, ast.expr | None]]:
    """`a = b = 1` and `a: int = 1`."""
    match node:
        case ast.Assign(targets=targets, value=value):
            yield from ((target, value) for target in targets if isinstance(target, ast.Name))
        case ast.AnnAssign(target=ast.Name() as target, value=value):
            yield target, value


def _added(node: ast.AST) -> Iterator[tuple[ast.expr, tuple[ast.expr, ...]]]:
    match node:
        case ast.Assign(targets=targets, value=value):
            yield from ((target.value, (value,)) for target in targets if isinstance(target, ast.Subscript))
        case ast.AugAssign(target=ast.Subscript(value=holder), value=value):
            yield holder, (value,)
        case ast.Delete(targets=targets):
            yield from ((target.value, (target,)) for target in targets if isinstance(target, ast.Subscript))
        case ast.Call(func=ast.Attribute(value=holder, attr=attr), args=args) if attr in _CHANGES:
            yield holder, tuple(args) or (node,)


def _root(node: ast.expr) -> str | None:
    while isinstance(node, ast.Subscript):
        node = node.value
    return node.id if isinstance(node, ast.Name) else None


def _position(node: ast.AST) -> tuple[int, int]:
    return getattr(node, "lineno", 0), getattr(node, "col_offset", 0)


def _encloses(statement: ast.AST, node: ast.AST) -> bool:
    end = getattr(statement, "end_lineno", 0), getattr(statement, "end_col_offset", 0)
    return _position(statement) <= _position(node) < end


def _parameters(scope: ast.FunctionDef | ast.AsyncFunctionDef) -> set[str]:
    args = scope.args
    every = [*args.posonlyargs, *args.args, *args.kwonlyargs, *filter(None, (args.vararg, args.kwarg))]
    return {arg.arg for arg in every}
