"""JSON with places: what TensorFlow's `json.loads` says about a text, and where exactly it would stumble.

A sound text is decoded by `json.loads` alone; only one with something to complain about is read again by the
tolerant reader here, which goes on where the writer's intent is plain, so that all mistakes come out at once.
"""

from __future__ import annotations

import dataclasses
import json
from typing import Any

from phalanx.tfconfig.finding import Place
from phalanx.tfconfig.tolerant import CONSTANTS, DEPTH, Complaint, Reader, Span


@dataclasses.dataclass(kw_only=True, slots=True)
class Spans:
    """Where each JSON pointer of a text stands; found on the first question."""

    text: str
    table: dict[str, Span] | None = None

    def of(self, pointer: str) -> Span:
        """The value's span; the nearest one above it where there is no such value."""
        if pointer and self.table is None:
            reader = Reader(self.text)
            reader.read()
            self.table = reader.spans
        table = self.table or {}
        while pointer and pointer not in table:
            pointer = pointer.rpartition("/")[0]
        if pointer:
            return table[pointer]
        start = len(self.text) - len(self.text.lstrip(" \t\r\n\ufeff"))
        start = 0 if start == len(self.text) else start
        return Span(start, start + 1, start, start + 1)


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Document:
    """A text as JSON. `value` is what was meant as far as that is plain; None where `readable` is False.

    `complaints` in the order of the text; none means that `json.loads` takes it and no key was lost.
    """

    text: str
    value: Any
    readable: bool
    complaints: tuple[Complaint, ...]
    spans: Spans

    def place(self, start: int, end: int) -> Place:
        """Line, column and length of a stretch of the text; a stretch of several lines ends with its first."""
        first = self.text.rfind("\n", 0, start) + 1
        last = self.text.find("\n", start)
        end = min(end, len(self.text) if last < 0 else last)
        return Place(line=self.text.count("\n", 0, start) + 1, column=start - first + 1, length=max(1, end - start))


def read(text: str) -> Document:
    """Decode `text`. Never raises. O(length)."""
    flaws: list[str] = []

    def pairs(items: list[tuple[str, Any]]) -> dict[str, Any]:
        out = dict(items)
        if len(out) != len(items):
            flaws.append("duplicate")
        return out

    def constant(name: str) -> float:
        flaws.append(name)
        return CONSTANTS[name]

    try:
        value = json.loads(text, object_pairs_hook=pairs, parse_constant=constant)
    except (ValueError, RecursionError) as error:
        wrong: ValueError | RecursionError | None = error
    else:
        if not flaws and not _too_deep(text, value):
            return Document(text=text, value=value, readable=True, complaints=(), spans=Spans(text=text))
        wrong = None
    reader = Reader(text)
    value, readable = reader.read()
    if wrong is not None and not reader.complaints:  # pragma: no cover - the two readers disagree
        at = wrong.pos if isinstance(wrong, json.JSONDecodeError) else 0
        reader.complain("json-syntax", at, at + 1, f"JSON readers stop here: {wrong}")
        readable = False
    complaints = tuple(sorted(reader.complaints, key=lambda one: one.start))
    spans = Spans(text=text, table=reader.spans)
    return Document(text=text, value=value if readable else None, readable=readable, complaints=complaints, spans=spans)


def _too_deep(text: str, value: Any) -> bool:
    if text.count("[") + text.count("{") <= DEPTH:
        return False
    level, depth = [value], 0
    while level:
        depth += 1
        level = [
            item
            for node in level
            if isinstance(node, dict | list)
            for item in (node.values() if isinstance(node, dict) else node)
            if isinstance(item, dict | list)
        ]
    return depth > DEPTH
