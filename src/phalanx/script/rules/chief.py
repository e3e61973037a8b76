"""Rules about the script's test for the chief: whom it picks out of the tasks that the job has."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from phalanx.script.picks import PLAIN, Picks, Test, training
from phalanx.script.program import Program, Roles
from phalanx.script.rule import Hit, Rule
from phalanx.tfconfig.finding import Severity

_SAVES = frozenset({"save", "save_weights", "export", "save_model", "rmtree", "write"})


def _others(roles: Roles) -> Roles:
    """The same number of tasks, with a chief for one without, and the other way round."""
    return Roles(worker=roles.training) if roles.chief else Roles(chief=1, worker=roles.training - 1)


def _nowhere(program: Program) -> Iterator[Hit]:
    """It picks nobody here, and somebody in a cluster with a chief; `master` picks nobody anywhere."""
    if program.alone or program.strategy != "mwms":
        return
    roles = program.roles or PLAIN
    picks = Picks(program=program)
    for test in picks.tests():
        asked = _names(test)
        here = picks.answers(test, training(roles))
        there = picks.answers(test, training(_others(roles)))
        for nobody in (False, True):
            away = not asked & {"chief", "master"} or any(answer is not nobody for answer in here)
            if away or ("master" not in asked and all(answer is nobody for answer in there)):
                continue
            without = "a cluster" if roles.chief else "a cluster without a chief"
            told = "true in every task" if nobody else "true in no task"
            yield Hit(
                test.module,
                test.seed,
                f"in {without} `{test.shown}` is {told}",
                fix="ask for the chief, or worker 0 where there is none; TensorFlow 2 knows no master"
                if "chief" not in asked
                else "",
                severity=_sure(program, test, Severity.WARNING),
            )


def _twice(program: Program) -> Iterator[Hit]:
    """By the index alone, where the chief and worker 0 have the same."""
    for test, picked in _with_chief(program):
        if len(picked) > 1:
            who = " and ".join(picked[:2])
            said = f"`{test.shown}` makes a chief of {who}"
            yield Hit(test.module, test.seed, said, severity=_sure(program, test, Severity.WARNING))


def _another(program: Program) -> Iterator[Hit]:
    for test, picked in _with_chief(program):
        if len(picked) == 1 and picked != ["chief:0"]:
            yield Hit(test.module, test.seed, f"`{test.shown}` makes a chief of {picked[0]}, and the job has chief:0")


def _sure(program: Program, test: Test, severity: Severity) -> Severity | None:
    """That `b` of `a or b` may not be looked at is no condition: the whole is."""
    statement: ast.AST = test.seed
    while not isinstance(statement, ast.stmt):
        statement = test.module.parents[statement]
    return severity if program.reached(test.module, statement) else None


def _with_chief(program: Program) -> Iterator[tuple[Test, list[str]]]:
    """The tests by which one saves for all, and whom each picks in this job, if without its chief it would pick one."""
    if program.roles is None or not program.roles.chief or program.alone or program.strategy != "mwms":
        return
    picks = Picks(program=program)
    tasks = training(program.roles)
    for test in picks.tests():
        if not _is_about_chief(test):
            continue
        here = picks.answers(test, tasks)
        there = picks.answers(test, training(_others(program.roles)))
        chosen = there.count(True) == 1
        if None in here or None in there or not (chosen or there.count(False) == 1):
            continue
        picked = [str(task) for task, answer in zip(tasks, here, strict=True) if answer is chosen]
        yield test, picked


def _names(test: Test) -> set[object]:
    """The texts that it compares with."""
    return {it.value for it in ast.walk(test.whole) if isinstance(it, ast.Constant)}


def _is_about_chief(test: Test) -> bool:
    """By the name of it, or by what hangs on it; an index decides about much else, as who prints."""
    above = test.module.parents.get(test.whole)
    match above:
        case ast.If(body=body, orelse=other):
            named = {it.attr for part in (*body, *other) for it in ast.walk(part) if isinstance(it, ast.Attribute)}
            return bool(named & _SAVES)
        case ast.Assign(targets=targets):
            name = " ".join(map(ast.unparse, targets))
        case _:
            name = test.whole.name if not isinstance(test.whole, ast.expr) else ""
    return any(word in name.lower() for word in ("chief", "master", "leader"))


RULES = (
    Rule(
        id="chief-is-nowhere",
        severity=Severity.WARNING,
        message="The script's test for the chief is true in no task of the cluster.",
        find=_nowhere,
        consequence="What only the chief does (save, log, export) is done by nobody.",
        fix="--chief gives the cluster one; or count worker 0 as the chief where the cluster has none",
        source="R09; R22",
    ),
    Rule(
        id="chief-is-twice",
        severity=Severity.WARNING,
        message="The script's test for the chief is true in the chief and in worker 0.",
        find=_twice,
        consequence="Both save as the chief, into the same files.",
        fix="--no-chief, so that worker 0 is the only one; or ask for the type too",
        source="R22; R87",
    ),
    Rule(
        id="chief-is-another",
        severity=Severity.INFO,
        message="The script's test for the chief is true in worker 0, and the cluster has a chief.",
        find=_another,
        consequence="Worker 0 saves for all, while Keras's callbacks and the end of the job go by the chief.",
        fix="--no-chief makes them one; or ask for the chief where the cluster has one",
        source="R22",
    ),
)
