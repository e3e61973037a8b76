"""A row of the table of rules on scripts, and how its hits become findings."""

from __future__ import annotations

import ast
import dataclasses
from collections.abc import Callable, Iterable
from typing import NamedTuple

from phalanx.script.module import Module
from phalanx.script.program import Program
from phalanx.tfconfig.finding import Finding, Place, Severity
from phalanx.tfconfig.quote import sentence

#: One rule reports so many places of a program.
LIMIT = 10

_MILDER = {Severity.ERROR: Severity.WARNING, Severity.WARNING: Severity.INFO, Severity.INFO: Severity.INFO}


class Hit(NamedTuple):
    """One place a rule found. Empty texts, and no severity, are the rule's own."""

    module: Module
    node: ast.AST
    message: str = ""
    fix: str = ""
    consequence: str = ""
    severity: Severity | None = None


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Rule:
    """A row: `find` is the condition, `consequence` what would happen, `fix` what to write instead.

    `message` is the rule in one sentence, for the table in the documentation. `severity` is that of its gravest hit.
    Where a hit stands under a condition it is one degree milder, unless it says its own.
    `source` names a report (R..), a fact, or what was measured.
    """

    id: str
    severity: Severity
    message: str
    find: Callable[[Program], Iterable[Hit]]
    consequence: str
    fix: str
    source: str


def judge(rules: Iterable[Rule], program: Program) -> list[Finding]:
    """Every finding of these rules that no comment in the program silences, those of one rule in its own order."""
    found: list[Finding] = []
    for rule in rules:
        told: set[ast.AST] = set()
        for hit in rule.find(program):
            if hit.node in told or len(told) >= LIMIT or _silenced(hit, rule.id):
                continue
            told.add(hit.node)
            severity = hit.severity or rule.severity
            if hit.severity is None and not program.reached(hit.module, hit.node):
                severity = _MILDER[severity]
            found.append(_finding(rule, hit, severity))
    return found


def _silenced(hit: Hit, rule: str) -> bool:
    first = getattr(hit.node, "lineno", 1)
    last = getattr(hit.node, "end_lineno", None) or first
    return any(rule in hit.module.ignored.get(line, ()) for line in range(first, last + 1))


def _finding(rule: Rule, hit: Hit, severity: Severity) -> Finding:
    message = hit.message or rule.message.removesuffix(".")
    return Finding(
        id=rule.id,
        severity=severity,
        message=sentence(message),
        consequence=sentence(hit.consequence) or rule.consequence,
        fix=sentence(hit.fix) or rule.fix,
        source=rule.source,
        path=hit.module.path,
        place=place(hit.module, hit.node),
    )


def place(module: Module, node: ast.AST) -> Place:
    """Where it begins, in characters; the underline ends with the node or with its first line."""
    line = getattr(node, "lineno", 1)
    own = module.lines[line - 1] if line <= len(module.lines) else ""
    start = _column(own, getattr(node, "col_offset", 0))
    end = len(own.rstrip())
    if getattr(node, "end_lineno", line) == line:
        end = _column(own, getattr(node, "end_col_offset", None) or 0)
    return Place(line=line, column=start + 1, length=max(1, end - start))


def _column(line: str, offset: int) -> int:
    """Columns of the tree count bytes."""
    return offset if line.isascii() else len(line.encode()[:offset].decode(errors="ignore"))
