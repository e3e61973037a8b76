"""Jobs, Pods, StatefulSets and their like with a TF_CONFIG that somebody wrote by hand."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from phalanx.job.importers.draft import Draft
from phalanx.job.importers.ledger import Spot
from phalanx.job.importers.manifests import Manifest
from phalanx.job.importers.part import TASK, Part, Said
from phalanx.job.importers.pod import Pod
from phalanx.job.importers.whole import Whole, short_name
from phalanx.tfconfig.model import TfConfig
from phalanx.tfconfig.parse import parse

#: Kind → the groups it is found in.
KINDS = {
    "Pod": ("",),
    "ReplicationController": ("",),
    "Job": ("batch",),
    "Deployment": ("apps", "extensions"),
    "ReplicaSet": ("apps", "extensions"),
    "StatefulSet": ("apps",),
    "DaemonSet": ("apps", "extensions"),
}
_TYPES = {"chief": "chief", "master": "chief", "worker": "worker", "ps": "ps", "evaluator": "evaluator"}
_SHOWN = 6
#: As it stands in names: `tf-ps0`, `mnist-worker-1`.
_NAMED = re.compile(r"(?:^|[^a-z])(chief|master|worker|ps|evaluator)(?=$|[^a-z])")
_OURS = "the Jobs of a run are phalanx's own"
_TRAINS = "a training ends, and its pods with it"
_UNUSED = {
    "completionMode": "one Indexed Job a role, always",
    "backoffLimitPerIndex": "the lead decides about restarts: `restart`",
    "maxFailedIndexes": "the lead decides about restarts: `restart`",
    "podFailurePolicy": "phalanx tells failures of the platform from those of the program by itself",
    "podReplacementPolicy": _OURS,
    "successPolicy": "success is that of the chief, else of worker:0",
    "manualSelector": _OURS,
    "managedBy": "nobody manages the run but phalanx",
    "suspend": "a run begins when it is started; with Kueue (on.kubernetes.queue) its Jobs begin suspended",
    "selector": "pods of a run are found by the label phalanx/run",
    "serviceName": "the run has a headless Service of its own: RUN-ROLE-i.RUN",
    "podManagementPolicy": "all pods start at once",
    **dict.fromkeys(("updateStrategy", "strategy", "minReadySeconds", "paused", "progressDeadlineSeconds"), _TRAINS),
    **dict.fromkeys(("revisionHistoryLimit", "persistentVolumeClaimRetentionPolicy", "ordinals"), _TRAINS),
}


@dataclasses.dataclass(kw_only=True, slots=True)
class _Load:
    """One object whose pods train."""

    manifest: Manifest
    part: Part
    config: TfConfig | None = None


class Plain:
    """Reads the objects of one training into a draft."""

    def __init__(self, draft: Draft, entrypoint: Sequence[str]) -> None:
        self._draft, self._ledger, self._entrypoint = draft, draft.ledger, entrypoint
        self._whole = Whole(draft)

    def read(self, manifests: Sequence[Manifest]) -> None:
        """All of them: pods of one cluster."""
        loads = [self._load(manifest, named=len(manifests) == 1) for manifest in manifests]
        if len(manifests) > 1:
            self._names(manifests)
        if self._ledger.complaints:
            return
        for load in loads:
            self._place(load, alone=len(loads) == 1)
        if not self._ledger.complaints:
            self._agree(loads)
            self._roles(loads)

    def _load(self, manifest: Manifest, *, named: bool) -> _Load:
        root, spec = manifest.root, manifest.root.down("spec")
        part = Part(kind="", root=spec, count=Said(value=1, spot=spec))
        load = _Load(manifest=manifest, part=part)
        ignored: dict[str, Callable[[Spot], None]] = dict.fromkeys(("apiVersion", "kind"), lambda _: None)
        ignored["status"] = self._whole.status
        metadata = self._whole.metadata if named else self._marks
        if manifest.kind == "Pod":
            pod = Pod(self._ledger, part, entrypoint=self._entrypoint)
            template = dataclasses.replace(root, value={"spec": spec.value} if spec.value is not None else {})
            self._ledger.each(root, {**ignored, "metadata": metadata, "spec": lambda _: pod.read(template)})
        else:
            self._ledger.each(root, {**ignored, "metadata": metadata, "spec": lambda one: self._spec(load, one)})
        if spec.value is None:
            self._ledger.refuse(root, f"this {manifest.kind} has no spec")
        return load

    def _marks(self, spot: Spot) -> None:
        """Of several objects: their names are roles, their labels told them apart."""
        space = spot.down("namespace")
        if space.value is not None:
            there = self._draft.said(("on", "kubernetes", "namespace"))
            if there not in (None, space.value):
                self._ledger.refuse(space, f"a run is in one namespace, and {there} is named before")
            self._whole.namespace(space)
        for field in self._ledger.mapping(spot):
            if field.key in ("labels", "annotations"):
                self._ledger.drop(
                    field, "told the objects of the training apart; on.kubernetes.labels marks all of a run"
                )

    def _names(self, manifests: Sequence[Manifest]) -> None:
        names = [manifest.name for manifest in manifests]
        common = re.sub(r"[-._]?(?:chief|master|worker|ps|evaluator)?[-._0-9]*$", "", _shared_start(names))
        first = manifests[0].root.down("metadata", "name")
        why = f"the {len(names)} objects are one run: {', '.join(names[:_SHOWN])}{', …' if len(names) > _SHOWN else ''}"
        self._draft.put(("name",), short_name(common or names[0]), first, why)

    def _spec(self, load: _Load, spot: Spot) -> None:
        part, ledger, whole = load.part, self._ledger, self._whole
        pod = Pod(ledger, part, entrypoint=self._entrypoint)
        claims = spot.down("volumeClaimTemplates")
        readers: dict[str, Callable[[Spot], None]] = {
            "template": pod.read,
            **dict.fromkeys(("replicas", "completions", "parallelism"), lambda one: self._count(load, one)),
            "backoffLimit": lambda one: whole.restarts(one, "the restarts of pods"),
            "activeDeadlineSeconds": whole.seconds("deadline"),
            "ttlSecondsAfterFinished": whole.seconds("ttl"),
            "volumeClaimTemplates": lambda _: None,  # below: the template's mounts name them
            **dict.fromkeys(_UNUSED, lambda one: ledger.drop(one, _UNUSED[one.key])),
        }
        ledger.each(spot, readers)
        if spot.down("template").value is None:
            ledger.refuse(spot, "the spec has no template")
        for claim in ledger.sequence(claims):
            name = ledger.text(claim.down("metadata", "name"))
            if name:
                volume = {"name": name, "ephemeral": {"volumeClaimTemplate": {"spec": claim.down("spec").value or {}}}}
                why = "a claim that goes with its pod: what must outlast it belongs on a shared PersistentVolumeClaim"
                part.overlay["spec", "volumes", name] = Said(value=volume, spot=claim, why=why)

    def _count(self, load: _Load, spot: Spot) -> None:
        number = self._ledger.number(spot)
        if number is None:
            return
        before = load.part.count
        if before.spot.loc == load.part.root.loc:
            load.part.count = Said(value=number, spot=spot)
        elif before.value != number:
            self._ledger.refuse(
                spot, f"{number} here and {before.value} in {before.spot.path}: all tasks of a cluster run at once"
            )

    def _place(self, load: _Load, *, alone: bool) -> None:
        """Which role it is: by its TF_CONFIG, a script's, its name."""
        part, written = load.part, load.part.tf_config
        if written is not None and isinstance(written.value, str):
            load.config = parse(written.value, path="TF_CONFIG").config
            task = load.config.task if load.config else None
            if load.config is None or load.config.cluster is None or task is None:
                self._ledger.refuse(written, "this TF_CONFIG has no cluster and task that could be read: phalanx check")
                return
            kind = _TYPES.get(task.type, task.type)
            if part.count.value > 1:
                self._ledger.change(
                    part.count.spot, f"its pods all had one TF_CONFIG, that of {task}: each gets a number of its own"
                )
        else:
            found = _NAMED.search(load.manifest.name.lower())
            labels = load.manifest.root.down("spec", "template", "metadata", "labels")
            told = (
                [_TYPES[str(one.value)] for one in labels.items() if str(one.value) in _TYPES] if labels.value else []
            )
            said = part.scripted if part.scripted in _TYPES else found[1] if found else told[0] if told else ""
            kind = _TYPES.get(str(said), "worker" if alone else "")
        if not kind:
            self._ledger.refuse(
                load.manifest.root.down("metadata", "name"),
                f"nothing says which tasks the pods of {load.manifest.said} are: give it a name such as "
                f"{load.manifest.name}-worker",
            )
        part.kind = kind

    def _agree(self, loads: Sequence[_Load]) -> None:
        """One cluster: what the TF_CONFIGs say must be the same."""
        said = [load for load in loads if load.config is not None]
        for load in said[1:]:
            first, other = said[0].config, load.config
            if first and other and first.cluster != other.cluster and load.part.tf_config:
                line = said[0].part.tf_config.line if said[0].part.tf_config else 1
                self._ledger.refuse(
                    load.part.tf_config, f"another cluster than in line {line}; phalanx agree says where they differ"
                )

    def _roles(self, loads: Sequence[_Load]) -> None:
        kinds: dict[str, list[_Load]] = {}
        for load in loads:
            kinds.setdefault(load.part.kind, []).append(load)
        config = next((load.config for load in loads if load.config), None)
        for kind, members in kinds.items():
            part = members[0].part
            number = sum(load.part.count.value for load in members)
            why = (
                ""
                if len(members) == 1
                else f"{len(members)} objects: " + ", ".join(one.manifest.said for one in members)
            )
            if config and config.cluster and (named := _named(config, kind)) > number:
                self._ledger.refuse(
                    part.tf_config or part.root,
                    f"the cluster has {named} of {kind}, and {number} of them stand in this file; add the others",
                )
            if kind in ("chief", "evaluator") and number > 1:
                self._ledger.refuse(part.root, f"TensorFlow takes at most one {kind}, not {number}")
            part.count = dataclasses.replace(part.count, value=number, why=why)
            for load in members[1:]:
                self._differ(part, load)
            self._draft.parts.append(part)
        if config and config.cluster:
            for kind in sorted({_TYPES.get(name, name) for name in _jobs(config)} - set(kinds)):
                self._ledger.refuse(
                    loads[0].part.tf_config or loads[0].part.root,
                    f"the cluster names {kind}, and no pod of it stands in this file; add it, and import again",
                )

    def _differ(self, part: Part, load: _Load) -> None:
        """All tasks of a role are alike: what another one has is named, and gone."""
        self._told_apart(part, load.part)
        first, other = _flat(part), _flat(load.part)
        for name in {**first, **other}:
            here, there = first.get(name), other.get(name)
            if (here.value if here else None) == (there.value if there else None):
                continue
            spot = there.spot if there else load.part.root
            self._ledger.drop(spot, f"all tasks of a role are alike: {name} is that of {part.kind}:0")

    def _told_apart(self, part: Part, other: Part) -> None:
        """Labels by which the objects of one role differed are no labels of the role."""
        for path in [path for path in {**part.overlay, **other.overlay} if path[:2] == ("metadata", "labels")]:
            here, there = part.overlay.get(path), other.overlay.get(path)
            if here and there and here.value == there.value:
                continue
            for said in (part.overlay.pop(path, None), there):
                if said is not None:
                    self._ledger.drop(said.spot, "told the objects of the training apart; a role has labels of its own")


def _shared_start(names: Sequence[str]) -> str:
    low, high = min(names), max(names)
    same = next((at for at, pair in enumerate(zip(low, high, strict=False)) if pair[0] != pair[1]), len(low))
    return low[:same]


def _flat(part: Part) -> dict[str, Said]:
    found: dict[str, Said] = {
        ".".join(path[2:] if path[:2] == TASK[:2] else path): one for path, one in part.overlay.items()
    }
    found |= {f"env.{name}": said for name, said in part.env.items()}
    found |= part.fields | part.shared
    found |= {f"secret {name}": Said(value=(one.secret, one.key), spot=one.spot) for name, one in part.secrets.items()}
    # Labels told the objects apart.
    found = {name: said for name, said in found.items() if not name.startswith("metadata.labels")}
    return found | ({"command": part.command} if part.command else {})


def _jobs(config: TfConfig) -> Iterator[str]:
    cluster: Any = config.cluster
    yield from cluster.jobs


def _named(config: TfConfig, kind: str) -> int:
    cluster: Any = config.cluster
    return sum(len(tasks) for name, tasks in cluster.jobs.items() if _TYPES.get(name, name) == kind)


def has_tf_config(manifest: Manifest) -> bool:
    """Whether TF_CONFIG is written anywhere in its pods."""

    def below(spot: Spot) -> bool:
        if isinstance(spot.value, str):
            return "TF_CONFIG" in spot.value
        return isinstance(spot.value, dict | list) and any(below(one) for one in spot.items())

    return below(manifest.root.down("spec"))
