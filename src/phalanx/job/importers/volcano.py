"""Job of Volcano: tasks by the names that its tensorflow plugin gives them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

from phalanx.job.importers.draft import KUBERNETES, Draft
from phalanx.job.importers.ledger import Spot
from phalanx.job.importers.manifests import Manifest
from phalanx.job.importers.part import TASK, Part, Said
from phalanx.job.importers.pod import Pod
from phalanx.job.importers.shell import LAUNCHERS, launcher_advice
from phalanx.job.importers.whole import Whole

GROUP = "batch.volcano.sh"
_KINDS = ("ps", "worker", "chief", "evaluator")
_PLUGINS = {
    "svc": "the run has a headless Service of its own: RUN-ROLE-i.RUN",
    "env": "tasks read their number from TF_CONFIG, or PHALANX_TASK",
}
_OTHERS = {
    "ssh": "nothing of TensorFlow needs ssh between pods",
    "pytorch": "the tasks would find MASTER_ADDR and RANK; phalanx writes TF_CONFIG",
    "mpi": "MultiWorkerMirroredStrategy needs no MPI",
    "ray": "phalanx starts TensorFlow, not Ray",
}
_RESTARTS = ("RestartJob", "RestartTask", "RestartPod", "RestartPartition")
_ROLE = re.compile(r"[a-z][a-z0-9_-]{0,39}\Z")
_UNUSED = {
    "minSuccess": "success is that of the chief, else of worker:0",
    "networkTopology": "placement: {together: rack} keeps tasks near each other; on.kubernetes.topology has its label",
    "runningEstimate": "nothing is reckoned from it",
}


class VolcanoJob:
    """Reads one Job into a draft."""

    def __init__(self, draft: Draft, entrypoint: Sequence[str]) -> None:
        self._draft, self._ledger, self._entrypoint = draft, draft.ledger, entrypoint
        self._whole = Whole(draft)
        self._kinds: dict[str, str] = {kind: kind for kind in _KINDS} | {"master": "chief"}
        self._plugin: Spot | None = None
        self._policies: list[Spot] = []

    def read(self, manifest: Manifest) -> None:
        """All of it."""
        root, whole = manifest.root, self._whole
        ignored = dict.fromkeys(("apiVersion", "kind"), lambda _: None)
        spec = root.down("spec")
        if spec.down("plugins", "tensorflow").value is not None:
            self._tensorflow(spec.down("plugins", "tensorflow"))
        if not self._tensorflows(spec):
            return
        self._ledger.each(root, {**ignored, "metadata": whole.metadata, "status": whole.status, "spec": self._spec})
        self._foreign(root)

    def _tensorflows(self, spec: Spot) -> bool:
        """Whether it may be TensorFlow's at all: by its plugins, and by the names of its tasks."""
        for name, why in _OTHERS.items():
            if name != "ssh" and spec.down("plugins", name).value is not None and self._plugin is None:
                self._ledger.refuse(spec.down("plugins", name), f"no job of TensorFlow's: {why}")
                return False
        if (other := _launched(spec.down("tasks"))) is not None:
            self._ledger.refuse(*other)
            return False
        names = [one.down("name").value for one in self._ledger.sequence(spec.down("tasks"))]
        if not any(self._kinds.get(str(name)) in ("worker", "chief") for name in names):
            self._ledger.refuse(
                spec.down("tasks"),
                "no task is called worker or chief, by its name or by the tensorflow plugin: nobody would train",
            )
            return False
        return True

    def _foreign(self, root: Spot) -> None:
        """No plugin and no TF_CONFIG by hand: nothing says that this is TensorFlow's."""
        parts = self._draft.parts
        if self._ledger.complaints:
            return
        if self._plugin is None and not any(part.by_hand for part in parts) and len(parts) > 1:
            self._ledger.refuse(
                root.down("spec", "plugins"),
                "no tensorflow plugin and no TF_CONFIG in it: nothing says how its tasks find each other. If their "
                "program reads TF_CONFIG, add `tensorflow: []` to the plugins and import again",
            )

    def _spec(self, spot: Spot) -> None:
        whole, ledger = self._whole, self._ledger
        readers: dict[str, Callable[[Spot], None]] = {
            "tasks": self._tasks,
            "schedulerName": self._scheduler,
            "queue": whole.queue,
            "minAvailable": self._all_or_none,
            "maxRetry": lambda one: whole.restarts(one, "the restarts of the Job"),
            "ttlSecondsAfterFinished": whole.seconds("ttl"),
            "priorityClassName": whole.priority,
            "policies": self._lifecycle,
            "plugins": self._plugins,
            "volumes": lambda _: None,  # with the tasks: every one has them
            **dict.fromkeys(_UNUSED, lambda one: ledger.drop(one, _UNUSED[one.key])),
        }
        ledger.each(spot, readers)
        if spot.down("queue").value and not self._draft.said((*KUBERNETES, "gang")):
            why = "Volcano's queue, so Volcano's scheduler"
            self._draft.put((*KUBERNETES, "gang", "scheduler"), "volcano", spot.down("queue"), why)
        self._volumes(spot.down("volumes"))
        if self._policies:
            whole.policies(self._policies, counted=spot.down("maxRetry").value is not None)

    def _scheduler(self, spot: Spot) -> None:
        name = self._ledger.text(spot)
        if name == "default-scheduler":
            self._ledger.change(spot, "left out: it is the default")
            return
        why = "" if name == "volcano" else f"{name or 'the default'}: Volcano's scheduler under its name of today"
        self._draft.put((*KUBERNETES, "gang", "scheduler"), "volcano", spot, why)

    def _all_or_none(self, spot: Spot) -> None:
        if self._ledger.number(spot) is not None:
            self._ledger.change(spot, "a run starts with all of its pods or with none", (*KUBERNETES, "gang"))

    def _plugins(self, spot: Spot) -> None:
        for field in self._ledger.mapping(spot):
            if field.key == "tensorflow":
                self._ledger.change(field, "phalanx writes TF_CONFIG, and leaves the evaluator out of its cluster")
            elif field.key in _PLUGINS:
                self._ledger.change(field, _PLUGINS[field.key])
            else:
                self._ledger.drop(field, _OTHERS.get(field.key, "phalanx has no plugin of that name"))

    def _tensorflow(self, spot: Spot) -> None:
        """`--ps=NAME --worker=NAME …`: which tasks are which."""
        self._plugin = spot
        words: Iterator[str] = iter(self._ledger.words(spot))
        for word in words:
            name, equals, value = word.lstrip("-").partition("=")
            value = value if equals else next(words, "")
            if name in _KINDS:
                self._kinds.pop(name, None)
                self._kinds[value] = name
            elif name != "port":
                self._ledger.refuse(spot, f"`{word[:80]}` is no argument of the tensorflow plugin: --ps, --worker, …")

    def _lifecycle(self, spot: Spot) -> None:
        for item in self._ledger.sequence(spot):
            action = item.down("action").value
            if action in _RESTARTS:
                why = "a failed or evicted task has its group started again, from the checkpoint: `restart`"
            elif action == "CompleteJob":
                why = "the chief's success, else that of worker:0, is the run's, and ends all other tasks"
            elif action in ("AbortJob", "TerminateJob"):
                why = "once no restart is left a failure ends the run, and all its tasks"
            else:
                self._ledger.drop(item, "phalanx decides by its own rules what follows an event")
                continue
            self._ledger.change(item, why, ("restart",) if action in _RESTARTS else None)

    def _tasks(self, spot: Spot) -> None:
        seen: set[str] = set()
        for item in self._ledger.sequence(spot):
            name = item.down("name")
            said = self._ledger.text(name)
            kind = self._kinds.get(said, said)
            if not said or not _ROLE.match(kind):
                self._ledger.refuse(name, "a task needs a name of lower-case letters, digits and dashes")
            elif kind in seen:
                self._ledger.refuse(name, f"a second task that is {kind}; say it once, with more replicas")
            else:
                seen.add(kind)
                self._task(kind, item, name)

    def _task(self, kind: str, item: Spot, name: Spot) -> None:
        count = item.down("replicas")
        number = self._ledger.number(count)
        number = 1 if number is None else number
        if kind in ("chief", "evaluator") and number > 1:
            self._ledger.refuse(count, f"TensorFlow takes at most one {kind}, not {number}")
        if kind == name.value:
            self._ledger.carry(name, ("roles", kind))
        else:
            self._ledger.change(name, f"the task {name.value} is called {kind}", ("roles", kind))
        part = Part(kind=kind, root=item, count=Said(value=number, spot=count if count.value is not None else name))
        self._ledger.each(
            item,
            {
                **dict.fromkeys(("name", "replicas"), lambda _: None),
                "template": lambda one: Pod(self._ledger, part, entrypoint=self._entrypoint).read(one),
                "policies": self._lifecycle,
                "restartPolicy": self._policies.append,
                "minAvailable": self._all_or_none,
                "maxRetry": lambda one: self._ledger.drop(one, "restarts are counted for the whole run: restart.max"),
                "dependsOn": lambda one: self._ledger.drop(one, "tasks wait for each other by themselves"),
                "topologyPolicy": lambda one: self._ledger.drop(one, "the kubelet's own policy holds for each node"),
                "partitionPolicy": lambda one: self._ledger.drop(one, "all pods of a role are alike"),
            },
        )
        if item.down("template").value is None:
            self._ledger.refuse(item, "this task has no template")
        if number:
            self._draft.parts.append(part)
        else:
            self._draft.put(("roles", kind, "count"), 0, count)

    def _volumes(self, spot: Spot) -> None:
        """`{mountPath, volumeClaimName}`: in every pod of the Job."""
        mounts, claims = [], {}
        for number, item in enumerate(self._ledger.sequence(spot)):
            path, claim = self._ledger.text(item.down("mountPath")), item.down("volumeClaimName")
            if not path or not self._ledger.text(claim):
                self._ledger.drop(
                    item, "a claim made for each job has no counterpart: make it, and mount it by its name"
                )
                continue
            name = f"claim-{number}"
            claims[name] = {"name": name, "persistentVolumeClaim": {"claimName": claim.value}}, item
            mounts.append({"name": name, "mountPath": path})
        for part in self._draft.parts if mounts else ():
            own = part.overlay.get((*TASK, "volumeMounts"))
            part.overlay[(*TASK, "volumeMounts")] = Said(value=[*(own.value if own else []), *mounts], spot=spot)
            for name, (volume, item) in claims.items():
                part.overlay["spec", "volumes", name] = Said(value=volume, spot=item)


def _launched(spot: Spot) -> tuple[Spot, str] | None:
    """Where MPI or another launcher is called, and what to do instead."""
    if isinstance(spot.value, str):
        called = LAUNCHERS.search(spot.value)
        return (spot, launcher_advice(called[0].strip())) if called else None
    if isinstance(spot.value, dict | list):
        return next((found for one in spot.items() if (found := _launched(one))), None)
    return None
