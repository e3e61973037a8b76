"""Parts of a PodTemplateSpec by their paths: what several templates have in common, and the template they make."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from phalanx.job.complaint import Loc
from phalanx.job.importers.part import Path, Said

#: Lists whose items go by their names in a path.
_NAMED = frozenset({("spec", "containers"), ("spec", "initContainers"), ("spec", "volumes")})


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Laid:
    """A template, and where in it each path has come to stand."""

    template: dict[str, Any]
    places: dict[Path, Loc]


def split(overlays: Sequence[Mapping[Path, Said]]) -> tuple[dict[Path, Said], list[dict[Path, Said]]]:
    """What all of them say alike, and what is left of each."""
    first, *others = overlays
    common = {
        path: said
        for path, said in first.items()
        if all(path in other and other[path].value == said.value for other in others)
    }
    return common, [{path: said for path, said in one.items() if path not in common} for one in overlays]


def laid(overlay: Mapping[Path, Said]) -> Laid:
    """The template that the paths make; those of named lists become items, in the order they come in."""
    template: dict[str, Any] = {}
    places: dict[Path, Loc] = {}
    for path in sorted(overlay, key=lambda path: path[0] != "metadata"):
        found: Any = template
        loc: Loc = ()
        for at, part in enumerate(path[:-1]):
            found, loc = _into(found, loc, part, path[:at], named=path[: at + 1] in _NAMED)
        value = _clean(overlay[path].value)
        if isinstance(found, list):
            found, loc = _item(found, loc, path[-1])
            found.update(value)
        else:
            found[path[-1]] = value
            loc = (*loc, path[-1])
        places[path] = loc
    return Laid(template=template, places=places)


def _into(found: Any, loc: Loc, part: str, before: Path, *, named: bool) -> tuple[Any, Loc]:
    """One step down; `named`: what is there is a list of items with names."""
    if before in _NAMED:
        return _item(found, loc, part)
    return found.setdefault(part, [] if named else {}), (*loc, part)


def _item(items: list[Any], loc: Loc, name: str) -> tuple[dict[str, Any], Loc]:
    for number, item in enumerate(items):
        if item["name"] == name:
            return item, (*loc, number)
    items.append({"name": name})
    return items[-1], (*loc, len(items) - 1)


def _clean(value: Any) -> Any:
    """Without what is null: in an overlay that would take something away."""
    if isinstance(value, dict):
        return {key: _clean(item) for key, item in value.items() if item is not None}
    if isinstance(value, list):
        return [_clean(item) for item in value if item is not None]
    return value
