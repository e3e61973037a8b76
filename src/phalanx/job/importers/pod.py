"""A pod template → one role's part: the container that trains, what surrounds it, and where it may run."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

from phalanx.job.importers import masked
from phalanx.job.importers.container import Container, security
from phalanx.job.importers.ledger import Ledger, Spot
from phalanx.job.importers.part import TASK, Part, Said

_AS_IT_IS = (
    *("affinity", "automountServiceAccountToken", "dnsConfig", "dnsPolicy", "enableServiceLinks", "hostAliases"),
    *("nodeName", "nodeSelector", "os", "overhead", "preemptionPolicy", "priority", "resourceClaims"),
    *("runtimeClassName", "shareProcessNamespace", "tolerations", "topologySpreadConstraints"),
)
_HOST = ("hostIPC", "hostNetwork", "hostPID")
_UNUSED = {
    "activeDeadlineSeconds": "a pod's own deadline would end the run in parts; on.kubernetes.deadline ends all of it",
    "hostname": "pods are called RUN-ROLE-i",
    "subdomain": "pods are found at RUN-ROLE-i.RUN",
    "setHostnameAsFQDN": "pods are found at RUN-ROLE-i.RUN",
    "ephemeralContainers": "made by kubectl debug, for one pod",
    "readinessGates": "tasks are found by the lead, ready or not",
    "schedulingGates": "with Kueue, the Jobs begin suspended: on.kubernetes.queue",
}
#: What meshes read; ours are off already.
_MESH = {
    "sidecar.istio.io/inject": "false",
    "linkerd.io/inject": "disabled",
    "consul.hashicorp.com/connect-inject": "false",
    "kuma.io/sidecar-injection": "disabled",
}
_GROUPS = ("scheduling.k8s.io/group-name", "scheduling.x-k8s.io/pod-group", "pod-group.scheduling.sigs.k8s.io")
_GANGS = {"volcano": "volcano", "kube-batch": "volcano", "scheduler-plugins-scheduler": "coscheduling"}
#: Volumes that our pods have already.
_TAKEN = frozenset({"agent", "key", "run", "runs", "shm", "tmp", "work"})
_SHM = "/dev/shm"  # noqa: S108 - a place in a pod


class Pod:
    """Reads one template into a part."""

    def __init__(self, ledger: Ledger, part: Part, *, entrypoint: Sequence[str] = (), trains: str = "") -> None:
        """`trains`: the container that trains, where the dialect names it; else the first."""
        self._ledger, self._part = ledger, part
        self._entrypoint, self._trains = entrypoint, trains

    def read(self, template: Spot) -> None:
        """`{metadata, spec}` of a template."""
        self._ledger.each(template, {"metadata": self._metadata, "spec": self._spec})
        if not isinstance(template.down("spec").value, dict):
            self._ledger.refuse(template.down("spec"), "the pod template has no spec")

    def _metadata(self, spot: Spot) -> None:
        self._ledger.each(
            spot,
            {
                "labels": self._marks,
                "annotations": self._marks,
                **dict.fromkeys(("name", "generateName", "namespace"), self._named),
                "creationTimestamp": lambda _: None,
            },
        )

    def _named(self, spot: Spot) -> None:
        self._ledger.drop(spot, "pods are called RUN-ROLE-i, in the run's namespace")

    def _marks(self, spot: Spot) -> None:
        for field in self._ledger.mapping(spot):
            text = self._ledger.text(field)
            masked.below(self._ledger, field)
            if _MESH.get(field.key) == text:
                self._ledger.change(field, "left out: phalanx keeps meshes out of its pods by itself")
            elif field.key in _GROUPS:
                self._ledger.change(field, "left out: on.kubernetes.gang makes the group of its pods itself")
            else:
                self._lay(("metadata", spot.key, field.key), text, field)

    def _spec(self, spot: Spot) -> None:
        containers = self._ledger.sequence(spot.down("containers"))
        main = self._main(containers, spot)
        if main is not None:
            Container(self._ledger, self._part, self._entrypoint).read(main)
        readers: dict[str, Callable[[Spot], None]] = {
            "containers": lambda _: self._beside([one for one in containers if one is not main], "containers"),
            "initContainers": lambda one: self._beside(self._ledger.sequence(one), "initContainers"),
            "volumes": lambda _: None,  # with their mounts, below
            "restartPolicy": self._restart,
            "imagePullSecrets": self._pull_secrets,
            "priorityClassName": lambda one: self._share("priority", self._ledger.text(one), one),
            "terminationGracePeriodSeconds": lambda one: self._share("grace", self._ledger.number(one), one),
            "securityContext": self._security,
            "schedulerName": self._scheduler,
            "serviceAccountName": self._account,
            "serviceAccount": self._old_account,
            **dict.fromkeys(_AS_IT_IS, self._as_it_is),
            **dict.fromkeys(_HOST, self._of_host),
            **dict.fromkeys(_UNUSED, lambda one: self._ledger.drop(one, _UNUSED[one.key])),
        }
        self._ledger.each(spot, readers)
        self._volumes(spot.down("volumes"), main)

    def _main(self, containers: list[Spot], spec: Spot) -> Spot | None:
        if not containers:
            self._ledger.refuse(spec.down("containers"), "the pod has no container")
            return None
        named = [one for one in containers if self._trains and one.down("name").value == self._trains]
        if not named and len(containers) > 1:
            first = containers[0].down("name")
            self._ledger.change(first, f"several containers: the first, {first.value}, is taken as the one that trains")
        return (named or containers)[0]

    def _beside(self, containers: list[Spot], key: str) -> None:
        for one in containers:
            name = self._ledger.text(one.down("name"))
            if not name or name == TASK[-1]:
                self._ledger.refuse(one, f"a container beside ours needs a name other than `{TASK[-1]}`")
                continue
            masked.below(self._ledger, one)
            security(self._ledger, self._part, one.down("securityContext"))
            why = "a sidecar: it starts before the task and ends with it" if key == "containers" else ""
            self._lay(("spec", key, name), one.value, one, why)

    def _restart(self, spot: Spot) -> None:
        self._ledger.change(spot, "the lead decides: a task that fails has its group started again (`restart`)")

    def _pull_secrets(self, spot: Spot) -> None:
        names = [self._ledger.text(one.down("name")) for one in self._ledger.sequence(spot)]
        if names:
            self._share("pull_secrets", [name for name in names if name], spot)

    def _security(self, spot: Spot) -> None:
        security(self._ledger, self._part, spot)
        for field in self._ledger.mapping(spot):
            if field.key == "runAsUser" and field.value:
                self._part.shared.setdefault("user", Said(value=self._ledger.number(field), spot=field))
            else:
                self._lay(("spec", "securityContext", field.key), field.value, field)

    def _scheduler(self, spot: Spot) -> None:
        name = self._ledger.text(spot)
        if name in _GANGS:
            self._share("gang", _GANGS[name], spot)
        elif name == "default-scheduler":
            self._ledger.change(spot, "left out: it is the default")
        else:
            self._as_it_is(spot)

    def _account(self, spot: Spot) -> None:
        self._lay(("spec", "serviceAccountName"), self._ledger.text(spot), spot)
        self._ledger.change(
            spot, "its token is mounted in the lead's pods only, unless `pod` says automountServiceAccountToken: true"
        )

    def _old_account(self, spot: Spot) -> None:
        """The older name of the same field; where both stand they are alike."""
        if ("spec", "serviceAccountName") not in self._part.overlay:
            self._lay(("spec", "serviceAccountName"), self._ledger.text(spot), spot, "the newer name of the field")

    def _of_host(self, spot: Spot) -> None:
        if self._ledger.truth(spot):
            self._part.loose.append(Said(value=None, spot=spot))
            self._lay(("spec", spot.key), spot.value, spot)

    def _as_it_is(self, spot: Spot) -> None:
        masked.below(self._ledger, spot)
        self._lay(("spec", spot.key), spot.value, spot)

    def _volumes(self, volumes: Spot, main: Spot | None) -> None:
        mounts = [one.value for one in self._ledger.sequence(main.down("volumeMounts"))] if main is not None else []
        mounts = [one for one in mounts if isinstance(one, dict)]
        renamed: dict[str, str] = {}
        for one in self._ledger.sequence(volumes):
            name = self._ledger.text(one.down("name"))
            if not name:
                self._ledger.refuse(one, "a volume needs a name")
                continue
            masked.below(self._ledger, one)
            if (size := self._shm(one, name, mounts)) is not None:
                self._share("shm", size, one)
                mounts = [mount for mount in mounts if mount.get("name") != name]
                continue
            if one.down("hostPath").value is not None:
                self._part.loose.append(Said(value=None, spot=one.down("hostPath")))
            why = ""
            if name in _TAKEN or name.startswith(("hugepages-", "secret-")):
                renamed[name] = f"{name}-volume"
                why = f"called {name}-volume: {name} is a volume of ours"
            self._lay(
                ("spec", "volumes", renamed.get(name, name)), {**one.value, "name": renamed.get(name, name)}, one, why
            )
        if main is not None and mounts:
            self._lay((*TASK, "volumeMounts"), [_moved(mount, renamed) for mount in mounts], main.down("volumeMounts"))
        if renamed:
            self._rename(renamed)

    def _shm(self, volume: Spot, name: str, mounts: Sequence[dict[str, Any]]) -> str | None:
        """The size of a volume that is nothing but /dev/shm."""
        memory, size = volume.down("emptyDir", "medium").value, volume.down("emptyDir", "sizeLimit")
        where = [mount.get("mountPath") for mount in mounts if mount.get("name") == name]
        if memory != "Memory" or where != [_SHM] or size.value is None:
            return None
        written = size.tree.written.get(size.loc, "")
        return written if written[:1].isdigit() and written[-1:] in "0123456789iMGTK" else None

    def _rename(self, renamed: dict[str, str]) -> None:
        """In the mounts of the other containers too."""
        for path, said in list(self._part.overlay.items()):
            beside = path[:2] in (("spec", "containers"), ("spec", "initContainers")) and path[2] != TASK[-1]
            if beside and isinstance(mounts := said.value.get("volumeMounts"), list):
                moved = [_moved(mount, renamed) if isinstance(mount, dict) else mount for mount in mounts]
                self._part.overlay[path] = dataclasses.replace(said, value={**said.value, "volumeMounts": moved})

    def _share(self, name: str, value: object, spot: Spot) -> None:
        if value not in (None, ""):
            self._part.shared[name] = Said(value=value, spot=spot)

    def _lay(self, path: tuple[str, ...], value: object, spot: Spot, why: str = "") -> None:
        self._part.overlay[path] = Said(value=value, spot=spot, why=why)


def _moved(mount: dict[str, Any], renamed: dict[str, str]) -> dict[str, Any]:
    return {**mount, "name": renamed.get(str(mount.get("name")), mount.get("name"))}
