"""A file of manifests → the jobs in it. Reads; applies nothing, and asks no cluster."""

from __future__ import annotations

import dataclasses
import functools
import json
from collections.abc import Callable, Sequence
from typing import Any

from phalanx.errors import InputError
from phalanx.job.complaint import Complaint, JobFileError
from phalanx.job.importers import manifests, plain
from phalanx.job.importers.draft import Draft
from phalanx.job.importers.ledger import MANIFEST, Ledger
from phalanx.job.importers.manifests import Manifest
from phalanx.job.importers.others import BESIDE, REFUSED, STAYS
from phalanx.job.importers.result import Imported, made
from phalanx.job.importers.tfjob import GROUPS, KINDS, TFJob
from phalanx.job.importers.volcano import GROUP, VolcanoJob
from phalanx.job.importers.whole import short_name
from phalanx.tfconfig.parse import parse as parse_tf_config

_VERSIONS = frozenset({"v1", "v1beta2", "v1beta1", "v1alpha2", "v1alpha1"})
_SHOWN = 20


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Beside:
    """An object that is no part of a job."""

    said: str
    line: int
    why: str


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Found:
    """What a file holds: the jobs, and what stands beside them."""

    jobs: tuple[Imported, ...]
    beside: tuple[Beside, ...]


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class _Unit:
    """The objects of one job, and who reads them."""

    name: str
    members: tuple[Manifest, ...]
    read: Callable[[Draft], None]


def imported(text: str, shown: str, *, name: str | None = None, entrypoint: Sequence[str] = ()) -> Found:
    """Every job of a file, or the one called `name`.

    `entrypoint` is what an image runs where its manifest does not say. Raises JobFileError with every reason in the
    file's order, InputError where there is no job: then nothing of the file is to be used.
    """
    found = manifests.read(text, shown)
    units, beside, refused = _sorted(found, entrypoint)
    if name is not None:
        units, refused = _called(name, units, refused, shown)
    if refused:
        raise JobFileError(
            [one.root.tree.complaint(one.root.loc, f"{one.said} is not imported: {why}") for one, why in refused],
            of=MANIFEST,
        )
    if not units:
        kinds = ", ".join(dict.fromkeys(one.kind for one in found))
        raise InputError(
            f"{shown} holds no training job: {kinds}",
            hint="it takes TFJob, Volcano's Job, and Jobs, Pods, StatefulSets or Deployments with a TF_CONFIG",
        )
    jobs: list[Imported] = []
    complaints: list[Complaint] = []
    for unit in units:
        try:
            jobs.append(_made(unit, shown))
        except JobFileError as wrong:
            complaints += wrong.complaints
    if complaints:
        raise JobFileError(complaints, of=MANIFEST)
    return Found(jobs=tuple(jobs), beside=tuple(beside))


def _made(unit: _Unit, shown: str) -> Imported:
    first = unit.members[0]
    ledger = Ledger()
    draft = Draft(ledger, first.root)
    unit.read(draft)
    ledger.close()
    data = draft.finish()
    ledger.close()
    more = f" and {len(unit.members) - 1} more" if len(unit.members) > 1 else ""
    return made(ledger, first.root, data, source=f"{first.said}{more} ({first.version})", shown=shown)


_Refused = list[tuple[Manifest, str]]


def _sorted(found: Sequence[Manifest], entrypoint: Sequence[str]) -> tuple[list[_Unit], list[Beside], _Refused]:
    units: list[_Unit] = []
    beside: list[Beside] = []
    refused: _Refused = []
    loads: list[Manifest] = []
    for one in found:
        if one.kind in KINDS and one.group not in GROUPS:
            refused.append(
                (one, f"a TFJob of the group {one.group} is none that phalanx knows: {', '.join(sorted(GROUPS))}")
            )
        elif one.kind in KINDS:
            version = one.version.rpartition("/")[2]
            if version in _VERSIONS:
                units.append(_unit(one, functools.partial(_tfjob, one, entrypoint)))
            else:
                refused.append((one, f"{one.version} is no version of TFJob that phalanx knows: {_versions()}"))
        elif one.kind == "Job" and one.group == GROUP:
            units.append(_unit(one, functools.partial(_volcano, one, entrypoint)))
        elif one.group in plain.KINDS.get(one.kind, ()):
            loads.append(one)
        elif one.kind in REFUSED:
            refused.append((one, REFUSED[one.kind]))
        else:
            beside.append(Beside(said=one.said, line=one.root.line, why=BESIDE.get(one.kind, STAYS)))
    trains = [one for one in loads if plain.has_tf_config(one)]
    if not trains and not units and not refused and len(loads) == 1 and loads[0].kind in ("Job", "Pod"):
        trains = loads
    units += [
        _Unit(name=group[0].name, members=tuple(group), read=functools.partial(_plain, group, entrypoint))
        for group in _groups(trains)
    ]
    beside += [
        Beside(said=one.said, line=one.root.line, why="no TF_CONFIG in it: it stays as it is; apply it yourself")
        for one in loads
        if one not in trains
    ]
    return units, sorted(beside, key=lambda one: one.line), refused


def _tfjob(one: Manifest, entrypoint: Sequence[str], draft: Draft) -> None:
    TFJob(draft, entrypoint).read(one)


def _volcano(one: Manifest, entrypoint: Sequence[str], draft: Draft) -> None:
    VolcanoJob(draft, entrypoint).read(one)


def _plain(group: Sequence[Manifest], entrypoint: Sequence[str], draft: Draft) -> None:
    plain.Plain(draft, entrypoint).read(group)


def _unit(one: Manifest, read: Callable[[Draft], None]) -> _Unit:
    return _Unit(name=one.name, members=(one,), read=read)


def _versions() -> str:
    return ", ".join(sorted(_VERSIONS))


def _groups(loads: Sequence[Manifest]) -> list[list[Manifest]]:
    """Those of one cluster together; where nothing says the cluster, all of them are one."""
    groups: dict[str, list[Manifest]] = {}
    for one in loads:
        groups.setdefault(_cluster(one.root.down("spec").value), []).append(one)
    unsaid = groups.pop("", [])
    if not groups:
        return [unsaid] if unsaid else []
    if len(groups) == 1:
        return [sorted([*next(iter(groups.values())), *unsaid], key=lambda one: one.root.line)]
    return [*groups.values(), *([unsaid] if unsaid else [])]


def _cluster(value: Any) -> str:
    """The cluster of the first TF_CONFIG below, as one text; empty where none is written out."""
    if isinstance(value, dict):
        if value.get("name") == "TF_CONFIG" and isinstance(text := value.get("value"), str):
            config = parse_tf_config(text).config
            return json.dumps(config.cluster.to_json(), sort_keys=True) if config and config.cluster else ""
        return next((found for item in value.values() if (found := _cluster(item))), "")
    if isinstance(value, list):
        return next((found for item in value if (found := _cluster(item))), "")
    return ""


def _called(name: str, units: list[_Unit], refused: _Refused, shown: str) -> tuple[list[_Unit], _Refused]:
    chosen = [unit for unit in units if name in (unit.name, short_name(unit.name))]
    others = [(one, why) for one, why in refused if one.name == name]
    if chosen or others:
        return chosen, others
    names = [unit.name or "(no name)" for unit in units]
    said = ", ".join(names[:_SHOWN]) + (", …" if len(names) > _SHOWN else "")
    there = f"there are {said}" if len(names) > 1 else f"there is {said}" if names else "there is no job in it"
    complaint = Complaint(message=f"no job is called {name!r}; {there}", source=shown)
    raise JobFileError([complaint])
