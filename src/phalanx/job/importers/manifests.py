"""A file of manifests → its objects: several documents, lists, and what is a template and no manifest yet."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator

from phalanx.errors import InputError
from phalanx.job.complaint import Complaint, JobFileError
from phalanx.job.importers.ledger import Spot
from phalanx.job.tree import Tree, read_manifests

#: Marks of Helm, Jinja, Argo and their like. In a comment they do no harm.
_TEMPLATE = re.compile(r"\{\{|\{%")
_JSONNET = re.compile(r"\s*(?:local\s+\w+\s*=|std\.\w+|import\s+['\"]|function\s*\()")
#: What people leave in an example for others to fill in: `<image>`, `${IMAGE}`, `$app-$run`.
_BLANK = re.compile(r"<[^<>]*[A-Za-z][^<>]*>|\$\{?\w+\}?|\$\(\w+\)|%[A-Z][A-Z_0-9]*%")


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Manifest:
    """One object. `root` is all of it."""

    kind: str
    version: str
    root: Spot

    @property
    def group(self) -> str:
        """`kubeflow.org`; empty for those of Kubernetes' core."""
        return self.version.rpartition("/")[0]

    @property
    def name(self) -> str:
        """As it says itself, else what its name begins with."""
        metadata = self.root.down("metadata")
        for key in ("name", "generateName"):
            if isinstance(said := metadata.down(key).value, str) and said:
                return said.rstrip("-") or said
        return ""

    @property
    def said(self) -> str:
        """`TFJob mnist`."""
        return f"{self.kind} {self.name}".strip()


def read(text: str, shown: str) -> list[Manifest]:
    """Every object, lists taken apart, in the file's order. Raises JobFileError, InputError where there is none."""
    _check_template(text, shown)
    trees = read_manifests(text, shown)
    complaints = [complaint for tree in trees for complaint in tree.complaints]
    if complaints:
        raise JobFileError(complaints)
    found = [manifest for tree in trees for manifest in _objects(Spot(tree=tree, loc=(), value=tree.value))]
    if not found:
        raise InputError(f"{shown} holds no manifest", hint="kubectl get tfjob NAME -o yaml prints one")
    return found


def blank(text: str) -> str | None:
    """The part of a name or an image that somebody has yet to fill in."""
    found = _BLANK.search(text)
    return found[0] if found else None


def _objects(spot: Spot) -> Iterator[Manifest]:
    value = spot.value
    kind = value.get("kind") if isinstance(value, dict) else None
    version = value.get("apiVersion") if isinstance(value, dict) else None
    if not isinstance(kind, str) or not isinstance(version, str):
        what = "a manifest is a mapping with `apiVersion` and `kind`"
        raise JobFileError([_complaint(spot.tree, spot, what)])
    items = spot.down("items")
    if kind.endswith("List") and isinstance(items.value, list):
        for item in items.items():
            yield from _objects(dataclasses.replace(item, base=len(item.loc)))
        return
    yield Manifest(kind=kind, version=version, root=spot)


def _complaint(tree: Tree, spot: Spot, message: str) -> Complaint:
    return tree.complaint(spot.loc, message)


def _check_template(text: str, shown: str) -> None:
    """A template may be no YAML at all, so its lines are looked at."""
    for number, line in enumerate(text.splitlines(), start=1):
        stripped = line.lstrip()
        if not stripped or stripped.startswith(("#", "//")):
            continue
        found = None if stripped.startswith("#") else _TEMPLATE.search(_uncommented(line))
        if found:
            message = (
                f"`{found[0]}` makes this a template, not a manifest; fill it in first "
                "(helm template, argo template, jinja2, …) and import what comes out: … | phalanx import -"
            )
            place = Complaint(message=message, source=shown, line=number, column=found.start() + 1)
            raise JobFileError([place])
        if _JSONNET.match(line):
            message = "this is jsonnet, not a manifest; import what it makes: jsonnet FILE | phalanx import -"
            raise JobFileError([Complaint(message=message, source=shown, line=number, column=1)])


def _uncommented(line: str) -> str:
    """Without a comment at its end: ` #` outside of quotes, as far as one line can tell."""
    quote = ""
    for at, char in enumerate(line):
        if quote:
            quote = "" if char == quote else quote
        elif char in "\"'":
            quote = char
        elif char == "#" and line[at - 1 : at].isspace():
            return line[:at]
    return line
