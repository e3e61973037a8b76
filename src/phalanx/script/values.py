"""What an expression is worth where that can be read: constants, simple arithmetic, paths, and defaults of flags."""

from __future__ import annotations

import ast
import dataclasses
import functools
import json
import operator
import posixpath
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from phalanx.script.assignments import Assignments
from phalanx.script.module import Module, argument


class _Unknown:
    """Not to be read from the text."""

    def __bool__(self) -> bool:
        return False


UNKNOWN = _Unknown()

#: Names within names that are followed.
_DEEP = 20
#: No text or list of a script that is worth reading is longer.
_LONGEST = 10_000

_ARITHMETIC: Mapping[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Div: operator.truediv,
    ast.Mod: operator.mod,
}
_ABSL = (
    "absl.flags.DEFINE_",
    "tensorflow.app.flags.DEFINE_",
    "tensorflow.compat.v1.app.flags.DEFINE_",
    "tensorflow.compat.v1.flags.DEFINE_",
    "tensorflow.flags.DEFINE_",
)
_CONVERTERS: Mapping[str, Callable[[Any], Any]] = {"int": int, "float": float, "str": str, "len": len}


@dataclasses.dataclass(frozen=True, kw_only=True, eq=False)
class Values:
    """The values of one module. `arguments` are the words the script is called with; None where nobody knows them."""

    module: Module
    arguments: tuple[str, ...] | None = None
    #: Whether the default of a flag counts as its value.
    defaults: bool = True
    #: What was worked out; UNKNOWN while it is, so that `x = [x, x]` has an end.
    _seen: dict[ast.expr, Any] = dataclasses.field(default_factory=dict, init=False, repr=False)

    def of(self, node: ast.expr | None) -> Any:
        """The value, built of plain Python things; UNKNOWN where the text does not say."""
        try:
            return UNKNOWN if node is None else self._of(node, 0)
        except (ArithmeticError, TypeError, ValueError, LookupError, AttributeError, RecursionError):
            return UNKNOWN

    def assigned(self, name: ast.Name) -> ast.expr | None:
        """The one expression that a name stands for where it is used; None where that is not sure."""
        return self._assignments.of(name)

    def given(self, name: ast.Name) -> ast.expr | None:
        """What the one call of its function gives a parameter; None where that is not sure."""
        return self._assignments.given(name)

    @functools.cached_property
    def _assignments(self) -> Assignments:
        return Assignments(module=self.module)

    @functools.cached_property
    def flags(self) -> Mapping[str, Any]:
        """`batch_size` → its value: the default of argparse or absl, unless the call says another."""
        found: dict[str, Any] = {}
        for node in self.module.nodes:
            if not isinstance(node, ast.Call):
                continue
            named = self._flag(node)
            if named is not None:
                name, value = named
                found[name] = UNKNOWN if name in found else self._given(node, name, value)
        return found

    def from_flags(self, node: ast.expr) -> bool:
        """Whether it is made of flags of the command line, or of its bare words."""
        for it in self.parts(node):
            if isinstance(it, ast.Attribute) and (
                self.module.dotted(it) == "sys.argv" or (isinstance(it.value, ast.Name) and self._holds_flags(it.value))
            ):
                return True
        return False

    def parts(self, node: ast.expr | None) -> Iterator[ast.AST]:
        """What an expression is made of, through the names in it; each part once."""
        waiting: list[ast.AST] = [] if node is None else [node]
        seen: set[ast.AST] = set()
        while waiting:
            it = waiting.pop()
            if it in seen:
                continue
            seen.add(it)
            yield it
            waiting += ast.iter_child_nodes(it)
            if isinstance(it, ast.Name):
                also = (self.assigned(it), self._assignments.entered(it), *self._assignments.additions(it))
                waiting += filter(None, also)

    def _flag(self, call: ast.Call) -> tuple[str, Any] | None:
        words = {word.arg: word.value for word in call.keywords}
        if isinstance(call.func, ast.Attribute) and call.func.attr == "add_argument":
            options = [
                node.value for node in call.args if isinstance(node, ast.Constant) and isinstance(node.value, str)
            ]
            long = next((option for option in options if option.startswith("--")), None)
            dest = self.of(words.get("dest"))
            if long is None or "action" in words or "nargs" in words:
                return (dest or long.lstrip("-").replace("-", "_"), UNKNOWN) if long else None
            return dest or long[2:].replace("-", "_"), self.of(words.get("default"))
        dotted = self.module.dotted(call.func) or ""
        if dotted.startswith(_ABSL) and call.args:
            name = self.of(call.args[0])
            return (name, self.of(argument(call, 1, "default"))) if isinstance(name, str) else None
        return None

    def _given(self, flag: ast.Call, name: str, default: Any) -> Any:
        if self.arguments is None:
            return default if self.defaults else UNKNOWN
        options = (f"--{name}", f"--{name.replace('_', '-')}")
        for at, word in enumerate(self.arguments):
            option, equals, value = word.partition("=")
            if option not in options:
                continue
            if not equals:
                value = self.arguments[at + 1] if at + 1 < len(self.arguments) else ""
            if "{" in value:
                return UNKNOWN  # a placeholder, which each task fills in for itself
            convert = self._kind_of(flag, default)
            try:
                return UNKNOWN if convert is None else convert(value)
            except ValueError:
                return UNKNOWN
        return default

    def _kind_of(self, flag: ast.Call, default: Any) -> Callable[[str], Any] | None:
        """What makes its value of the word that is given; None where that is some function of the program's."""
        if isinstance(default, int | float | str):
            return type(default)
        words = {word.arg: word.value for word in flag.keywords}
        match words.get("type"):
            case None:
                return None if "action" in words or "nargs" in words else str
            case ast.Name(id=name):
                return _CONVERTERS.get(name)
        return None

    def _of(self, node: ast.expr, depth: int) -> Any:
        if node not in self._seen:
            self._seen[node] = UNKNOWN
            self._seen[node] = self._worked_out(node, depth)
        return self._seen[node]

    def _worked_out(self, node: ast.expr, depth: int) -> Any:  # noqa: C901, PLR0911, PLR0912 - a table of expressions
        if depth > _DEEP:
            return UNKNOWN
        again = functools.partial(self._of, depth=depth + 1)
        match node:
            case ast.Constant(value=value):
                return value
            case ast.Name():
                stands_for = self.assigned(node)
                return UNKNOWN if stands_for is None or self._assignments.additions(node) else again(stands_for)
            case ast.Attribute(value=ast.Name() as holder, attr=attr) if self._holds_flags(holder):
                return self.flags.get(attr, UNKNOWN)
            case ast.Attribute(value=ast.Name() as holder, attr="value") if isinstance(
                call := self.assigned(holder), ast.Call
            ):
                named = self._flag(call)
                return UNKNOWN if named is None else self.flags.get(named[0], UNKNOWN)
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                value = again(operand)
                return UNKNOWN if value is UNKNOWN else -value
            case ast.BinOp(left=left, op=op, right=right):
                first, second = again(left), again(right)
                if first is UNKNOWN or second is UNKNOWN or type(op) not in _ARITHMETIC:
                    return UNKNOWN
                if isinstance(op, ast.Div) and isinstance(first, str):
                    return posixpath.join(first, second)
                return self._bounded(_ARITHMETIC[type(op)], first, second)
            case ast.Tuple(elts=items) | ast.List(elts=items):
                return self._known([again(item) for item in items])
            case ast.Dict(keys=keys, values=values):
                names = [UNKNOWN if key is None else again(key) for key in keys]
                return UNKNOWN if UNKNOWN in names else dict(zip(names, map(again, values), strict=True))
            case ast.JoinedStr(values=parts):
                texts = [again(part.value if isinstance(part, ast.FormattedValue) else part) for part in parts]
                return UNKNOWN if UNKNOWN in texts else "".join(map(str, texts))
            case ast.Call(func=func, args=args, keywords=[]):
                return self._called(func, [again(arg) for arg in args])
            case ast.Call(func=func, args=[only]) if self.module.dotted(func) == "json.dumps":
                return self._called(func, [again(only)])
        return UNKNOWN

    def _called(self, func: ast.expr, args: list[Any]) -> Any:
        name = self.module.dotted(func)
        if any(arg is UNKNOWN for arg in args) or not args:
            return UNKNOWN
        if name in ("os.path.join", "pathlib.Path"):
            return posixpath.join(*args)
        if name in ("os.path.abspath", "os.path.expanduser", "os.path.realpath", "os.fspath"):
            return args[0]
        if name == "json.dumps" and len(args) == 1:
            return json.dumps(args[0], default=str)
        if isinstance(func, ast.Name) and func.id in _CONVERTERS and len(args) == 1:
            return _CONVERTERS[func.id](args[0])
        return UNKNOWN

    def _holds_flags(self, name: ast.Name, depth: int = 0) -> bool:
        """`args = parser.parse_args()`, `main(parser.parse_args())` for `main(args)`, or absl's FLAGS."""
        value = self.assigned(name) or self._assignments.given(name)
        if (self.module.dotted(name) or "").endswith("flags.FLAGS"):
            return True
        match value:
            case ast.Name() if depth < _DEEP:
                return self._holds_flags(value, depth + 1)
            case ast.Attribute():
                return (self.module.dotted(value) or "").endswith("flags.FLAGS")
            case (
                ast.Subscript(value=ast.Call(func=ast.Attribute(attr="parse_known_args")))
                | ast.Call(func=ast.Attribute(attr="parse_args" | "parse_known_args"))
            ):
                return True
            case ast.Call(func=ast.Name(id=function)):
                return self._parses(function)
        return False

    def _parses(self, function: str) -> bool:
        """Whether a function of the module returns `parser.parse_args()`."""
        found = self.module.functions.get(function)
        returned = [node.value for node in ast.walk(found) if isinstance(node, ast.Return)] if found else []
        match returned:
            case [ast.Call(func=ast.Attribute(attr="parse_args"))]:
                return True
            case [ast.Name() as name]:
                return self._holds_flags(name)
        return False

    @staticmethod
    def _known(items: Sequence[Any]) -> Any:
        return UNKNOWN if any(item is UNKNOWN for item in items) else list(items)

    @staticmethod
    def _bounded(work: Callable[[Any, Any], Any], first: Any, second: Any) -> Any:
        """`'x' * 10**9` is not worked out."""
        if work is operator.mul and not (isinstance(first, int | float) and isinstance(second, int | float)):
            return UNKNOWN
        if work is operator.mod and isinstance(first, str | bytes):
            return UNKNOWN
        for it in (first, second):
            if (isinstance(it, str | list) and len(it) > _LONGEST) or (isinstance(it, int) and abs(it) > 1 << 64):
                return UNKNOWN
        return work(first, second)
