"""The parts of a job put together: what is alike in all roles is said once, the rest where it belongs."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from phalanx.job.complaint import Loc
from phalanx.job.importers.ledger import Ledger, Spot
from phalanx.job.importers.overlay import laid, split
from phalanx.job.importers.part import TASK, Part, Path, Said
from phalanx.job.units import size

KUBERNETES: Loc = ("on", "kubernetes")
#: The order of job.yaml, and of `on.kubernetes`; what is not named comes last.
_ORDER = (
    "name",
    "command",
    "folder",
    "image",
    "strategy",
    "roles",
    "env",
    "secrets",
    "restart",
    "health",
    "grace",
    "on",
)
_RANK = ("chief", "worker", "ps", "evaluator")
_FIELDS = ("count", "min", "max", "cpus", "gpus", "memory", "command", "env")

#: What is said once for all roles, and where a role says it for itself.
_SHARED: dict[str, tuple[Loc, Path]] = {
    "image": (("image",), (*TASK, "image")),
    "folder": (("folder",), (*TASK, "workingDir")),
    "pull": ((*KUBERNETES, "pull"), (*TASK, "imagePullPolicy")),
    "pull_secrets": ((*KUBERNETES, "pull_secrets"), ("spec", "imagePullSecrets")),
    "priority": ((*KUBERNETES, "priority"), ("spec", "priorityClassName")),
    "grace": ((*KUBERNETES, "grace"), ("spec", "terminationGracePeriodSeconds")),
    "user": ((*KUBERNETES, "user"), ("spec", "securityContext", "runAsUser")),
    "hugepages-2Mi": ((*KUBERNETES, "hugepages", "2Mi"), (*TASK, "resources", "limits", "hugepages-2Mi")),
    "hugepages-1Gi": ((*KUBERNETES, "hugepages", "1Gi"), (*TASK, "resources", "limits", "hugepages-1Gi")),
}


class Draft:
    """Collects what a dialect reads; `finish` makes one job of it."""

    def __init__(self, ledger: Ledger, root: Spot) -> None:
        self.ledger, self.root = ledger, root
        self.parts: list[Part] = []
        self._data: dict[str, Any] = {}

    def put(self, to: Loc, value: Any, spot: Spot, why: str = "") -> None:
        """Say something of the whole job."""
        found = self._data
        for part in to[:-1]:
            found = found.setdefault(str(part), {})
        found[str(to[-1])] = value
        self._note(spot, to, why)

    def said(self, at: Loc) -> Any:
        """What stands there so far; None where nothing does."""
        found: Any = self._data
        for part in at:
            found = found.get(str(part)) if isinstance(found, dict) else None
        return found

    def finish(self) -> dict[str, Any]:
        """The whole, in the order of job.yaml. The parts are used up."""
        self.parts.sort(key=lambda part: _RANK.index(part.kind) if part.kind in _RANK else len(_RANK))
        if not self.parts:
            return self._data
        for part in self.parts:
            self._counted(part)
        self._chief()
        self._commands()
        self._once()
        for name in _SHARED:
            self._shared(name)
        self._environment()
        self._secrets()
        self._overlays()
        self._restricted()
        roles = self._data.setdefault("roles", {})
        self._data["roles"] = {name: _ordered(roles[name], _FIELDS) for name in _by_rank(roles)}
        if kubernetes := self.said(KUBERNETES):
            self._data["on"]["kubernetes"] = _ordered(
                kubernetes, [key for key in kubernetes if key not in ("pod", "roles")]
            )
        return _ordered(self._data, _ORDER)

    def _note(self, spot: Spot, to: Loc, why: str = "") -> None:
        if why:
            self.ledger.change(spot, why, to)
        else:
            self.ledger.carry(spot, to)

    def _say(self, to: Loc, said: Said) -> None:
        self.put(to, said.value, said.spot, said.why)

    def _counted(self, part: Part) -> None:
        self._say(("roles", part.kind, "count"), part.count)
        for name, said in part.fields.items():
            self._say(("roles", part.kind, name), said)
        for name, spot in part.alike:
            job, _ = _SHARED.get(name, (("roles", part.kind, name), ()))
            self._note(spot, job)

    def _chief(self) -> None:
        """A ps implies a chief here, and a worker; elsewhere worker 0 was the chief where there was none."""
        kinds = {part.kind: part for part in self.parts}
        if not kinds.keys() & {"chief", "worker"}:
            self.ledger.refuse(self.root.down("spec"), "no chief and no worker: nobody would train")
        if "ps" in kinds and "worker" not in kinds:
            self.ledger.refuse(kinds["ps"].root, "a ps serves workers, and there is none; a chief alone needs no ps")
        if "ps" in kinds and "worker" in kinds and "chief" not in kinds:
            self.put(
                ("roles", "chief", "count"),
                0,
                kinds["ps"].root,
                "no chief, as before: worker:0 is it. ParameterServerStrategy of TensorFlow 2 needs one that drives "
                "the workers: then say count: 1",
            )

    def _commands(self) -> None:
        """The job's is the one that most roles have, and of those the first."""
        said = [part.command.value for part in self.parts if part.command]
        if not said:
            return
        most = max(said, key=said.count)
        for part in self.parts:
            if part.command is None:
                continue
            to: Loc = ("command",) if part.command.value == most else ("roles", part.kind, "command")
            self._say(to, part.command)
            for spot in part.command_too:
                self._note(spot, to)

    def _once(self) -> None:
        """What has no place in a single role."""
        gpus = [said for part in self.parts if (said := part.shared.pop("gpu", None))]
        for said in gpus:
            if said.value != gpus[0].value:
                self.ledger.refuse(said.spot, f"a job has one kind of GPU, and this one has {gpus[0].value} too")
            elif said.value != "nvidia.com/gpu":
                self._say((*KUBERNETES, "gpu"), said)
        memory = [said for part in self.parts if (said := part.shared.pop("shm", None))]
        if memory:
            largest = max(memory, key=lambda one: size(one.value))
            alike = len(memory) == len(self.parts) and len({one.value for one in memory}) == 1
            why = "" if alike else "one size for all roles"
            for said in memory:
                self.put((*KUBERNETES, "shm"), largest.value, said.spot, why)
        gangs = [said for part in self.parts if (said := part.shared.pop("gang", None))]
        for said in gangs:
            if said.value != gangs[0].value:
                self.ledger.refuse(said.spot, "all roles must go to one scheduler, to start together")
            self.put((*KUBERNETES, "gang", "scheduler"), gangs[0].value, said.spot)

    def _shared(self, name: str) -> None:
        job, role = _SHARED[name]
        said = [(part, found) for part in self.parts if (found := part.shared.get(name))]
        if not said:
            return
        first = said[0][1].value
        everywhere = len(said) == len(self.parts) and all(one.value == first for _, one in said)
        for part, one in said:
            if everywhere or (name == "image" and one.value == first):
                self._say(job, one)
                continue
            value = [{"name": each} for each in one.value] if name == "pull_secrets" else one.value
            part.overlay.setdefault(role, dataclasses.replace(one, value=value))

    def _environment(self) -> None:
        for part in self.parts:
            visible = part.env.get("CUDA_VISIBLE_DEVICES")
            if visible and "gpus" in part.fields:
                del part.env["CUDA_VISIBLE_DEVICES"]
                self.ledger.change(visible.spot, "left out: `gpus` of the role says which GPUs a task sees")
        alike = _alike([{name: said.value for name, said in part.env.items()} for part in self.parts])
        for part in self.parts:
            for name, said in part.env.items():
                self._say(("env", name) if name in alike else ("roles", part.kind, "env", name), said)

    def _secrets(self) -> None:
        """A secret of the job reaches all roles: one that not all of them had stays with those that had it."""
        alike = _alike([{name: (one.secret, one.key) for name, one in part.secrets.items()} for part in self.parts])
        made = [
            {"name": name.lower().replace("_", "-"), "env": name, "from": {"secret": secret, "key": key}}
            for name, (secret, key) in alike.items()
        ]
        if made:
            self._data["secrets"] = made
        for part in self.parts:
            kept = []
            for name, one in part.secrets.items():
                if name in alike:
                    self._note(one.spot, ("secrets", list(alike).index(name)), one.why)
                    continue
                kept.append({"name": name, "valueFrom": one.spot.down("valueFrom").value})
                why = f"`secrets` would hand {name} to every role; here its value is not masked in logs"
                self.ledger.change(one.spot, why)
            if kept:
                path = (*TASK, "env")
                there = part.overlay.get(path)
                part.overlay[path] = Said(
                    value=[*kept, *(there.value if there else [])], spot=there.spot if there else part.root
                )

    def _overlays(self) -> None:
        common, rest = split([part.overlay for part in self.parts])
        self._lay((*KUBERNETES, "pod"), common, [part.overlay for part in self.parts])
        for part, own in zip(self.parts, rest, strict=True):
            self._lay((*KUBERNETES, "roles", part.kind, "pod"), own, [own])

    def _lay(self, to: Loc, overlay: Mapping[Path, Said], said_in: Sequence[Mapping[Path, Said]]) -> None:
        """One overlay, and a note for each place that said a part of it."""
        if not overlay:
            return
        made = laid(overlay)
        found = self._data
        for part in to:
            found = found.setdefault(str(part), {})
        found.update(made.template)
        for one in said_in:
            for path in overlay:
                self._note(one[path].spot, (*to, *made.places[path]), one[path].why)

    def _restricted(self) -> None:
        loose = [one for part in self.parts for one in part.loose]
        if loose:
            for one in loose:
                why = "the restricted profile does not allow what stands here"
                self._say((*KUBERNETES, "restricted"), Said(value=False, spot=one.spot, why=why))
        elif self.said((*KUBERNETES, "user")) is None:
            self.ledger.change(
                self.root.down("spec"),
                "pods run as user 65532 with a read-only root file system, where they ran as the image says; `user: N` "
                "takes another one, `restricted: off` leaves it to the image",
                KUBERNETES,
            )


def _alike(maps: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """What every one of them says, and says alike."""
    first, *others = maps
    return {name: value for name, value in first.items() if all(name in one and one[name] == value for one in others)}


def _ordered(data: dict[str, Any], order: Sequence[str]) -> dict[str, Any]:
    return {
        key: data[key] for key in [*(one for one in order if one in data), *(one for one in data if one not in order)]
    }


def _by_rank(roles: Mapping[str, Any]) -> list[str]:
    return sorted(roles, key=lambda name: _RANK.index(name) if name in _RANK else len(_RANK))
