"""In which tasks of a cluster a test of the task's type and index is true: "am I the chief?", asked by the script."""

from __future__ import annotations

import ast
import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

from phalanx.script.module import Function, Module, argument
from phalanx.script.program import Program, Roles

#: Where nobody says how many there are: what `phalanx run --workers 2` makes.
PLAIN = Roles(worker=2)
#: What a script calls the two parts of its task; `["task"]["type"]` is read besides.
_TYPES = frozenset({"task_type", "job_type", "tasktype"})
_INDICES = frozenset({"task_id", "task_index", "task_idx", "task_num", "taskid"})
#: Functions and names within each other that are followed.
_DEEP = 8
_ORDER: Mapping[type[ast.cmpop], Callable[[int, int], bool]] = {
    ast.Eq: lambda one, other: one == other,
    ast.NotEq: lambda one, other: one != other,
    ast.Gt: lambda one, other: one > other,
    ast.GtE: lambda one, other: one >= other,
    ast.Lt: lambda one, other: one < other,
    ast.LtE: lambda one, other: one <= other,
}


class Task(NamedTuple):
    """One that trains: its type and index, and whether its cluster has a chief."""

    kind: str
    number: int
    chief: bool

    def __str__(self) -> str:
        return f"{self.kind}:{self.number}"


class Test(NamedTuple):
    """A test as a whole: an expression, or the function whose result it is; `seed` is the part that asks for a task."""

    module: Module
    seed: ast.Compare
    whole: ast.expr | Function

    @property
    def shown(self) -> str:
        """As a person calls it."""
        if isinstance(self.whole, ast.expr):
            return ast.unparse(self.whole)[:60]
        return f"{self.whole.name}()"


def training(roles: Roles) -> tuple[Task, ...]:
    """The tasks of the cluster that train, the chief first."""
    there = roles.chief > 0
    return tuple(
        Task(kind, index, there)
        for kind, count in (("chief", roles.chief), ("worker", roles.worker))
        for index in range(count)
    )


@dataclasses.dataclass(frozen=True, kw_only=True, eq=False)
class Picks:
    """The tests of a program."""

    program: Program

    def tests(self) -> Iterator[Test]:
        """Each test that asks for the task's type or index, once."""
        told: set[ast.AST] = set()
        for module in self.program.modules:
            for node in module.nodes:
                if not (isinstance(node, ast.Compare) and self._asks(module, node)):
                    continue
                whole = self._whole(module, node)
                if whole is not None and whole not in told:
                    told.add(whole)
                    yield Test(module, node, whole)

    def answers(self, test: Test, tasks: Sequence[Task]) -> tuple[bool | None, ...]:
        """What it says in each of them; None where that hangs on something else."""
        return self.of(test.module, test.whole, tasks)

    def of(self, module: Module, node: ast.expr | Function, tasks: Sequence[Task]) -> tuple[bool | None, ...]:
        """The same of any expression, or of the result of a function."""
        return tuple(self._of(module, node, task, 0) for task in tasks)

    def _whole(self, module: Module, seed: ast.Compare) -> ast.expr | Function | None:
        """The function whose result it decides, else the largest expression around it; None: it hangs on more."""
        whole = _top(module, seed)
        function = module.scope_of(whole)
        statement = module.parents.get(whole)
        decides = isinstance(statement, ast.Return) or (isinstance(statement, ast.If) and _answers(statement.body))
        if function is not None and decides:
            return function
        if isinstance(statement, ast.If) and _asks_on(statement):
            return None
        if isinstance(statement, ast.Assign) and any(_is_part(module, target) for target in statement.targets):
            return None
        return whole

    def _asks(self, module: Module, node: ast.Compare) -> bool:
        return any(self._kind(module, side) is not None for side in (node.left, *node.comparators))

    def _of(self, module: Module, node: ast.AST, task: Task, depth: int) -> bool | None:  # noqa: C901, PLR0911 - a table
        if depth > _DEEP:
            return None
        match node:
            case ast.FunctionDef(body=body) | ast.AsyncFunctionDef(body=body):
                return self._returned(module, body, task, depth)
            case ast.Constant(value=bool() | None as value):
                return bool(value)
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                asked = self._of(module, operand, task, depth + 1)
                return None if asked is None else not asked
            case ast.BoolOp(op=op, values=values):
                return _joined([self._of(module, it, task, depth + 1) for it in values], isinstance(op, ast.Or))
            case ast.IfExp(test=test, body=body, orelse=other):
                asked = self._of(module, test, task, depth + 1)
                ways = [self._of(module, it, task, depth + 1) for it in (body, other)]
                return ways[0] if asked or (ways[0] is ways[1]) else None if asked is None else ways[1]
            case ast.Compare(left=left, ops=[op], comparators=[right]):
                return self._compared(module, left, op, right, task)
            case ast.Call(func=ast.Name(id="bool"), args=[only]):
                return self._of(module, only, task, depth + 1)
            case ast.Call(func=func):
                called = module.functions.get(func.id) if isinstance(func, ast.Name) else None
                return None if called is None else self._of(module, called, task, depth + 1)
            case ast.Name():
                stands_for = self.program.values(module).assigned(node)
                return None if stands_for is None else self._of(module, stands_for, task, depth + 1)
        return None

    def _returned(self, module: Module, body: Sequence[ast.stmt], task: Task, depth: int) -> bool | None:
        """What a function returns that only asks; one that does anything else says nothing."""
        for statement in body:
            match statement:
                case ast.Return(value=value):
                    return self._of(module, value or ast.Constant(value=None), task, depth + 1)
                case ast.If(test=test, body=then, orelse=other):
                    asked = self._of(module, test, task, depth + 1)
                    if asked is None:
                        return None
                    taken = then if asked else other
                    if taken and _leaves(taken):
                        return self._returned(module, taken, task, depth + 1)
                    if any(isinstance(it, ast.Return) for part in taken for it in ast.walk(part)):
                        return None
                case ast.Expr() | ast.Assign() | ast.AnnAssign() | ast.Pass() | ast.Import() | ast.ImportFrom():
                    continue
                case _:
                    return None
        return None

    def _compared(self, module: Module, left: ast.expr, op: ast.cmpop, right: ast.expr, task: Task) -> bool | None:
        if self._kind(module, left) is None and isinstance(op, ast.Eq | ast.NotEq):
            left, right = right, left
        turned = isinstance(op, ast.NotEq | ast.NotIn | ast.IsNot)
        kind = self._kind(module, left)
        if kind == "cluster":
            return turned != (task.chief and isinstance(left, ast.Constant) and left.value == "chief")
        if kind is not None and isinstance(right, ast.Constant) and right.value is None:
            return turned
        said = self.program.value(module, right)
        if kind == "type" and isinstance(op, ast.Eq | ast.NotEq) and isinstance(said, str):
            return turned != (said == task.kind)
        if kind == "type" and isinstance(op, ast.In | ast.NotIn):
            said = _texts(right)
            return None if said is None else turned != (task.kind in said)
        if kind == "index" and type(op) in _ORDER and isinstance(said, int):
            return _ORDER[type(op)](task.number, said)
        return None

    def _kind(self, module: Module, node: ast.expr, depth: int = 0) -> str | None:
        """`type` or `index` of the task, or `cluster` for the `"chief"` of `"chief" in cluster`."""
        if isinstance(node, ast.Constant):
            around = module.parents.get(node)
            asked = isinstance(around, ast.Compare) and isinstance(around.ops[0], ast.In | ast.NotIn)
            names = ast.unparse(around.comparators[0]).lower() if isinstance(around, ast.Compare) and asked else ""
            chiefs = node.value in ("chief", "master")
            return "cluster" if chiefs and any(word in names for word in ("cluster", "jobs", "spec")) else None
        name, of_task = _last(node)
        plain = name.lower().strip("_")
        found = "type" if plain in _TYPES or (of_task and plain == "type") else None
        if plain in _INDICES or (of_task and plain in ("index", "id")):
            found = "index"
        if found is not None:
            return None if self.program.values(module).from_flags(node) else found
        if isinstance(node, ast.Name) and depth < _DEEP:
            value = self.program.values(module).assigned(node)
            return None if value is None else self._kind(module, value, depth + 1)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("int", "str"):
            return self._kind(module, node.args[0], depth + 1) if len(node.args) == 1 and depth < _DEEP else None
        return None


def _last(node: ast.expr) -> tuple[str, bool]:
    """The last name of `a.b`, `a["b"]` and `a.get("b")`, and whether it is looked up in something called a task."""
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name, False
        case ast.Subscript(value=base, slice=ast.Constant(value=str(name))):
            return name, "task" in ast.unparse(base).lower()
        case ast.Call(func=ast.Attribute(value=base, attr="get")):
            key = argument(node, 0)
            if isinstance(key, ast.Constant) and isinstance(key.value, str):
                return key.value, "task" in ast.unparse(base).lower()
    return "", False


def _top(module: Module, node: ast.expr) -> ast.expr:
    """The largest test that it is a part of."""
    at = node
    while True:
        match module.parents.get(at):
            case ast.BoolOp() | ast.UnaryOp() | ast.Call(func=ast.Name(id="bool")) as above:
                at = above
            case ast.IfExp(body=body, orelse=other) as above if _is_test(body) and _is_test(other):
                at = above
            case _:
                return at


def _is_test(node: ast.expr) -> bool:
    """Whether it is one by its look: what is chosen between two paths is none."""
    return isinstance(node, ast.Compare | ast.BoolOp | ast.UnaryOp) or (
        isinstance(node, ast.Constant) and isinstance(node.value, bool)
    )


def _joined(values: Sequence[bool | None], either: bool) -> bool | None:  # noqa: FBT001 - and, or
    if either in values:
        return either
    return None if None in values else not either


def _answers(body: Sequence[ast.stmt]) -> bool:
    """Whether a block ends in a value that is returned."""
    last = body[-1]
    return isinstance(last, ast.Return) and last.value is not None


def _leaves(body: Sequence[ast.stmt]) -> bool:
    return isinstance(body[-1], ast.Return)


def _asks_on(statement: ast.If) -> bool:
    """`if type == "chief": … elif type == "worker": …`: a way for each."""
    match statement.orelse:
        case [ast.If(test=test)]:
            return any(isinstance(it, ast.Constant) and it.value == "worker" for it in ast.walk(test))
    return False


def _is_part(module: Module, target: ast.expr) -> bool:
    """Whether a test that has a name is used within a larger one."""
    return isinstance(target, ast.Name) and any(
        isinstance(it, ast.Name)
        and it.id == target.id
        and isinstance(it.ctx, ast.Load)
        and isinstance(module.parents.get(it), ast.BoolOp | ast.IfExp)
        for it in module.nodes
    )


def _texts(node: ast.expr) -> list[str] | None:
    """`("chief", "worker")`; None for what is not written out."""
    if not isinstance(node, ast.Tuple | ast.List | ast.Set):
        return None
    found = [it.value for it in node.elts if isinstance(it, ast.Constant) and isinstance(it.value, str)]
    return found if len(found) == len(node.elts) else None
