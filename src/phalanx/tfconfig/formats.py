"""Findings as people and pipelines read them: text with the place underlined, JSON, GitHub commands, SARIF 2.1.0."""

from __future__ import annotations

import collections
import json
import unicodedata
from typing import TYPE_CHECKING, Any

from phalanx.tfconfig.check import SECRETS
from phalanx.tfconfig.finding import Finding, Severity

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

#: Columns of the faulty line that text shows; a TF_CONFIG is often one line of any length.
WINDOW = 100
#: Columns of it that stand before the place, where the line is cut.
_BEFORE = 40

_COLOURS = {Severity.ERROR: "31", Severity.WARNING: "33", Severity.INFO: "36"}
_GITHUB = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "notice"}
_SARIF = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "note"}
_SARIF_SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"


def as_text(findings: Sequence[Finding], texts: Mapping[str, str], *, colour: bool = False) -> str:
    """Each finding with its line, the place underlined by ^, and at the end how many there are; "" for none.

    `texts` maps paths to what stands there; a path without text gets no line. A line longer than WINDOW is cut around
    the place. Control characters show as `?`: a file must not write to the terminal. What a finding calls a secret
    shows as `*`.
    """
    lines = {path: text.split("\n") for path, text in texts.items()}
    secrets: dict[tuple[str, int], list[Finding]] = {}
    for finding in findings:
        if finding.id in SECRETS:
            secrets.setdefault((finding.path, finding.place.line), []).append(finding)
    parts: list[str] = []
    for finding in findings:
        place = finding.place
        own = lines.get(finding.path, ())
        line = own[place.line - 1] if place.line <= len(own) else ""
        for secret in secrets.get((finding.path, place.line), ()):
            start = secret.place.column - 1
            length = len(line[start : start + secret.place.length])
            line = line[:start] + "*" * length + line[start + length :]
        parts += _one(finding, line, colour=colour)
    return "".join(f"{part}\n" for part in parts) + (f"{tally(findings)}\n" if findings else "")


def as_json(findings: Sequence[Finding]) -> str:
    """`{"findings": [{"id", "severity", "path", "line", "column", "message", "consequence", "fix", "source"}]}`."""
    return json.dumps({"findings": [_record(finding) for finding in findings]}, indent=2) + "\n"


def as_github(findings: Sequence[Finding]) -> str:
    """Workflow commands, one a line, which GitHub shows beside the changed line; without a file where there is none."""
    return "".join(f"{_command(finding)}\n" for finding in findings)


def as_sarif(findings: Sequence[Finding], rules: Mapping[str, str], *, version: str) -> str:
    """One run of SARIF 2.1.0. `rules` gives each rule's sentence by id; findings of other ids join them.

    Columns count code points. What is no file (`$TF_CONFIG`, `-`) stands under its name as a relative URI.
    """
    known = dict(rules) | {finding.id: finding.message for finding in findings if finding.id not in rules}
    order = {rule: number for number, rule in enumerate(known)}
    log = {
        "$schema": _SARIF_SCHEMA,
        "version": "2.1.0",
        "runs": [
            {
                "tool": {
                    "driver": {
                        "name": "phalanx",
                        "version": version,
                        "rules": [{"id": rule, "shortDescription": {"text": text}} for rule, text in known.items()],
                    }
                },
                "columnKind": "unicodeCodePoints",
                "results": [_result(finding, order[finding.id]) for finding in findings],
            }
        ],
    }
    return json.dumps(log, indent=2) + "\n"


def tally(findings: Sequence[Finding]) -> str:
    """`2 errors, 1 warning`; `nothing found` for none."""
    counts = collections.Counter(finding.severity for finding in findings)
    plural = {Severity.ERROR: "errors", Severity.WARNING: "warnings", Severity.INFO: "infos"}
    told = [f"{counts[s]} {s.value if counts[s] == 1 else plural[s]}" for s in Severity if counts[s]]
    return ", ".join(told) or "nothing found"


def printable(text: str) -> str:
    """`text` in one line without control characters, each replaced by `?` so that columns stay; tabs by a space."""
    return "".join(c if c.isprintable() else " " if c in "\t\n" else "?" for c in text)


def _record(finding: Finding) -> dict[str, Any]:
    return {
        "id": finding.id,
        "severity": finding.severity.value,
        "path": finding.path,
        "line": finding.place.line,
        "column": finding.place.column,
        "message": finding.message,
        "consequence": finding.consequence,
        "fix": finding.fix,
        "source": finding.source,
    }


def _one(finding: Finding, line: str, *, colour: bool) -> list[str]:
    place, ink = finding.place, _COLOURS[finding.severity]

    def paint(text: str) -> str:
        return f"\x1b[{ink}m{text}\x1b[0m" if colour else text

    where = f"{finding.path}:{place.line}:{place.column}: " if finding.path else ""
    out = [f"{printable(where)}{paint(finding.severity.value)}: {printable(finding.message)} [{finding.id}]"]
    if line.strip():
        shown, before, under = _window(line, place.column - 1, place.length)
        margin = f"{place.line:>5} | "
        out += [f"{margin}{shown}", f"{'':>5} | {' ' * before}{paint('^' * under)}"]
    for title, text in (("then", finding.consequence), ("fix", finding.fix), ("source", finding.source)):
        if text:
            out.append(f"  {title}: {printable(text)}")
    return out


def _window(line: str, start: int, length: int) -> tuple[str, int, int]:
    """The part of the line to show, the columns before the underline, and the underline's length."""
    line = printable(line.rstrip("\r"))
    start = min(start, len(line))
    head = tail = ""
    if len(line) > WINDOW:
        left = max(0, min(start - _BEFORE, len(line) - WINDOW))
        head, tail = "…" if left else "", "…" if left + WINDOW < len(line) else ""
        line, start = line[left : left + WINDOW], start - left
    under = max(1, _columns(line[start : start + length]))
    return f"{head}{line}{tail}", len(head) + _columns(line[:start]), under


def _columns(text: str) -> int:
    """How many terminal columns it takes: wide characters two, combining ones none."""
    return sum(0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)


def _command(finding: Finding) -> str:
    place = finding.place
    values = {"title": finding.id}
    if finding.path and finding.path[0] not in "$-":
        end = place.column + place.length
        values = {
            "file": finding.path,
            "line": str(place.line),
            "col": str(place.column),
            "endColumn": str(end),
        } | values
    properties = ",".join(f"{k}={_escape(v).replace(':', '%3A').replace(',', '%2C')}" for k, v in values.items())
    message = "\n".join(part for part in (finding.message, finding.consequence, finding.fix) if part)
    return f"::{_GITHUB[finding.severity]} {properties}::{_escape(message)}"


def _escape(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _result(finding: Finding, rule: int) -> dict[str, Any]:
    from urllib.parse import quote  # noqa: PLC0415 - only SARIF needs it, and it costs every other start 10 ms

    place = finding.place
    text = " ".join(part for part in (finding.message + ".", finding.consequence, finding.fix) if part)
    return {
        "ruleId": finding.id,
        "ruleIndex": rule,
        "level": _SARIF[finding.severity],
        "message": {"text": text},
        "locations": [
            {
                "physicalLocation": {
                    "artifactLocation": {"uri": quote(finding.path or "-")},
                    "region": {
                        "startLine": place.line,
                        "startColumn": place.column,
                        "endColumn": place.column + place.length,
                    },
                }
            }
        ],
    }
