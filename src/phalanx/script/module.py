"""One file of the user's program as a tree, with what its names stand for. Nothing is imported or run."""

from __future__ import annotations

import ast
import collections
import dataclasses
import functools
import io
import re
import tokenize
from collections.abc import Iterable, Iterator, Mapping
from typing import TypeVar

from phalanx.agent.preflight.imports import Source, absolute

#: Spellings of one module: the left one is what the API is called here.
_SAME = {"tensorflow.compat.v2": "tensorflow", "tensorflow._api.v2": "tensorflow"}
_IGNORE = re.compile(r"#.*?\bphalanx:\s*ignore\[([^\]]*)\]")

#: Where a name is looked up: the module itself, or a function in it.
Scope = ast.FunctionDef | ast.AsyncFunctionDef | None
Function = ast.FunctionDef | ast.AsyncFunctionDef

_Named = TypeVar("_Named", bound=ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)


@dataclasses.dataclass(frozen=True, kw_only=True, eq=False)
class Module:
    """A parsed file. `name` is how the program imports it, empty for the script itself; `path` is shown to people."""

    path: str
    name: str
    text: str
    tree: ast.Module
    #: The package that its relative imports start from; empty: it has none.
    package: str = ""

    @functools.cached_property
    def bindings(self) -> Mapping[str, str]:
        """Names that surely stand for a module or something in it: `tf` → `tensorflow`.

        `keras = tf.keras` counts. A name that means two things somewhere in the file means nothing here.
        """
        meant = collections.defaultdict[str, set[str]](set)
        for node in self.nodes:
            for name, dotted in _imported(node, self.package):
                meant[name].add(canonical(dotted))
        stores = collections.Counter(stored(self.nodes))
        known = {name: next(iter(those)) for name, those in meant.items() if len(those) == 1 and not stores[name]}
        aliases = [
            (node.targets[0].id, node.value)
            for node in self.nodes
            if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name)
        ]
        for name, value in aliases:
            alias = _dotted(value, known)
            if alias is not None and stores[name] == 1 and name not in meant:
                known[name] = alias
        return known

    @functools.cached_property
    def numbers(self) -> Mapping[str, int]:
        """Whole numbers that have a name: assigned once in the file, at module level."""
        stores = collections.Counter(stored(self.nodes))
        return {
            node.targets[0].id: node.value.value
            for node in self.tree.body
            if isinstance(node, ast.Assign)
            and isinstance(node.targets[0], ast.Name)
            and isinstance(node.value, ast.Constant)
            and isinstance(node.value.value, int)
            and stores[node.targets[0].id] == 1
        }

    @functools.cached_property
    def functions(self) -> Mapping[str, Function]:
        """Functions at module level that are defined once."""
        return _once(node for node in self.tree.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))

    @functools.cached_property
    def classes(self) -> Mapping[str, ast.ClassDef]:
        """Classes at module level that are defined once."""
        return _once(node for node in self.tree.body if isinstance(node, ast.ClassDef))

    @functools.cached_property
    def nodes(self) -> tuple[ast.AST, ...]:
        """Every node of the tree."""
        return tuple(ast.walk(self.tree))

    @functools.cached_property
    def parents(self) -> Mapping[ast.AST, ast.AST]:
        """Each node's parent."""
        return {child: node for node in self.nodes for child in ast.iter_child_nodes(node)}

    @functools.cached_property
    def strings(self) -> frozenset[str]:
        """Every text constant, docstrings included."""
        return frozenset(
            node.value for node in self.nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)
        )

    @functools.cached_property
    def words(self) -> frozenset[str]:
        """Every identifier and attribute that the code uses."""
        return frozenset(word for node in self.nodes for word in _words(node))

    @functools.cached_property
    def lines(self) -> list[str]:
        """The text by line, as the parser counts them."""
        return self.text.replace("\r\n", "\n").replace("\r", "\n").split("\n")

    @functools.cached_property
    def ignored(self) -> Mapping[int, frozenset[str]]:
        """Line → the rules that a comment there silences: `# phalanx: ignore[rule, rule]`."""
        if "phalanx:" not in self.text:
            return {}
        found = {}
        for line, comment in _comments(self.text):
            if match := _IGNORE.search(comment):
                found[line] = frozenset(word.strip() for word in match[1].split(","))
        return found

    def dotted(self, node: ast.AST) -> str | None:
        """`tf.keras.Model` → `tensorflow.keras.Model`; None for what is not surely a name of some module."""
        return _dotted(node, self.bindings)

    def scope_of(self, node: ast.AST) -> Scope:
        """The function around it; None at module level (a class body is part of what is around it)."""
        return next((it for it in self.above(node) if isinstance(it, ast.FunctionDef | ast.AsyncFunctionDef)), None)

    def above(self, node: ast.AST) -> Iterator[ast.AST]:
        """What it is part of, from its parent to the module itself."""
        at = self.parents.get(node)
        while at is not None:
            yield at
            at = self.parents.get(at)


def module_of(source: Source, *, path: str) -> Module | None:
    """The module; None for what is no Python of ours, or too long to be a script."""
    try:
        text = _decoded(source.data)
    except (SyntaxError, ValueError, LookupError):
        return None
    if source.tree is None:
        return None
    return Module(path=path, name=source.name, text=text, tree=source.tree, package=source.package)


def argument(call: ast.Call, at: int, *names: str) -> ast.expr | None:
    """What a call is given at that position, else by one of these names."""
    return call.args[at] if len(call.args) > at else next((it.value for it in call.keywords if it.arg in names), None)


def canonical(dotted: str) -> str:
    """The one spelling of a dotted name."""
    for other, own in _SAME.items():
        if dotted == other or dotted.startswith(f"{other}."):
            return own + dotted[len(other) :]
    return dotted


def _decoded(data: bytes) -> str:
    encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
    return data.decode(encoding)


def _comments(text: str) -> Iterator[tuple[int, str]]:
    try:
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.type == tokenize.COMMENT:
                yield token.start[0], token.string
    except (tokenize.TokenError, SyntaxError):
        return


def _imported(node: ast.AST, package: str) -> Iterator[tuple[str, str]]:
    match node:
        case ast.Import(names=names):
            for alias in names:
                yield (alias.asname, alias.name) if alias.asname else (alias.name.partition(".")[0],) * 2
        case ast.ImportFrom(names=names) if (origin := absolute(node, package)) is not None:
            yield from ((alias.asname or alias.name, f"{origin}.{alias.name}") for alias in names if alias.name != "*")


def roots(node: ast.AST) -> Iterator[str]:
    """The packages that a statement imports from; one relative to its own module is none."""
    match node:
        case ast.Import(names=names):
            yield from (alias.name.partition(".")[0] for alias in names)
        case ast.ImportFrom(module=str(name), level=0):
            yield name.partition(".")[0]


def stored(nodes: Iterable[ast.AST]) -> Iterator[str]:
    """Names that are given a meaning other than by an import."""
    for node in nodes:
        match node:
            case ast.Name(id=name, ctx=ast.Store() | ast.Del()):
                yield name
            case ast.arg(arg=name):
                yield name
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                yield name
            case ast.ExceptHandler(name=str(name)):
                yield name


def _dotted(node: ast.AST, bindings: Mapping[str, str]) -> str | None:
    tail: list[str] = []
    while isinstance(node, ast.Attribute):
        tail.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name) or node.id not in bindings:
        return None
    return canonical(".".join([bindings[node.id], *reversed(tail)]))


def _once(those: Iterable[_Named]) -> dict[str, _Named]:
    found = list(those)
    counts = collections.Counter(node.name for node in found)
    return {node.name: node for node in found if counts[node.name] == 1}


def _words(node: ast.AST) -> Iterator[str]:
    match node:
        case ast.Attribute(attr=name) | ast.Name(id=name) | ast.keyword(arg=str(name)):
            yield name
        case ast.alias(name=name):
            yield from name.split(".")
        case ast.ImportFrom(module=str(name)):
            yield from name.split(".")
