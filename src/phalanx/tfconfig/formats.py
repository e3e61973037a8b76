"""Findings as people and pipelines read them: text with the place underlined, JSON, GitHub commands, SARIF 2.1.0."""

from __future__ import annotations

import collections
import json
import unicodedata
from typing import TYPE_CHECKING, Any, NamedTuple

from phalanx.redact import MASK
from phalanx.tfconfig.check import SECRETS
from phalanx.tfconfig.finding import Finding, Place, Severity
from phalanx.tfconfig.quote import line as safe
from phalanx.tfconfig.quote import printable

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

#: Columns of the faulty line that text shows; a TF_CONFIG is often one line of any length.
WINDOW = 100
#: Columns of it that stand before the place, where the line is cut.
_BEFORE = 40
#: Characters on each side of the place in which a secret is looked for: more than is shown.
_CONTEXT = 1000

_COLOURS = {Severity.ERROR: "31", Severity.WARNING: "33", Severity.INFO: "36"}
_GITHUB = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "notice"}
_SARIF = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "note"}
_SARIF_SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"


def as_text(findings: Sequence[Finding], texts: Mapping[str, str], *, colour: bool = False) -> str:
    """Each finding with its line, the place underlined by ^, and at the end how many there are; "" for none.

    `texts` maps paths to what stands there; a path without text gets no line. A line longer than WINDOW is cut around
    the place. Control characters show as `?`: a file must not write to the terminal. What a finding calls a secret, and
    what looks like one, shows as `***`.
    """
    lines = {path: text.split("\n") for path, text in texts.items()}
    secrets: dict[tuple[str, int], list[Place]] = {}
    for finding in findings:
        if finding.id in SECRETS:
            secrets.setdefault((finding.path, finding.place.line), []).append(finding.place)
    parts: list[str] = []
    for finding in findings:
        number = finding.place.line
        own = lines.get(finding.path, ())
        line = own[number - 1].rstrip("\r") if number <= len(own) else ""
        parts += _one(finding, _pieces(line, finding.place, secrets.get((finding.path, number), ())), colour=colour)
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


class _Pieces(NamedTuple):
    """A line before, at and after the place, safe to show; `at` is empty where nothing can be underlined."""

    before: str
    at: str
    after: str


def _pieces(line: str, place: Place, secrets: Sequence[Place]) -> _Pieces:
    """Cut the line at the place, mask the secrets, and leave what lies far away out."""
    start = min(place.column - 1, len(line))
    end = min(start + max(place.length, 1), len(line))
    left, right = max(0, start - _CONTEXT), min(len(line), end + _CONTEXT)
    before, at, after = (
        _without(line, cut, [(s.column - 1, s.column - 1 + s.length) for s in secrets])
        for cut in ((left, start), (start, end), (end, right))
    )
    whole, parts = safe(before + at + after), (safe(before), safe(at), safe(after))
    before, at, after = parts if "".join(parts) == whole else (whole, "", "")
    head, tail = "…" if left else "", "…" if right < len(line) else ""
    return _Pieces(head + printable(before), printable(at), printable(after) + tail)


def _without(line: str, cut: tuple[int, int], secrets: Sequence[tuple[int, int]]) -> str:
    """A part of the line, each secret in it as `***`."""
    start, end = cut
    out: list[str] = []
    for first, last in sorted(set(secrets)):
        if first < end and last > start:
            out += (line[start : max(first, start)], MASK)
            start = min(last, end)
    return "".join((*out, line[start:end]))


def _one(finding: Finding, pieces: _Pieces, *, colour: bool) -> list[str]:
    place, ink = finding.place, _COLOURS[finding.severity]

    def paint(text: str) -> str:
        return f"\x1b[{ink}m{text}\x1b[0m" if colour else text

    where = f"{finding.path}:{place.line}:{place.column}: " if finding.path else ""
    out = [f"{printable(where)}{paint(finding.severity.value)}: {printable(finding.message)} [{finding.id}]"]
    shown, before, under = _window(pieces)
    if shown.strip():
        out.append(f"{place.line:>5} | {shown}")
    if shown.strip() and under:
        out.append(f"{'':>5} | {' ' * before}{paint('^' * under)}")
    for title, text in (("then", finding.consequence), ("fix", finding.fix), ("source", finding.source)):
        if text:
            out.append(f"  {title}: {printable(text)}")
    return out


def _window(pieces: _Pieces) -> tuple[str, int, int]:
    """The part of the line to show, the columns before the underline, and the underline's length."""
    line, start = "".join(pieces), len(pieces.before)
    head = tail = ""
    length = len(pieces.at)
    if len(line) > WINDOW:
        left = max(0, min(start - _BEFORE, len(line) - WINDOW))
        head, tail = "…" if left else "", "…" if left + WINDOW < len(line) else ""
        line, start = line[left : left + WINDOW], start - left
    return f"{head}{line}{tail}", len(head) + _columns(line[:start]), _columns(line[start : start + length])


def _columns(text: str) -> int:
    """How many terminal columns it takes: wide characters two, combining ones none."""
    return sum(0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)


def _command(finding: Finding) -> str:
    place = finding.place
    values = {"title": finding.id}
    if finding.path and finding.path[0] not in "$-":
        end = place.column + place.length
        values = {
            "file": printable(finding.path),
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
