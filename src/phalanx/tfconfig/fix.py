"""The corrected JSON, for the faults that have one right answer; where two are possible nothing is touched."""

from __future__ import annotations

import collections
import dataclasses
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Any

from phalanx.tfconfig.address import without_trimmings
from phalanx.tfconfig.check import check, infer
from phalanx.tfconfig.finding import Finding, Severity
from phalanx.tfconfig.jsontext import Document, read
from phalanx.tfconfig.meaning import number
from phalanx.tfconfig.parse import parse
from phalanx.tfconfig.quote import brief
from phalanx.tfconfig.rules.keys import mistyped, mistyped_in_task
from phalanx.tfconfig.spelling import Guess, guess_type

#: Faults of syntax that writing the value anew cures, and what to say then.
_CURED = MappingProxyType(
    {
        "json-bom": "took the byte order mark off",
        "json-assignment": "took TF_CONFIG= off",
        "json-shell-quotes": "took the outer quotes off",
        "json-single-quotes": "wrote double quotes for single ones",
        "json-smart-quotes": "wrote straight quotes for typographic ones",
        "json-unquoted": "put bare words in quotes",
        "json-trailing-comma": "took a comma before a closing bracket out",
        "json-missing-comma": "put a missing comma in",
        "json-colon": "wrote a colon for =",
        "json-comment": "took comments out",
        "json-python-literal": "wrote true, false, null for Python's words",
        "json-control": "escaped control characters",
        "json-space": "wrote plain white space",
        "json-trailing-text": "took stray characters off the end",
    }
)
#: Left as it is, and no reason not to write the rest anew.
_HARMLESS = frozenset({"json-constant"})
#: What may follow the end of the JSON without meaning anything.
_STRAY = re.compile(r"[\s}\]);,'\"`]*")

_ROUNDS = 50
_NAMED = 8

_Object = dict[str, Any]


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Fixed:
    """`text` corrected, `changes` a sentence each, `left` what `check` still finds, infos left out."""

    text: str
    changes: tuple[str, ...]
    left: tuple[Finding, ...]


def fix(text: str, *, strategy: str = "auto") -> Fixed:
    """Correct what has one right answer. Never raises on any text; idempotent: fixing the result changes nothing.

    A text without such a fault comes back as it is, to the byte; a corrected one is written anew, on one line unless it
    had several. `strategy` as in `check`: it decides about the evaluator (R01-R03).
    """
    changes: list[str] = []
    for _ in range(_ROUNDS):
        text, made = _round(text, strategy)
        if not made:
            break
        changes += made
    left = tuple(found for found in check(text, strategy=strategy) if found.severity is not Severity.INFO)
    return Fixed(text=text, changes=tuple(changes), left=left)


def _round(text: str, strategy: str) -> tuple[str, list[str]]:
    """One pass over the text; what it uncovers is for the next."""
    document = read(text)
    if not document.readable or not all(_curable(document)):
        return text, []
    changes = [_CURED[rule] for rule in dict.fromkeys(c.id for c in document.complaints) if rule in _CURED]
    value = document.value
    if isinstance(value, str) and read(value).readable and isinstance(read(value).value, dict):
        return value, [*changes, "took one encoding off: it was JSON inside a JSON text"]
    if isinstance(value, dict):
        for step in _STEPS:
            changes += step(value, strategy)
    return (_written(value, text) if changes else text), changes


def _curable(document: Document) -> Iterator[bool]:
    for complaint in document.complaints:
        stray = complaint.id != "json-trailing-text" or _STRAY.fullmatch(document.text, complaint.start) is not None
        yield stray and (complaint.id in _CURED or complaint.id in _HARMLESS)


def _written(value: Any, like: str) -> str:
    text = json.dumps(value, indent=2 if "\n" in like.strip() else None, ensure_ascii=False)
    # A lone surrogate fits in no file, and a control character has no business on a terminal; escaped both may stay.
    text = text if text.isprintable() else "".join(c if c.isprintable() or c == "\n" else _escaped(c) for c in text)
    return text + "\n" if like.endswith("\n") else text


def _escaped(character: str) -> str:
    return json.dumps(character)[1:-1] if ord(character) > ord("\x7f") else f"\\u{ord(character):04x}"


def _rename(written: _Object, names: Mapping[str, str]) -> None:
    """Rename keys in place, keeping their order."""
    renamed = {names.get(key, key): item for key, item in written.items()}
    written.clear()
    written.update(renamed)


def _sure(guesses: Mapping[str, Guess], taken: Iterable[str]) -> dict[str, str]:
    """The renamings nobody can doubt: sure guesses, one for each word, whose word is not taken."""
    wanted = collections.Counter(meant.word for meant in guesses.values())
    return {
        key: meant.word
        for key, meant in guesses.items()
        if meant.sure and wanted[meant.word] == 1 and meant.word not in set(taken)
    }


def _keys(top: _Object, _: str) -> list[str]:
    names = _sure(mistyped(top), top)
    _rename(top, names)
    task = top.get("task")
    inner: dict[str, str] = {}
    if isinstance(task, dict):
        inner = _sure(mistyped_in_task(task), task)
        _rename(task, inner)
    return [f"renamed the key {_name(old)} to {new}" for old, new in [*names.items(), *inner.items()]]


def _types(top: _Object, _: str) -> list[str]:
    cluster, task = top.get("cluster"), top.get("task")
    if not isinstance(cluster, dict):
        return []
    guesses = {kind: meant for kind in cluster if (meant := guess_type(kind)) is not None}
    names = _sure(guesses, cluster)
    _rename(cluster, names)
    changes = [f"renamed the type {_name(old)} to {new}: do so on all nodes alike" for old, new in names.items()]
    kind = task.get("type") if isinstance(task, dict) else None
    meant = guess_type(kind) if isinstance(kind, str) and kind not in cluster else None
    if isinstance(task, dict) and meant is not None and meant.sure and meant.word in cluster:
        changes.append(f"renamed the task's type {_name(str(kind))} to {meant.word}")
        task["type"] = meant.word
    return changes


def _lists(top: _Object, _: str) -> list[str]:
    """A text of addresses becomes a list, and so does a list whose only text holds several."""
    changes = []
    for kind, listed in _jobs(top).items():
        alone = isinstance(listed, list) and len(listed) == 1 and isinstance(listed[0], str) and "," in listed[0]
        text = listed[0] if alone else listed
        if not isinstance(text, str):
            continue
        parts = [part.strip() for part in text.strip().removesuffix(",").split(",")]
        if all(parts):
            top["cluster"][kind] = parts
            changes.append(f"wrote the addresses of {_name(kind)} as a list of {len(parts)}")
    return changes


def _empties(top: _Object, _: str) -> list[str]:
    """Types without an address, unless the task is of that type or nothing would be left."""
    jobs = _jobs(top)
    empty = [kind for kind, of in jobs.items() if of in ([], {}) or (isinstance(of, str) and not of.strip())]
    own = top["task"].get("type") if isinstance(top.get("task"), dict) else None
    if len(empty) == len(jobs):
        return []
    gone = [kind for kind in empty if kind != own]
    for kind in gone:
        del top["cluster"][kind]
    return [f"took {_name(kind)} out: it had no address" for kind in gone]


def _addresses(top: _Object, _: str) -> list[str]:
    taken: dict[str, list[str]] = collections.defaultdict(list)
    for kind, listed in _jobs(top).items():
        if not isinstance(listed, list | dict):
            continue
        for at, text in enumerate(listed) if isinstance(listed, list) else list(listed.items()):
            if isinstance(text, str):
                listed[at], what = without_trimmings(text)
                for one in what:
                    taken[one].append(f"{_name(kind)}:{at}")
    return [f"took {what} off {_several(tasks)}" for what, tasks in taken.items()]


def _index(top: _Object, _: str) -> list[str]:
    task = top.get("task")
    index = task.get("index") if isinstance(task, dict) else None
    if isinstance(index, str) and (whole := number(index)) is not None:
        task["index"] = whole  # type: ignore[index] # it is the dict that had the index
        return [f"wrote the index {whole} as a number"]
    if isinstance(index, float) and index.is_integer():
        task["index"] = int(index)  # type: ignore[index] # as above
        return [f"wrote the index {int(index)} without a decimal point"]
    return []


def _evaluator(top: _Object, strategy: str) -> list[str]:
    """Out of the cluster where it does harm: always with ps, with an Estimator for all but itself."""
    if "evaluator" not in _jobs(top):
        return []
    meant = infer(parse(json.dumps(top))) if strategy == "auto" else strategy
    own = top["task"].get("type") if isinstance(top.get("task"), dict) else None
    if meant == "ps" or (meant == "estimator" and own != "evaluator"):
        del top["cluster"]["evaluator"]
        return [f"took the evaluator out of the cluster, as {meant} wants it"]
    return []


_STEPS: tuple[Callable[[_Object, str], list[str]], ...] = (
    _keys,
    _types,
    _lists,
    _empties,
    _addresses,
    _index,
    _evaluator,
)


def _jobs(top: _Object) -> _Object:
    """A copy of the outer level of the cluster, safe to walk while the cluster changes."""
    cluster = top.get("cluster")
    return dict(cluster) if isinstance(cluster, dict) else {}


def _name(written: str) -> str:
    return brief(written, 40)


def _several(names: list[str]) -> str:
    return ", ".join(names[:_NAMED]) + (f" and {len(names) - _NAMED} more" if len(names) > _NAMED else "")
