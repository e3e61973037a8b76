"""One job as it was made: the text of job.yaml with its comments, and the list of what became of each field."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from phalanx.job import clustered
from phalanx.job.advise import mistakes
from phalanx.job.complaint import JobFileError, Loc
from phalanx.job.importers import text
from phalanx.job.importers.ledger import Entry, Ledger, Spot, written
from phalanx.job.load import parse

_LEFT = "No counterpart, and left out:"
_CHANGED = "Changed, with no line of its own below:"
#: The last word of a path: `.image`, `["sidecar.istio.io/inject"]`, `ports[0]`.
_LAST = re.compile(r'(?:\.?[^.\[\]]*(?:\[\d+\])?|\["[^"]*"\])\Z')
#: What messages call the file that is yet to be written.
_MADE = "job.yaml"


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Imported:
    """A job.yaml and where it is from."""

    name: str
    #: `TFJob mnist (kubeflow.org/v1)`.
    source: str
    line: int
    entries: tuple[Entry, ...]
    text: str


def made(ledger: Ledger, root: Spot, data: Mapping[str, Any], *, source: str, shown: str) -> Imported:
    """The job of that data. Raises JobFileError at the place in the manifest that its mistake comes from."""
    entries = tuple(sorted(ledger.entries, key=lambda entry: entry.line))
    comments, rest = _comments(entries, data)
    header = [
        f"Made from {source} in {shown} by phalanx import.",
        "A comment says what is not as it was there, and in which line.",
    ]
    header += _listed(_CHANGED, [entry for entry in rest if entry.verdict == "changed"])
    header += _listed(_LEFT, [entry for entry in entries if entry.verdict == "dropped"])
    page = text.written(data, comments, header)
    try:
        job = parse(page, _MADE).job
    except JobFileError as wrong:
        for complaint in wrong.complaints:
            ledger.refuse(root, f"this makes no job.yaml: {complaint.message}")
        ledger.close()
        raise
    for loc, said in (*mistakes(job), *clustered.mistakes(job)):
        ledger.refuse(_from(root, entries, loc), f"{written(loc)} of job.yaml: {said}")
    ledger.close()
    return Imported(name=str(data.get("name") or ""), source=source, line=root.line, entries=entries, text=page)


def _from(root: Spot, entries: Sequence[Entry], loc: Loc) -> Spot:
    """The place in the manifest that made this value."""
    while loc:
        for entry in entries:
            if entry.to == loc:
                return _found(root, entry)
        loc = loc[:-1]
    return root


def _found(root: Spot, entry: Entry) -> Spot:
    for loc in root.tree.places:
        if written(loc[root.base :]) == entry.at and root.tree.places[loc][0] == entry.line:
            return dataclasses.replace(root, loc=loc)
    return root


def _comments(entries: Sequence[Entry], data: Mapping[str, Any]) -> tuple[dict[Loc, list[str]], list[Entry]]:
    """What was changed, above its place in job.yaml; and what has no place there."""
    placed: dict[tuple[Loc, str], list[Entry]] = {}
    rest = []
    for entry in entries:
        if entry.verdict == "changed" and entry.to is not None and _there(data, entry.to):
            placed.setdefault((entry.to, entry.why), []).append(entry)
        else:
            rest.append(entry)
    comments: dict[Loc, list[str]] = {}
    for (loc, why), found in placed.items():
        comments.setdefault(loc, []).append(f"{_lines(found)}, {_paths(found)}: {why}")
    return comments, rest


def _there(data: Any, loc: Loc) -> bool:
    for part in loc:
        there = part in data if isinstance(data, dict) else isinstance(data, list) and part in range(len(data))
        if not there:
            return False
        data = data[part]
    return True


def _listed(title: str, entries: Sequence[Entry]) -> list[str]:
    grouped: dict[str, list[Entry]] = {}
    for entry in entries:
        grouped.setdefault(entry.why, []).append(entry)
    return [title, *(f"- {_lines(found)}, {_paths(found)}: {why}" for why, found in grouped.items())] if entries else []


def _lines(entries: Sequence[Entry]) -> str:
    numbers = sorted({entry.line for entry in entries})
    return f"line{'s' if len(numbers) > 1 else ''} {', '.join(map(str, numbers))}"


def _paths(entries: Sequence[Entry]) -> str:
    """One path; of several alike their last words."""
    paths = list(dict.fromkeys(entry.at for entry in entries))
    if len(paths) == 1:
        return paths[0]
    last = {found[0].lstrip(".") for path in paths if (found := _LAST.search(path))}
    return last.pop() if len(last) == 1 else ", ".join(sorted(last))


def told(imported: Imported, shown: str) -> Iterator[str]:
    """The list for people: the same reason once, with every place it holds for."""
    titles = (("carried", "carried over"), ("changed", "changed"), ("dropped", "no counterpart"))
    for verdict, title in titles:
        entries = [entry for entry in imported.entries if entry.verdict == verdict]
        if not entries:
            continue
        yield f"{title}:"
        grouped: dict[str, list[Entry]] = {}
        for entry in entries:
            grouped.setdefault(entry.why, []).append(entry)
        for why, found in grouped.items():
            for entry in found:
                yield f"  {shown}:{entry.line}: {entry.at}{f' → {written(entry.to)}' if entry.to else ''}"
            if why:
                yield f"      {why}"
