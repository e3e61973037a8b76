"""Rules about what all workers must do together: train one model, and each of its collectives in every task."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from phalanx.script.module import Module
from phalanx.script.picks import PLAIN, Picks, training
from phalanx.script.program import Program, Roles
from phalanx.script.rule import Hit, Rule
from phalanx.script.scopes import Scopes
from phalanx.tfconfig.finding import Severity

#: Methods of a model that end in collectives of all workers.
_COLLECTIVE = ("fit", "evaluate", "predict", "train_on_batch")
#: As `PLAIN`, with a chief.
_LED = Roles(chief=1, worker=1)


class Apart(NamedTuple):
    """A call of `fit`, and of what made its model."""

    module: Module
    fit: ast.Call
    home: Module
    made: ast.Call


def outside(program: Program) -> Iterator[Apart]:
    """The fits under MultiWorkerMirroredStrategy whose model is surely made in no scope."""
    sure = any(step.sure for step in program.strategies)
    if program.strategy != "mwms" or program.alone or not sure:
        return
    scopes = Scopes(program=program)
    for module, call, _ in program.fits:
        if isinstance(call.func, ast.Attribute) and program.happens(call):
            made = scopes.outside(module, call.func.value)
            if made is not None:
                yield Apart(module, call, *made)


def _outside(program: Program) -> Iterator[Hit]:
    for module, fit, home, made in outside(program):
        where = f"on line {made.lineno}" + (f" of {home.path}" if home is not module else "")
        yield Hit(module, fit, f"the model of `{_named(fit)}` is built outside strategy.scope(), {where}")


def _in_one(program: Program) -> Iterator[Hit]:
    if program.strategy != "mwms" or program.alone or not program.strategies:
        return
    picks, scopes = Picks(program=program), Scopes(program=program)
    for module, node, model, _ in program.methods(*_COLLECTIVE):
        test = _deciding(picks, module, node)
        if test is not None and scopes.inside(module, model):
            said = f"`{_named(node)}` is for every worker, and `{ast.unparse(test)[:60]}` lets some do it"
            yield Hit(module, node, said, severity=Severity.WARNING)


def _deciding(picks: Picks, module: Module, node: ast.AST) -> ast.expr | None:
    """The test around it that picks some of the tasks that train, where the others do nothing of the kind."""
    below, at = node, module.parents.get(node)
    while at is not None and not isinstance(at, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
        if isinstance(at, ast.If) and below is not at.test:
            others = at.orelse if below in at.body else at.body
            if _some(picks, module, at.test) and not _collective(others):
                return at.test
        below, at = at, module.parents.get(at)
    return None


def _some(picks: Picks, module: Module, test: ast.expr) -> bool:
    roles = picks.program.roles
    if roles is not None:
        answers = picks.of(module, test, training(roles))
        return True in answers and False in answers
    return {*picks.of(module, test, training(PLAIN))} == {True, False} or (
        picks.of(module, test, training(_LED)) in ((True, False), (False, True)) and "chief" in ast.unparse(test)
    )


def _collective(body: Sequence[ast.stmt]) -> bool:
    return any(
        isinstance(it, ast.Attribute) and it.attr in _COLLECTIVE for statement in body for it in ast.walk(statement)
    )


def _named(call: ast.Call) -> str:
    return f"{ast.unparse(call.func)[:60]}()"


RULES = (
    Rule(
        id="model-outside-scope",
        severity=Severity.WARNING,
        message="A model that is built outside strategy.scope() is trained under MultiWorkerMirroredStrategy.",
        find=_outside,
        consequence="fit trains a model of its own in each worker, or fails.",
        fix="build and compile the model within `with strategy.scope():`",
        source="measured on TensorFlow 2.21, Keras 3.15",
    ),
    Rule(
        id="collective-in-one-task",
        severity=Severity.WARNING,
        message="A method of a distributed model that all workers do together is called in some of them only.",
        find=_in_one,
        consequence="It waits for the other workers, which never come: the job hangs, or fails when they end.",
        fix="call it in every task, and let one print or save what comes of it",
        source="measured on TensorFlow 2.21, Keras 3.15",
    ),
)
