"""What a program does from its first line on, in order: its calls, through the functions it calls. Nothing is run."""

from __future__ import annotations

import ast
import dataclasses
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from phalanx.agent.preflight.imports import absolute
from phalanx.script.module import Function, Module, argument

#: Calls within calls that are followed, and what is recorded at most: enough for a script, an end for a repository.
_DEEP, _MOST = 12, 5000

#: These call the function they are given.
_RUNNERS = ("absl.app.run", "tensorflow.compat.v1.app.run", "tensorflow.app.run", "fire.Fire")
_EXITS = ("sys.exit", "os._exit", "os.abort")
#: Decorators that leave a call what it is.
_PLAIN = ("tensorflow.function", "staticmethod", "classmethod", "property", "functools.cache", "functools.lru_cache")


class Guard(NamedTuple):
    """A condition under which a step happens: the statement, and which part of it.

    `role`: it asks for the task's type, so that what follows from it happens in some task of every job.
    """

    node: ast.AST
    arm: str
    role: bool = False


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Step:
    """Something that happens: a call, or a statement that changes `os.environ`.

    `name` is the dotted name of what is called. `guards`, outermost first, are what it depends on; none: it always
    happens, as far as nothing before it raises.
    """

    module: Module
    node: ast.AST
    name: str | None
    guards: tuple[Guard, ...]

    @property
    def sure(self) -> bool:
        """Whether it happens in some task at least, whatever flags and variables say."""
        return all(guard.role for guard in self.guards)

    def leads_to(self, later: Step) -> bool:
        """Whether it has always happened when `later`, a step after it, does."""
        return self.guards == later.guards[: len(self.guards)]


@dataclasses.dataclass(frozen=True, slots=True)
class _Frame:
    """Where the walk is: `own` are functions defined inside this one, `kinds` variables that hold an own class."""

    module: Module
    guards: tuple[Guard, ...] = ()
    own: Mapping[str, Function] = dataclasses.field(default_factory=dict)
    kinds: dict[str, tuple[Module, ast.ClassDef]] = dataclasses.field(default_factory=dict)
    depth: int = 0

    def under(self, node: ast.AST, arm: str) -> _Frame:
        role = isinstance(node, ast.If) and _asks_for_role(node.test)
        return dataclasses.replace(self, guards=(*self.guards, Guard(node, arm, role)))


class Walked(NamedTuple):
    """The steps of a program in order, and the statements that happen whatever flags and variables say.

    `sure` in some task at least, `everywhere` in all of them.
    """

    steps: tuple[Step, ...]
    sure: frozenset[ast.AST]
    everywhere: frozenset[ast.AST]


def walk(main: Module, others: Iterable[Module]) -> Walked:
    """What the script `main` does, as far as it can be followed; `others` are modules of its own."""
    walker = _Walk(main, {module.name: module for module in others})
    walker.loads([main.package], _Frame(main))  # Python runs the packages around a module before itself
    walker.body(main.tree.body, _Frame(main))
    return Walked(tuple(walker.steps), frozenset(walker.sure), frozenset(walker.everywhere))


class _Walk:
    def __init__(self, main: Module, modules: Mapping[str, Module]) -> None:
        self.steps: list[Step] = []
        self.sure: set[ast.AST] = set()
        self.everywhere: set[ast.AST] = set()
        self._main = main
        self._modules = modules
        self._imported: set[str] = set()
        self._entered: dict[Function, list[tuple[Guard, ...]]] = {}

    def body(self, body: Sequence[ast.stmt], frame: _Frame) -> None:
        """A statement after one that may leave is under the condition that it has not."""
        own = {node.name: node for node in body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}
        if own:
            frame = dataclasses.replace(frame, own={**frame.own, **own})
        for statement in body:
            if len(self.steps) >= _MOST:
                return
            if all(guard.role for guard in frame.guards):
                self.sure.add(statement)
            if not frame.guards:
                self.everywhere.add(statement)
            self._statement(statement, frame)
            if isinstance(statement, ast.If) and self._leaves(statement.body, frame.module):
                frame = frame.under(statement, "else")
            elif not isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) and _may_leave(
                statement, frame.module
            ):
                frame = frame.under(statement, "past")

    def _statement(self, statement: ast.stmt, frame: _Frame) -> None:  # noqa: C901, PLR0912 - a table of statements
        match statement:
            case ast.Import() | ast.ImportFrom():
                self._import(statement, frame)
            case ast.FunctionDef(args=args) | ast.AsyncFunctionDef(args=args):
                self._all([*statement.decorator_list, *args.defaults, *filter(None, args.kw_defaults)], frame)
            case ast.ClassDef():
                self._all([*statement.decorator_list, *statement.bases], frame)
                self.body(statement.body, frame)
            case ast.If(test=test, body=body, orelse=other):
                self._expression(test, frame)
                if _is_main(test):
                    self.body(body if frame.module is self._main else other, frame)
                elif isinstance(test, ast.Constant):
                    self.body(body if test.value else other, frame)
                elif not _is_typing(test):
                    self.body(body, frame.under(statement, "then"))
                    self.body(other, frame.under(statement, "else"))
            case ast.For(iter=source, body=body, orelse=other) | ast.AsyncFor(iter=source, body=body, orelse=other):
                self._expression(source, frame)
                self.body([*body, *other], frame if _enters(source, frame.module) else frame.under(statement, "loop"))
            case ast.While(test=test, body=body, orelse=other):
                self._expression(test, frame)
                always = isinstance(test, ast.Constant) and bool(test.value)
                self.body([*body, *other], frame if always else frame.under(statement, "loop"))
            case ast.Try(body=body, handlers=handlers, orelse=other, finalbody=last):
                self.body([*body, *other], frame.under(statement, "try"))
                for handler in handlers:
                    self.body(handler.body, frame.under(handler, "except"))
                self.body(last, frame)
            case ast.With(items=items, body=body) | ast.AsyncWith(items=items, body=body):
                for item in items:
                    self._expression(item.context_expr, frame)
                self.body(body, frame)
            case ast.Match(subject=subject, cases=cases):
                self._expression(subject, frame)
                for case in cases:
                    self.body(case.body, frame.under(case, "case"))
            case _:
                self._all(ast.iter_child_nodes(statement), frame)
                self._kind(statement, frame)
                if _changes_environment(statement, frame.module):
                    self.steps.append(Step(frame.module, statement, None, frame.guards))

    def _import(self, statement: ast.Import | ast.ImportFrom, frame: _Frame) -> None:
        """The first import of a module of the program's own runs it."""
        if isinstance(statement, ast.Import):
            names = [alias.name for alias in statement.names]
        else:
            base = absolute(statement, frame.module.package) or ""
            names = [base, *(f"{base}.{alias.name}" for alias in statement.names)]
        self.loads(names, frame)

    def loads(self, names: Iterable[str], frame: _Frame) -> None:
        """Those of these modules, and of the packages around them, that are the program's own run now."""
        for name in names:
            parts = name.split(".")
            for length in range(1, len(parts) + 1):
                dotted = ".".join(parts[:length])
                module = self._modules.get(dotted)
                if module is not None and dotted not in self._imported and frame.depth < _DEEP:
                    self._imported.add(dotted)
                    self.body(module.tree.body, _Frame(module, frame.guards, depth=frame.depth + 1))

    def _all(self, nodes: Iterable[ast.AST], frame: _Frame) -> None:
        for node in nodes:
            self._expression(node, frame)

    def _expression(self, node: ast.AST, frame: _Frame) -> None:
        """The calls in it, arguments before the call itself."""
        match node:
            case ast.Lambda():
                return
            case ast.BoolOp(values=[first, *rest]):
                self._expression(first, frame)
                self._all(rest, frame.under(node, "and"))
            case ast.IfExp(test=test, body=body, orelse=other):
                self._expression(test, frame)
                self._expression(body, frame.under(node, "then"))
                self._expression(other, frame.under(node, "else"))
            case ast.ListComp() | ast.SetComp() | ast.GeneratorExp() | ast.DictComp():
                self._expression(node.generators[0].iter, frame)
                inner = frame.under(node, "loop")
                self._all(
                    [*node.generators[1:], *([node.key, node.value] if isinstance(node, ast.DictComp) else [node.elt])],
                    inner,
                )
            case ast.Call():
                self._all(ast.iter_child_nodes(node), frame)
                self._call(node, frame)
            case _:
                self._all(ast.iter_child_nodes(node), frame)

    def _call(self, call: ast.Call, frame: _Frame) -> None:
        if len(self.steps) >= _MOST:
            return
        name = frame.module.dotted(call.func)
        self.steps.append(Step(frame.module, call, name, frame.guards))
        if name in _RUNNERS:
            self._run(call, frame)
            return
        found = self._target(call.func, name, frame)
        if found is None:
            return
        module, target, kinds = found
        if isinstance(target, ast.ClassDef):
            own = _methods(target).get("__init__")
            if own is not None:
                self._enter(module, own, frame, {"self": (module, target)})
        else:
            self._enter(module, target, frame, kinds)

    def _run(self, call: ast.Call, frame: _Frame) -> None:
        given = argument(call, 0, "main")
        name = given.id if isinstance(given, ast.Name) else "main" if given is None else ""
        function = frame.own.get(name) or frame.module.functions.get(name)
        if function is not None:
            self._enter(frame.module, function, frame, {})

    def _target(
        self, func: ast.expr, name: str | None, frame: _Frame
    ) -> tuple[Module, Function | ast.ClassDef, dict[str, tuple[Module, ast.ClassDef]]] | None:
        if isinstance(func, ast.Name):
            found = frame.own.get(func.id) or frame.module.functions.get(func.id) or frame.module.classes.get(func.id)
            if found is not None:
                return frame.module, found, frame.kinds if func.id in frame.own else {}
        if isinstance(func, ast.Attribute) and isinstance(func.value, ast.Name) and func.value.id in frame.kinds:
            module, kind = frame.kinds[func.value.id]
            method = _methods(kind).get(func.attr)
            return None if method is None else (module, method, {"self": (module, kind)})
        if name is not None:
            home, _, last = name.rpartition(".")
            module_of = self._modules.get(home)
            if module_of is not None and (it := module_of.functions.get(last) or module_of.classes.get(last)):
                return module_of, it, {}
        return None

    def _enter(
        self, module: Module, function: Function, frame: _Frame, kinds: dict[str, tuple[Module, ast.ClassDef]]
    ) -> None:
        """Follow a call, unless it was before under no more conditions. An unknown decorator may do anything."""
        before = self._entered.setdefault(function, [])
        seen = any(guards == frame.guards[: len(guards)] for guards in before)
        if seen or frame.depth >= _DEEP or isinstance(function, ast.AsyncFunctionDef) or _is_generator(function):
            return
        if any(_decorator(node, module) not in _PLAIN for node in function.decorator_list):
            return
        before.append(frame.guards)
        own = frame.own if module is frame.module else {}
        self.body(function.body, _Frame(module, frame.guards, own, dict(kinds), frame.depth + 1))

    def _kind(self, statement: ast.stmt, frame: _Frame) -> None:
        """`trainer = Trainer(...)`: which class a variable holds."""
        if not (isinstance(statement, ast.Assign) and isinstance(statement.value, ast.Call)):
            return
        found = self._target(statement.value.func, frame.module.dotted(statement.value.func), frame)
        for target in statement.targets:
            if isinstance(target, ast.Name):
                frame.kinds.pop(target.id, None)
                if found is not None and isinstance(found[1], ast.ClassDef):
                    frame.kinds[target.id] = found[0], found[1]

    @staticmethod
    def _leaves(body: Sequence[ast.stmt], module: Module) -> bool:
        """Whether what follows the block is never reached from its end."""
        last = body[-1]
        match last:
            case ast.Return() | ast.Raise() | ast.Continue() | ast.Break():
                return True
            case ast.Expr(value=ast.Call(func=func)):
                return _exits(func, module)
            case ast.If(body=inner, orelse=other) if other:
                return _Walk._leaves(inner, module) and _Walk._leaves(other, module)
        return False


def _enters(source: ast.expr, module: Module) -> bool:
    """Whether a loop over it is surely entered: `range(EPOCHS)` of a number above 0, a list that is written out."""
    match source:
        case ast.Call(func=ast.Name(id="enumerate" | "reversed" | "tqdm"), args=[inner, *_]):
            return _enters(inner, module)
        case ast.Call(func=ast.Name(id="range"), args=[ast.Constant(value=int() as times)]):
            return times > 0
        case ast.Call(func=ast.Name(id="range"), args=[ast.Name(id=name)]):
            return module.numbers.get(name, 0) > 0
        case ast.Tuple(elts=[first, *_]) | ast.List(elts=[first, *_]):
            return not isinstance(first, ast.Starred)
    return False


def _may_leave(statement: ast.stmt, module: Module) -> bool:
    """Whether something in it may end the block it stands in."""
    waiting: list[ast.AST] = [statement]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Return | ast.Raise | ast.Continue | ast.Break):
            return True
        if isinstance(node, ast.Call) and _exits(node.func, module):
            return True
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.ClassDef):
            waiting += ast.iter_child_nodes(node)
    return False


def _exits(func: ast.expr, module: Module) -> bool:
    return module.dotted(func) in _EXITS or (isinstance(func, ast.Name) and func.id in ("exit", "quit"))


def _changes_environment(statement: ast.stmt, module: Module) -> bool:
    targets: Iterator[ast.expr]
    match statement:
        case ast.Assign(targets=those) | ast.Delete(targets=those):
            targets = iter(those)
        case _:
            return False
    return any(isinstance(it, ast.Subscript) and module.dotted(it.value) == "os.environ" for it in targets)


def _decorator(node: ast.expr, module: Module) -> str | None:
    target = node.func if isinstance(node, ast.Call) else node
    return module.dotted(target) or (target.id if isinstance(target, ast.Name) else None)


def _is_generator(function: Function) -> bool:
    waiting: list[ast.AST] = [*function.body]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Yield | ast.YieldFrom):
            return True
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            waiting += ast.iter_child_nodes(node)
    return False


def _methods(kind: ast.ClassDef) -> dict[str, Function]:
    return {node.name: node for node in kind.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}


def _asks_for_role(test: ast.expr) -> bool:
    """`resolver.task_type in ("worker", "ps")`: told by the ps or the evaluator in it, and by nothing else asked."""
    match test:
        case ast.Compare(left=left, comparators=[right]):
            said = {it.value for it in ast.walk(right) if isinstance(it, ast.Constant) and isinstance(it.value, str)}
            asked = ast.unparse(left).lower()
            return bool(said & {"ps", "evaluator"}) and ("type" in asked or "job_name" in asked or "role" in asked)
    return False


def _is_main(test: ast.expr) -> bool:
    match test:
        case ast.Compare(left=ast.Name(id="__name__"), ops=[ast.Eq()], comparators=[ast.Constant(value="__main__")]):
            return True
        case ast.Compare(left=ast.Constant(value="__main__"), ops=[ast.Eq()], comparators=[ast.Name(id="__name__")]):
            return True
    return False


def _is_typing(test: ast.expr) -> bool:
    return (isinstance(test, ast.Name) and test.id == "TYPE_CHECKING") or (
        isinstance(test, ast.Attribute) and test.attr == "TYPE_CHECKING"
    )
