"""Rules about the text: what makes `json.loads`, and so TensorFlow, refuse it."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from phalanx.tfconfig.finding import Severity
from phalanx.tfconfig.rule import Case, Hit, Rule

#: One habit, one finding: whoever writes single quotes writes them everywhere.
_HABITS = frozenset(
    {
        "json-single-quotes",
        "json-smart-quotes",
        "json-unquoted",
        "json-python-literal",
        "json-comment",
        "json-space",
        "json-control",
    }
)

_REFUSED = "json.loads raises JSONDecodeError when the first strategy or resolver is made."


def _said(rule: str) -> Callable[[Case], Iterator[Hit]]:
    """The reader's own complaints of that kind."""
    group = rule if rule in _HABITS else ""

    def find(case: Case) -> Iterator[Hit]:
        for complaint in case.document.complaints:
            if complaint.id == rule:
                yield Hit(message=complaint.message, group=group, span=(complaint.start, complaint.end))

    return find


def _row(
    rule: str,
    message: str,
    fix: str,
    *,
    severity: Severity = Severity.ERROR,
    consequence: str = _REFUSED,
    source: str = "R18; measured on TensorFlow 2.21",
) -> Rule:
    return Rule(
        id=rule,
        severity=severity,
        message=message,
        find=_said(rule),
        consequence=consequence,
        fix=fix,
        source=source,
    )


RULES = (
    _row("json-empty", "The text is empty.", "unset TF_CONFIG to train alone, or write the cluster and the task"),
    _row("json-bom", "The text starts with a byte order mark.", "save the file as UTF-8 without BOM"),
    _row("json-assignment", "The text starts with TF_CONFIG=.", "write only what stands after the ="),
    _row(
        "json-shell-quotes",
        "The whole text stands in quotes that a shell should have taken off.",
        "take the outer quotes off; a docker --env-file wants none",
    ),
    _row("json-single-quotes", "Strings stand in single quotes.", "write double quotes"),
    _row("json-smart-quotes", "Strings stand in typographic quotes.", 'write straight double quotes (")'),
    _row(
        "json-unquoted",
        "A key or text stands without quotes.",
        "put it in double quotes; in a shell put single quotes around the whole value, or the shell eats them",
    ),
    _row("json-trailing-comma", "A comma stands before a closing bracket.", "take the comma out"),
    _row("json-missing-comma", "A comma is missing between two members.", "put a comma between the two"),
    _row("json-comma", "A comma has nothing before it.", "take it out, or write what is missing"),
    _row("json-colon", "A key is not followed by a colon.", 'write "key": value'),
    _row("json-comment", "The text has comments.", "take the comments out"),
    _row(
        "json-constant",
        "NaN or Infinity is no JSON.",
        "write a number, or leave the key out",
        severity=Severity.WARNING,
        consequence="Python's reader takes it; jq, Go and others that hand the variable on do not.",
        source="RFC 8259, section 6",
    ),
    _row("json-python-literal", "True, False or None is Python.", "write true, false or null; json.dumps does"),
    _row("json-number", "A number is written as JSON does not.", "write it plainly, such as 0 or 12"),
    _row(
        "json-duplicate-key",
        "A key is written twice in one object.",
        "keep one of the two",
        consequence="json.loads keeps the last one and says nothing: the tasks of the first are lost.",
        source="RFC 8259, section 4",
    ),
    _row("json-unterminated", "A string or a bracket is never closed.", "close it; see whether the text was cut off"),
    _row("json-bracket", "A bracket closes another kind of bracket.", "close the brackets in the order they opened"),
    _row("json-control", "A string holds a control character.", r"write \n, \t or \u00XX, or take it out"),
    _row("json-escape", "A backslash is followed by what JSON does not know.", r"write \\ for a backslash"),
    _row("json-space", "White space that JSON does not know.", "write plain spaces"),
    _row("json-trailing-text", "There is text after the end of the JSON.", "take it out"),
    _row(
        "json-depth",
        "The text is nested too deep for a TF_CONFIG.",
        "a TF_CONFIG has three levels: write cluster and task",
        consequence="json.loads may raise RecursionError.",
        source="Python's json module",
    ),
    _row("json-syntax", "The text is no JSON.", "write it with json.dumps, or ask phalanx generate"),
)
