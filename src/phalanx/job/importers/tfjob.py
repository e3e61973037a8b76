"""TFJob of Kubeflow, in all its versions, and of KubeDL."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from phalanx.job.importers.draft import KUBERNETES, Draft
from phalanx.job.importers.ledger import Spot
from phalanx.job.importers.manifests import Manifest
from phalanx.job.importers.part import Part, Said
from phalanx.job.importers.pod import Pod
from phalanx.job.importers.whole import Whole

#: kubeflow.org since v1alpha1; tensorflow.org and mlkube.io before it had a home.
GROUPS = frozenset({"kubeflow.org", "tensorflow.org", "mlkube.io", "training.kubedl.io", "kubedl.io"})
KINDS = frozenset({"TFJob", "TfJob"})
_TYPES = {
    "chief": "chief",
    "master": "chief",
    "worker": "worker",
    "ps": "ps",
    "evaluator": "evaluator",
    "eval": "evaluator",
}
_TRAINS = "tensorflow"
_ONE = ("chief", "evaluator")
_NOT_OURS = {
    "cacheBackend": "KubeDL's cache of data; mount what it cached by a volume in on.kubernetes.pod",
    "modelVersion": "KubeDL's image of a model; build it after the run, from `outputs`",
    "cronPolicy": "a CronJob that runs phalanx render's objects, or CI, starts it again and again",
    "gangScheduling": "on.kubernetes.gang starts all pods or none",
    "managedBy": "nobody manages the run but phalanx",
    "suspend": "a run begins when it is started; with Kueue (on.kubernetes.queue) its Jobs begin suspended",
    "runtimeId": "every run gets an id of its own",
    "RuntimeId": "every run gets an id of its own",
    "tensorboard": "phalanx starts none: run TensorBoard on the folder of logs by itself, or as a role of your own",
    "tensorBoard": "phalanx starts none: run TensorBoard on the folder of logs by itself, or as a role of your own",
}


class TFJob:
    """Reads one TFJob into a draft."""

    def __init__(self, draft: Draft, entrypoint: Sequence[str]) -> None:
        self._draft, self._ledger, self._entrypoint = draft, draft.ledger, entrypoint
        self._whole = Whole(draft)
        self._policies: list[Spot] = []
        self._counted = False
        self._dynamic: Spot | None = None
        self._image = ""

    def read(self, manifest: Manifest) -> None:
        """All of it."""
        root, whole = manifest.root, self._whole
        spec = root.down("spec")
        self._image = self._ledger.text(spec.down("tfImage"))
        self._counted = any(
            one.value is not None for one in (spec.down("backoffLimit"), spec.down("runPolicy", "backoffLimit"))
        )
        ignored = dict.fromkeys(("apiVersion", "kind"), lambda _: None)
        self._ledger.each(root, {**ignored, "metadata": whole.metadata, "status": whole.status, "spec": self._spec})
        if not self._draft.parts and not self._ledger.complaints:
            self._ledger.refuse(
                spec, "this TFJob has no replicas: spec.tfReplicaSpecs names Chief, Worker, PS, Evaluator"
            )
        self._labels()
        if self._policies:
            whole.policies(self._policies, counted=self._counted)
        self._elastic()

    def _spec(self, spot: Spot) -> None:
        policy = self._run_policy()
        self._ledger.each(
            spot,
            {
                "tfReplicaSpecs": self._replicas,
                "replicaSpecs": self._old_replicas,
                "runPolicy": lambda one: self._ledger.each(one, policy),
                **policy,
                "successPolicy": self._success,
                "enableDynamicWorker": self._dynamic_worker,
                "terminationPolicy": self._termination,
                "tfImage": lambda one: self._ledger.change(one, "the image of a ps that has no template", ("image",)),
            },
        )

    def _run_policy(self) -> dict[str, Callable[[Spot], None]]:
        """At spec's own level before v1 and with KubeDL, under runPolicy since."""
        whole = self._whole
        return {
            **dict.fromkeys(("cleanPodPolicy", "cleanupPodPolicy"), whole.clean),
            **dict.fromkeys(("ttlSecondsAfterFinished", "ttlSecondsAfterFinishing"), whole.seconds("ttl")),
            "activeDeadlineSeconds": whole.seconds("deadline"),
            "backoffLimit": lambda one: whole.restarts(one, "the restarts of all pods"),
            "schedulingPolicy": self._scheduling,
            "priorityClassName": whole.priority,
            **dict.fromkeys(_NOT_OURS, lambda one: self._ledger.drop(one, _NOT_OURS[one.key])),
        }

    def _scheduling(self, spot: Spot) -> None:
        self._ledger.each(
            spot,
            {
                **dict.fromkeys(("minAvailable", "minMember"), self._all_or_none),
                "queue": self._whole.queue,
                **dict.fromkeys(("priorityClass", "priorityClassName"), self._whole.priority),
                "minResources": lambda one: self._ledger.drop(one, "the pods' own requests say what the group needs"),
                "scheduleTimeoutSeconds": self._timeout,
            },
        )
        self._draft.put(
            (*KUBERNETES, "gang", "scheduler"),
            "volcano",
            spot,
            "the operator's own gang scheduler: say coscheduling if it was",
        )

    def _all_or_none(self, spot: Spot) -> None:
        if self._ledger.number(spot) is not None:
            self._ledger.change(spot, "a run starts with all of its pods or with none", (*KUBERNETES, "gang"))

    def _timeout(self, spot: Spot) -> None:
        number = self._ledger.number(spot, 1)
        if number is not None:
            self._draft.put(("health", "start"), number, spot, "until every task listens, the wait for nodes included")

    def _success(self, spot: Spot) -> None:
        if self._ledger.text(spot) == "AllWorkers":
            self._ledger.change(
                spot,
                "a run has succeeded when its chief, else worker:0, has; the other workers get health.finish to end "
                "well too, and whose work fails meanwhile fails the run",
            )
        else:
            self._ledger.change(spot, "as here: success is that of the chief, else of worker:0")

    def _dynamic_worker(self, spot: Spot) -> None:
        if self._ledger.truth(spot):
            self._dynamic = spot
        else:
            self._ledger.change(spot, "as here: the number of workers stays")

    def _termination(self, spot: Spot) -> None:
        """v1alpha1: whose end is the job's."""
        chief = spot.down("chief")
        name, index = self._ledger.text(chief.down("replicaName")), chief.down("replicaIndex").value or 0
        kind = _TYPES.get(name.lower(), "")
        if index == 0 and kind in ("chief", "worker"):
            self._ledger.change(spot, "success is that of the chief, else of worker:0")
        else:
            self._ledger.refuse(
                spot, f"success would be that of {name}:{index}; here it is the chief's, else worker:0's"
            )

    def _replicas(self, spot: Spot) -> None:
        seen: dict[str, str] = {}
        for field in self._ledger.mapping(spot):
            kind = _TYPES.get(field.key.lower())
            if kind is None:
                self._ledger.refuse(field, "no type of replica that TFJob knows: Chief, Master, Worker, PS, Evaluator")
                continue
            if kind in seen:
                self._ledger.refuse(field, f"{seen[kind]} stands here already, and is the same {kind}")
                continue
            seen[kind] = field.key
            self._replica(kind, field, spot=field)

    def _old_replicas(self, spot: Spot) -> None:
        """v1alpha1: a list, each item with its type."""
        seen: set[str] = set()
        for item in self._ledger.sequence(spot):
            said = item.down("tfReplicaType")
            name = self._ledger.text(said) or "MASTER"
            kind = _TYPES.get(name.lower())
            if kind is None:
                self._ledger.refuse(said, "no type of replica that TFJob knows: MASTER, WORKER, PS")
            elif kind in seen:
                self._ledger.refuse(said, f"a second {name}; say it once, with more replicas")
            else:
                seen.add(kind)
                self._replica(kind, item, spot=said if said.value else item)

    def _replica(self, kind: str, replica: Spot, *, spot: Spot) -> None:
        count = replica.down("replicas")
        number = self._ledger.number(count)
        number = 1 if number is None else number
        if kind in _ONE and number > 1:
            self._ledger.refuse(count, f"TensorFlow takes at most one {kind}, not {number}")
        why = f"`{replica.key}` is called {kind}" if replica.key.lower() in ("master", "eval") else ""
        said = count if count.value is not None else spot
        part = Part(kind=kind, root=replica, count=Said(value=number, spot=said, why=why))
        self._ledger.each(
            replica,
            {
                "replicas": lambda _: None,
                "tfReplicaType": lambda one: self._ledger.carry(one, ("roles", kind)),
                "tfPort": lambda one: self._ledger.change(one, "phalanx gives each task a port of its own"),
                "template": lambda one: Pod(self._ledger, part, entrypoint=self._entrypoint, trains=_TRAINS).read(one),
                "restartPolicy": self._policies.append,
                **dict.fromkeys(
                    ("IsDefaultPS", "isDefaultPS"), lambda one: self._ledger.change(one, "a ps without a template")
                ),
                "spotReplicaSpec": lambda one: self._ledger.drop(one, "all pods of a role are alike"),
                "dependOn": lambda one: self._ledger.drop(one, "tasks wait for each other by themselves"),
            },
        )
        if replica.down("template").value is None:
            self._without_template(part, replica)
        if number:
            self._draft.parts.append(part)
        else:
            self._draft.put(("roles", kind, "count"), 0, said)

    def _without_template(self, part: Part, replica: Spot) -> None:
        """v1alpha1 ran its own server on a ps without a template; ours is `command: server`."""
        if part.kind != "ps":
            self._ledger.refuse(replica, "these replicas have no template")
            return
        why = "a ps without a template ran the operator's server; here tf.distribute.Server"
        part.command = Said(value="server", spot=replica, why=why)
        if self._image:
            part.shared["image"] = Said(value=self._image, spot=replica)

    def _labels(self) -> None:
        """The operator marked its pods, and affinities go by these marks: what is asked for is marked here too."""
        asked = {
            key: said.spot
            for part in self._draft.parts
            for path, said in part.overlay.items()
            if path in (("spec", "affinity"), ("spec", "topologySpreadConstraints"))
            for key in _MARKS
            if _mentions(said.value, key)
        }
        for part in self._draft.parts:
            for key, spot in asked.items():
                value = _MARKS[key] or part.kind
                why = "the operator gave its pods this label, and an affinity goes by it"
                part.overlay.setdefault(("metadata", "labels", key), Said(value=value, spot=spot, why=why))

    def _elastic(self) -> None:
        if self._dynamic is None:
            return
        kinds = {part.kind: part for part in self._draft.parts}
        worker = kinds.get("worker")
        if worker is None or "ps" in kinds:
            self._ledger.drop(self._dynamic, "only MultiWorkerMirroredStrategy goes on in another size")
            return
        why = "goes on with fewer workers, from the checkpoint; with `max` it grows too, by phalanx scale"
        worker.fields["min"] = Said(value=1, spot=self._dynamic, why=why)


#: Labels of the operator, and their values; empty: the type of the replica.
_MARKS = {
    "group-name": "kubeflow.org",
    "group_name": "kubeflow.org",
    "replica-type": "",
    "tf-replica-type": "",
    "training.kubeflow.org/replica-type": "",
}


def _mentions(value: object, key: str) -> bool:
    """Whether a selector below names the label."""
    if isinstance(value, dict):
        return key in value or value.get("key") == key or any(_mentions(item, key) for item in value.values())
    return isinstance(value, list) and any(_mentions(item, key) for item in value)
