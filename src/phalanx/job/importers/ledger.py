"""What became of each field of a manifest, and what is wrong with it: every reader of a dialect writes in here."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Literal

from phalanx.job.complaint import Complaint, JobFileError, Loc
from phalanx.job.tree import Tree

#: What its mistakes are of.
MANIFEST = "the manifest"

Verdict = Literal["carried", "changed", "dropped"]


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Spot:
    """A value of a manifest and where it stands. `base`: the part of `loc` that leads to its object in a list."""

    tree: Tree
    loc: Loc
    value: Any
    base: int = 0

    @property
    def line(self) -> int:
        """In the file, from 1."""
        return self.tree.place(self.loc)[0]

    @property
    def path(self) -> str:
        """Inside its object: `spec.tfReplicaSpecs.PS.replicas`."""
        return written(self.loc[self.base :])

    @property
    def key(self) -> str:
        """The last part of the path."""
        return str(self.loc[-1]) if self.loc else ""

    def down(self, *parts: str | int) -> Spot:
        """The value below; None where there is none, at the place where it would stand."""
        value = self.value
        for part in parts:
            if isinstance(value, dict):
                value = value.get(part)
            elif isinstance(value, list) and isinstance(part, int) and part < len(value):
                value = value[part]
            else:
                value = None
        return dataclasses.replace(self, loc=(*self.loc, *parts), value=value)

    def items(self) -> Iterator[Spot]:
        """What stands below, in the file's order; what is null is not written."""
        keys = self.value if isinstance(self.value, dict) else range(len(self.value or ()))
        for key in keys:
            spot = self.down(key)
            if spot.value is not None:
                yield spot


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Entry:
    """What became of one field. `to` is its place in job.yaml, where it has one."""

    verdict: Verdict
    at: str
    line: int
    to: Loc | None = None
    why: str = ""


class Ledger:
    """Collects entries and complaints. One for each job that is made."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self.complaints: list[Complaint] = []

    def carry(self, spot: Spot, to: Loc, why: str = "") -> None:
        """It means the same there."""
        self._enter("carried", spot, to, why)

    def change(self, spot: Spot, why: str, to: Loc | None = None) -> None:
        """It is said in another way, or means something else: why."""
        self._enter("changed", spot, to, why)

    def drop(self, spot: Spot, why: str) -> None:
        """It has no counterpart: why, or what to do instead."""
        self._enter("dropped", spot, None, why)

    def refuse(self, spot: Spot, message: str) -> None:
        """It stops the import: the mistake and the next step."""
        said = spot.tree.complaint(spot.loc, f"{spot.path}: {message}" if spot.path else message)
        if said not in self.complaints:
            self.complaints.append(said)

    def close(self) -> None:
        """Raise JobFileError with all that was refused."""
        if self.complaints:
            raise JobFileError(self.complaints, of=MANIFEST)

    def _enter(self, verdict: Verdict, spot: Spot, to: Loc | None, why: str) -> None:
        self.entries.append(Entry(verdict=verdict, at=spot.path, line=spot.line, to=to, why=why))

    # Values, each of the kind that Kubernetes wants there; what is of another is refused.

    def each(self, spot: Spot, readers: Mapping[str, Callable[[Spot], None]]) -> None:
        """Hand every field of a mapping to its reader; one that has none is named as dropped."""
        for field in self.mapping(spot):
            if reader := readers.get(field.key):
                reader(field)
            else:
                self.drop(field, "phalanx does not know this field; it is left out")

    def mapping(self, spot: Spot) -> list[Spot]:
        """The fields of a mapping."""
        if spot.value is None or isinstance(spot.value, dict):
            return list(spot.items())
        self.refuse(spot, "a mapping is expected here")
        return []

    def sequence(self, spot: Spot) -> list[Spot]:
        """The items of a list."""
        if spot.value is None or isinstance(spot.value, list):
            return list(spot.items())
        self.refuse(spot, "a list is expected here")
        return []

    def text(self, spot: Spot) -> str:
        """A text; empty where it is not written."""
        if spot.value is None or isinstance(spot.value, str):
            return spot.value or ""
        self.refuse(spot, f"a text is expected here; quote it: {_quoted(spot)}")
        return ""

    def words(self, spot: Spot) -> list[str]:
        """A list of texts."""
        return [self.text(item) for item in self.sequence(spot)]

    def number(self, spot: Spot, least: int = 0, most: int = 2**31 - 1) -> int | None:
        """A whole number; None where it is none, or not written."""
        value = spot.value
        if value is None:
            return None
        if isinstance(value, int) and not isinstance(value, bool) and least <= value <= most:
            return value
        hint = "; fill the template in first" if isinstance(value, str) and "$" in value else ""
        self.refuse(spot, f"a whole number of at least {least} is expected here{hint}")
        return None

    def truth(self, spot: Spot) -> bool:
        """True or false; false where it is not written."""
        if spot.value is None or isinstance(spot.value, bool):
            return bool(spot.value)
        self.refuse(spot, "true or false is expected here")
        return False


def written(loc: Loc) -> str:
    """A path as kubectl's jsonpath has it: `metadata.labels["app.kubernetes.io/name"]`, `containers[0].image`."""
    text = ""
    for part in loc:
        if isinstance(part, int):
            text += f"[{part}]"
        elif "." in part or "/" in part:
            text += f'["{part}"]'
        else:
            text += f".{part}" if text else part
    return text


def _quoted(spot: Spot) -> str:
    return f'"{spot.tree.written.get(spot.loc, "…")[:40]}"'
