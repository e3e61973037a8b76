"""The user's program as the rules see it: its files, the order of what it does, and what is known around it."""

from __future__ import annotations

import ast
import dataclasses
import functools
import sys
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from phalanx.agent.preflight.imports import absolute
from phalanx.script.environment import Change, changes
from phalanx.script.installed import Installed
from phalanx.script.known import HARMLESS, STRATEGIES
from phalanx.script.module import Function, Module, roots
from phalanx.script.values import UNKNOWN, Values
from phalanx.script.walk import Step, Walked, walk
from phalanx.tfconfig.finding import Severity

_LEGACY = "TF_USE_LEGACY_KERAS"
#: Names of Keras that build a model.
MODELS = ("Sequential", "Model", "models.Sequential", "models.Model")
_LOADERS = ("models.load_model", "saving.load_model")
_DEEP = 8


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Roles:
    """How many tasks of each type run the script; the job that `run` or `plan` was asked for."""

    chief: int = 0
    worker: int = 0
    ps: int = 0
    evaluator: int = 0
    #: Whether a worker or a ps is among those that run it, and not only in the cluster.
    serves: bool = True

    @property
    def training(self) -> int:
        """How many train: the chief and the workers."""
        return self.chief + self.worker


class Called(NamedTuple):
    """A call as it stands in the text, with its dotted name."""

    module: Module
    node: ast.Call
    name: str


class Method(NamedTuple):
    """A call of a method of something, which `holder` is."""

    module: Module
    node: ast.Call
    holder: ast.expr
    name: str


class Keras(NamedTuple):
    """A name of Keras: which one will answer (2, 3), and the name below the package."""

    generation: int
    name: str

    @property
    def is_model(self) -> bool:
        """Whether it makes a model."""
        return self.name in MODELS or self.name.startswith("applications.")


@dataclasses.dataclass(frozen=True, kw_only=True, eq=False)
class Program:
    """A script with the modules beside it. None, for a version or the roles: not known.

    `legacy` says that TF_USE_LEGACY_KERAS is set around it, `mends` that `fit` of Keras 3 is made to work from inside;
    `arguments` are the words the script is called with.
    """

    main: Module
    others: tuple[Module, ...] = ()
    tensorflow: tuple[int, ...] | None = None
    keras: tuple[int, ...] | None = None
    installed: Installed | None = None
    legacy: bool = False
    mends: bool | None = None
    roles: Roles | None = None
    arguments: tuple[str, ...] | None = None

    @functools.cached_property
    def modules(self) -> tuple[Module, ...]:
        """The script first."""
        return (self.main, *self.others)

    @functools.cached_property
    def steps(self) -> tuple[Step, ...]:
        """What it does, in order."""
        return self._walked.steps

    @functools.cached_property
    def _walked(self) -> Walked:
        return walk(self.main, self.others)

    @functools.cached_property
    def calls(self) -> tuple[Called, ...]:
        """Every call whose name is known, whether it is ever reached or not."""
        return tuple(
            Called(module, node, name)
            for module in self.modules
            for node in module.nodes
            if isinstance(node, ast.Call) and (name := module.dotted(node.func)) is not None
        )

    def methods(self, *names: str) -> Iterator[Method]:
        """Every call of a method of one of these names, whether it is ever reached or not."""
        return (method for method in self._methods if method.name in names)

    @functools.cached_property
    def _methods(self) -> tuple[Method, ...]:
        return tuple(
            Method(module, node, node.func.value, node.func.attr)
            for module in self.modules
            for node in module.nodes
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
        )

    @functools.cached_property
    def changes(self) -> tuple[Change, ...]:
        """Where it changes its environment."""
        return tuple(change for module in self.modules for change in changes(module))

    @functools.cached_property
    def words(self) -> frozenset[str]:
        """Every identifier of the program."""
        return frozenset[str]().union(*(module.words for module in self.modules))

    @functools.cached_property
    def strings(self) -> frozenset[str]:
        """Every text constant of the program."""
        return frozenset[str]().union(*(module.strings for module in self.modules))

    @functools.cached_property
    def strategies(self) -> tuple[Step, ...]:
        """The steps that build a strategy of several processes."""
        return tuple(step for step in self.steps if step.name in STRATEGIES)

    @functools.cached_property
    def strategy(self) -> str | None:
        """`mwms` or `ps`, where every strategy it names is of that kind; None for none, or several."""
        kinds = {STRATEGIES[call.name] for call in self.calls if call.name in STRATEGIES}
        return next(iter(kinds)) if len(kinds) == 1 else None

    @property
    def alone(self) -> bool:
        """Whether the job has one task that trains: none to train with."""
        return self.roles is not None and self.roles.training < 2  # noqa: PLR2004 - one

    def unless_sure(self, kind: str) -> Severity | None:
        """A warning for what follows from a strategy of that kind, where it hangs on a flag whether it is built."""
        sure = any(step.sure and STRATEGIES[step.name or ""] == kind for step in self.strategies)
        return None if sure else Severity.WARNING

    @functools.cached_property
    def closed(self) -> bool:
        """Whether all of it is seen: what it imports is its own, Python's, or known to build no strategy."""
        own = {(module.name or module.package).partition(".")[0] for module in self.modules}
        fine = own | HARMLESS | sys.stdlib_module_names
        dynamic = {"importlib", "exec", "eval", "runpy", "__import__"}
        return not (self.words & dynamic) and all(
            fine.issuperset(roots(node)) and self._followed(module, node)
            for module in self.modules
            for node in module.nodes
        )

    def _followed(self, module: Module, node: ast.AST) -> bool:
        """Whether what it imports relatively, if it does, is read as well."""
        if not isinstance(node, ast.ImportFrom) or not node.level:
            return True
        base, names = absolute(node, module.package), {other.name for other in self.others}
        return base in names or all(f"{base}.{alias.name}" in names for alias in node.names)

    def says(self, text: str) -> bool:
        """Whether a text constant of the program holds it."""
        return any(text in string for string in self.strings)

    def values(self, module: Module) -> Values:
        """The values of one of its files."""
        return self._values[module]

    def value(self, module: Module, node: ast.expr | None) -> Any:
        """The value of an expression; UNKNOWN where the text does not say."""
        return self._values[module].of(node)

    def happens(self, node: ast.AST) -> bool:
        """Whether there is a step at this node, under whatever conditions."""
        return any(step.node is node for step in self.steps)

    def always(self, node: ast.AST) -> bool:
        """Whether the step at this node happens whatever flags and variables say."""
        return any(step.node is node and step.sure for step in self.steps)

    def reached(self, module: Module, node: ast.AST, *, everywhere: bool = False) -> bool:
        """Whether it surely happens: under no condition, at module level or in a function that is always called.

        What comes after a way out of the function counts as a condition; the task's own type does, if `everywhere`.
        """
        at: ast.AST | None = node
        while at is not None and not isinstance(at, ast.stmt):
            if isinstance(at, ast.Lambda | ast.IfExp | ast.BoolOp | ast.ListComp | ast.GeneratorExp | ast.DictComp):
                return False
            at = module.parents.get(at)
        return at in (self._walked.everywhere if everywhere else self._walked.sure)

    @functools.cached_property
    def _values(self) -> Mapping[Module, Values]:
        return {
            module: Values(module=module, arguments=self.arguments if module is self.main else None)
            for module in self.modules
        }

    def constant(self, module: Module, node: ast.expr | None) -> Any:
        """The same, where a flag counts only if the command says it."""
        arguments = self.arguments if module is self.main else None
        return Values(module=module, arguments=arguments, defaults=False).of(node)

    @functools.cached_property
    def uses_legacy(self) -> bool | None:
        """Whether `tf.keras` is tf_keras; None where the program decides that in a way that is not read."""
        if self.legacy:
            return True
        for change in self.changes:
            if change.name == _LEGACY:
                said = self.value(change.module, change.value)
                return None if said is UNKNOWN else str(said) in ("1", "True", "true")
        return None if self.says(_LEGACY) else False

    def keras_name(self, dotted: str) -> Keras | None:
        """The name as one of Keras; None for another package's, or where it is open which Keras would answer."""
        for root in ("tensorflow.keras", "tf_keras", "keras"):
            if dotted == root or dotted.startswith(f"{root}."):
                generation = self._generation(root)
                return None if generation is None else Keras(generation, dotted[len(root) + 1 :])
        return None

    def _generation(self, root: str) -> int | None:
        if root == "tf_keras":
            return 2
        if root == "tensorflow.keras":
            if self.uses_legacy is not False:
                return 2 if self.uses_legacy else None
            if self.tensorflow is not None and self.tensorflow < (2, 16):
                return 2
        return None if self.keras is None else 3 if self.keras >= (3,) else 2

    def maker(self, module: Module, node: ast.expr | None, depth: int = 0) -> str | None:
        """The dotted name of the call that made a value: `model` → `keras.Sequential`. None where that is not sure."""
        if node is None or depth > _DEEP:
            return None
        match node:
            case ast.Name():
                return self.maker(module, self._values[module].assigned(node), depth + 1)
            case ast.Attribute(value=ast.Name(id="self"), attr=attr):
                stored = [
                    it.value
                    for it in module.nodes
                    if isinstance(it, ast.Assign) and any(_is_own(target, attr) for target in it.targets)
                ]
                return self.maker(module, stored[0], depth + 1) if len(stored) == 1 else None
            case ast.Call(func=func):
                return self._made_by(module, func, depth)
        return None

    def _made_by(self, module: Module, func: ast.expr, depth: int) -> str | None:
        home, name = self._home(module, func)
        if home is None:
            return module.dotted(func)
        if (kind := home.classes.get(name)) is not None:
            bases = {home.dotted(base) for base in kind.bases}
            return bases.pop() if len(bases) == 1 else None
        returned = self.returned(module, func)
        return None if returned is None else self.maker(*returned, depth + 1)

    def returned(self, module: Module, func: ast.expr) -> tuple[Module, ast.expr] | None:
        """What an own function returns, where it does so in one place."""
        home, name = self._home(module, func)
        function = home.functions.get(name) if home is not None else None
        if home is None or function is None:
            return None
        values = [it.value for it in ast.walk(function) if isinstance(it, ast.Return) and home.scope_of(it) is function]
        return (home, values[0]) if len(values) == 1 and values[0] is not None else None

    def function(self, module: Module, func: ast.expr) -> Function | None:
        """The own function that a name stands for."""
        home, name = self._home(module, func)
        return home.functions.get(name) if home is not None else None

    def _home(self, module: Module, func: ast.expr) -> tuple[Module | None, str]:
        """The own module that a called name is of, and the name there; None for another package's."""
        dotted = module.dotted(func)
        if dotted is None:
            return module, func.id if isinstance(func, ast.Name) else ""
        package, _, name = dotted.rpartition(".")
        return next((other for other in self.others if other.name == package), None), name

    @functools.cached_property
    def fits(self) -> tuple[tuple[Module, ast.Call, int], ...]:
        """Each `model.fit(...)` of a Keras model, with the Keras that will answer."""
        return tuple(self._fits())

    def _fits(self) -> Iterator[tuple[Module, ast.Call, int]]:
        compiled = {(module, ast.dump(holder)) for module, _, holder, _ in self.methods("compile")}
        for module, node, holder, _ in self.methods("fit"):
            made = self.keras_name(self.maker(module, holder) or "")
            if made is not None and (made.is_model or made.name in _LOADERS):
                yield module, node, made.generation
            elif (module, ast.dump(holder)) in compiled and (only := self._only_keras()) is not None:
                yield module, node, only

    def _only_keras(self) -> int | None:
        """The one Keras that the program's names are of."""
        roots = {
            root
            for module in self.modules
            for dotted in module.bindings.values()
            for root in ("tensorflow.keras", "tf_keras", "keras")
            if dotted == root or dotted.startswith(f"{root}.")
        }
        if self._spelled("tensorflow.keras"):
            roots.add("tensorflow.keras")
        found = {self._generation(root) for root in roots}
        return found.pop() if len(found) == 1 else None

    def _spelled(self, root: str) -> bool:
        return any(
            module.dotted(node) == root
            for module in self.modules
            for node in module.nodes
            if isinstance(node, ast.Attribute)
        )


def _is_own(target: ast.expr, attr: str) -> bool:
    return (
        isinstance(target, ast.Attribute)
        and target.attr == attr
        and isinstance(target.value, ast.Name)
        and target.value.id == "self"
    )
