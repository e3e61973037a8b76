"""What a path surely ends with, though the folder it is in is not read: `os.path.join(args.dir, "model")`."""

from __future__ import annotations

import ast
import dataclasses
import re
from collections.abc import Mapping
from typing import NamedTuple

from phalanx.script.module import Module
from phalanx.script.program import Program

#: Names and functions within each other that are followed.
_DEEP = 20
#: Calls that leave the end of a path as it is.
_SAME = frozenset(f"os.path.{name}" for name in ("abspath", "expanduser", "expandvars", "normpath", "realpath")) | {
    "os.fspath",
    "pathlib.Path",
    "str",
}
#: The part of a template that stands after its last place to fill in.
_TEMPLATE = re.compile(r"(?:%[-\d.]*[a-z]|\})(?P<rest>[^%}]*)\Z")


class _Given(NamedTuple):
    """An argument, and what the parameters of the function around it stand for."""

    module: Module
    node: ast.expr
    bound: Mapping[str, _Given]


@dataclasses.dataclass(frozen=True, kw_only=True, eq=False)
class Endings:
    """The ends of the paths of a program."""

    program: Program

    def of(self, module: Module, node: ast.expr | None) -> str | None:
        """The end of the path, all after its last slash at least; None where that is not sure."""
        value = self.program.value(module, node)
        if isinstance(value, str):
            return value or None
        found = self._of(module, node, {}, 0)
        return found if "/" in found and not found.endswith("/") else None

    def _of(self, module: Module, node: ast.expr | None, bound: Mapping[str, _Given], depth: int) -> str:  # noqa: PLR0911 - a table
        """Empty for nothing known."""
        if node is None or depth > _DEEP:
            return ""
        again = depth + 1
        match node:
            case ast.Constant(value=str(text)):
                return text
            case ast.Name():
                return self._named(module, node, bound, again)
            case ast.BinOp(op=ast.Add(), left=left, right=right):
                end = self._of(module, right, bound, again)
                whole = isinstance(self.program.value(module, right), str)
                return self._of(module, left, bound, again) + end if whole else end
            case ast.BinOp(op=ast.Div(), right=right):
                return _joined(self._of(module, right, bound, again))
            case ast.BinOp(op=ast.Mod(), left=ast.Constant(value=str(text))):
                return _rest(text)
            case ast.JoinedStr(values=parts):
                return self._written(module, parts, bound, again)
            case ast.Call(func=ast.Attribute(value=ast.Constant(value=str(text)), attr="format")):
                return _rest(text)
            case ast.Call():
                return self._called(module, node, bound, again)
        return ""

    def _named(self, module: Module, name: ast.Name, bound: Mapping[str, _Given], depth: int) -> str:
        values = self.program.values(module)
        stands_for = values.assigned(name)
        if stands_for is not None:
            return self._of(module, stands_for, bound, depth)
        if name.id in bound:
            given = bound[name.id]
            return self._of(given.module, given.node, given.bound, depth)
        return self._of(module, values.given(name), bound, depth)

    def _written(self, module: Module, parts: list[ast.expr], bound: Mapping[str, _Given], depth: int) -> str:
        match parts:
            case [*before, ast.Constant(value=text)]:
                return self._written(module, before, bound, depth) + str(text)
            case [*_, ast.FormattedValue(value=value, conversion=-1, format_spec=None)]:
                return self._of(module, value, bound, depth)
        return ""

    def _called(self, module: Module, call: ast.Call, bound: Mapping[str, _Given], depth: int) -> str:
        name = module.dotted(call.func) or (call.func.id if isinstance(call.func, ast.Name) else "")
        last = call.args[-1] if call.args and not isinstance(call.args[-1], ast.Starred) else None
        if name in ("os.path.join", "pathlib.Path") and len(call.args) > 1:
            return _joined(self._of(module, last, bound, depth))
        if name in _SAME:
            return self._of(module, last, bound, depth)
        if name == "os.path.basename":
            return self._of(module, last, bound, depth).rpartition("/")[2]
        returned = self.program.returned(module, call.func)
        function = self.program.function(module, call.func)
        if returned is None or function is None:
            return ""
        names = [arg.arg for arg in (*function.args.posonlyargs, *function.args.args)]
        given = {name: _Given(module, node, bound) for name, node in zip(names, call.args, strict=False)}
        given |= {word.arg: _Given(module, word.value, bound) for word in call.keywords if word.arg}
        return self._of(*returned, given, depth)


def _joined(end: str) -> str:
    return f"/{end}" if end else ""


def _rest(template: str) -> str:
    found = _TEMPLATE.search(template)
    return template if found is None and not set(template) & set("%{") else found["rest"] if found else ""
