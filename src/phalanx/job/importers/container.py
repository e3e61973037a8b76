"""The container that trains → command, resources and environment of a role, and what is laid over our container."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from phalanx.job.importers import masked, quantity, shell, variables
from phalanx.job.importers.ledger import Ledger, Spot
from phalanx.job.importers.manifests import blank
from phalanx.job.importers.part import TASK, Part, Said

_AS_IT_IS = ("envFrom", "lifecycle", "volumeDevices")
_PROBES = ("livenessProbe", "readinessProbe", "startupProbe")
_UNUSED = {
    "stdin": "tasks read no standard input",
    "stdinOnce": "tasks read no standard input",
    "tty": "tasks have no terminal",
    "terminationMessagePath": "the lead writes the report's end there",
    "terminationMessagePolicy": "the lead writes the report's end there",
    "resizePolicy": "a task is restarted to get other resources",
}
_PULLS = ("Always", "IfNotPresent", "Never")
_COORDINATOR = "tfjob-port"
#: What only a command begins with; as arguments of an ENTRYPOINT they would make no sense.
_PROGRAM = re.compile(r"(?:/\S*/)?(?:python[0-9.]*|(?:ba|da)?sh|env|exec)\Z")


class Container:
    """Reads one container into a part. `entrypoint` is what the image runs, where the manifest does not say."""

    def __init__(self, ledger: Ledger, part: Part, entrypoint: Sequence[str]) -> None:
        self._ledger, self._part, self._entrypoint = ledger, part, entrypoint

    def read(self, spot: Spot) -> None:
        """All of it."""
        variables.read(self._ledger, self._part, spot.down("env"))
        readers: dict[str, Callable[[Spot], None]] = {
            "name": self._name,
            "image": self._image,
            "imagePullPolicy": self._pull,
            "workingDir": self._folder,
            "ports": self._ports,
            "resources": self._resources,
            "securityContext": self._security,
            "volumeMounts": lambda _: None,  # the pod's: they go with its volumes
            **dict.fromkeys(("env", "command", "args"), lambda _: None),  # together, below
            **dict.fromkeys(_AS_IT_IS, self._as_it_is),
            **dict.fromkeys(_PROBES, self._probe),
            **dict.fromkeys(_UNUSED, self._unused),
        }
        self._ledger.each(spot, readers)
        if not self._part.shared.get("image"):
            self._ledger.refuse(spot.down("image"), "the container has no image")
        self._command(spot)

    def _name(self, spot: Spot) -> None:
        if spot.value != "task":
            self._ledger.change(spot, "the container that trains is called `task`: kubectl logs POD -c task")

    def _image(self, spot: Spot) -> None:
        image = self._ledger.text(spot)
        if unfilled := blank(image):
            self._ledger.refuse(spot, f"`{unfilled}` is still to be filled in")
        if image:
            self._part.shared["image"] = Said(value=image, spot=spot)

    def _pull(self, spot: Spot) -> None:
        if spot.value in _PULLS:
            self._part.shared["pull"] = Said(value=spot.value, spot=spot)
        else:
            self._ledger.refuse(spot, f"one of {', '.join(_PULLS)} is expected here")

    def _folder(self, spot: Spot) -> None:
        if folder := self._ledger.text(spot):
            self._part.shared["folder"] = Said(value=folder, spot=spot)

    def _ports(self, spot: Spot) -> None:
        kept = []
        for item in self._ledger.sequence(spot):
            if item.down("hostPort").value is not None:
                self._part.loose.append(Said(value=None, spot=item.down("hostPort")))
            elif item.down("name").value == _COORDINATOR or item.down("containerPort").value == _TF_PORT:
                self._ledger.change(item, "phalanx gives each task a port of its own, and holds it")
                continue
            kept.append(item.value)
        if kept:
            self._lay("ports", kept, spot)

    def _resources(self, spot: Spot) -> None:
        for one in quantity.asked(self._ledger, spot):
            if one.also is not None:
                self._part.alike.append((one.field, one.also))
            if one.field in ("cpus", "memory", "gpus"):
                self._part.fields[one.field] = Said(value=one.value, spot=one.spot, why=one.why)
            elif one.field:
                self._part.shared[one.field] = Said(value=one.value, spot=one.spot)
            else:
                self._part.overlay[(*TASK, "resources", *one.at)] = Said(value=one.value, spot=one.spot)
            if one.gpu and one.value:
                self._part.shared["gpu"] = Said(value=one.gpu, spot=one.spot, why=one.why)

    def _security(self, spot: Spot) -> None:
        security(self._ledger, self._part, spot)
        for field in self._ledger.mapping(spot):
            if field.key == "runAsUser" and field.value:
                self._part.shared["user"] = Said(value=self._ledger.number(field), spot=field)
            else:
                self._part.overlay[(*TASK, "securityContext", field.key)] = Said(value=field.value, spot=field)

    def _as_it_is(self, spot: Spot) -> None:
        masked.below(self._ledger, spot)
        self._lay(spot.key, spot.value, spot)

    def _probe(self, spot: Spot) -> None:
        self._ledger.drop(spot, "phalanx watches the task itself, by steps and signs of life: `health`")

    def _unused(self, spot: Spot) -> None:
        self._ledger.drop(spot, _UNUSED[spot.key])

    def _lay(self, key: str, value: object, spot: Spot) -> None:
        self._part.overlay[(*TASK, key)] = Said(value=value, spot=spot)

    def _command(self, spot: Spot) -> None:
        command, args = spot.down("command"), spot.down("args")
        words = self._ledger.words(command)
        why = ""
        said = self._ledger.words(args)
        if not words and self._entrypoint:
            words, why = list(self._entrypoint), "the image's own command, as it was given to phalanx import"
        elif not words and said and _PROGRAM.match(said[0]):
            why = "args alone, and they name a program: the image is taken to have no ENTRYPOINT of its own"
            words, said = said, []
        place = command if command.value else args if args.value else spot
        if not words:
            self._ledger.refuse(
                place,
                "the manifest does not say what the image runs, and job.yaml must: hand its ENTRYPOINT"
                f"{'' if said else ' and CMD'} over after `--`: phalanx import FILE -- python train.py",
            )
            return
        words, filled = variables.words(self._part, [*words, *said])
        masked.words(self._ledger, words, place)
        script = shell.by_hand(words)
        if script is not None:
            self._part.by_hand, self._part.scripted = True, script.kind
            if script.words is None:
                self._ledger.refuse(
                    place,
                    "this script writes TF_CONFIG in a way that cannot be taken apart; leave only what trains in it: "
                    "phalanx writes TF_CONFIG",
                )
                return
            words, filled = list(script.words), "TF_CONFIG is not written by hand any more: phalanx does"
        if self._relies(words, place):
            return
        if any(not word for word in words[:1]):
            self._ledger.refuse(place, "the first word of the command is empty")
            return
        self._part.command_too = [args] if args.value and place is not args else []
        self._part.command = Said(value=words, spot=place, why=filled or why)

    def _relies(self, words: Sequence[str], place: Spot) -> bool:
        """Whether it names tasks that phalanx numbers, or files that only another launcher writes."""
        text = " ".join(words)
        if found := shell.LAUNCHERS.search(text):
            self._ledger.refuse(place, shell.launcher_advice(found[0].strip()))
            return True
        if found := shell.VOLCANO.search(text):
            advice = (
                "reads what only Volcano writes; let the program read TF_CONFIG: "
                "json.loads(os.environ['TF_CONFIG'])['cluster'] has the addresses, ['task'] type and index"
            )
            self._ledger.refuse(place, f"`{found[0]}` {advice}")
            return True
        if found := shell.FLAGS.search(text):
            self._ledger.refuse(
                place,
                f"`{found[0]}` hands addresses or numbers of tasks over by hand, and phalanx gives other ones; let the "
                "program read TF_CONFIG: json.loads(os.environ['TF_CONFIG']) has `cluster` and `task`",
            )
            return True
        return False


_TF_PORT = 2222


def security(ledger: Ledger, part: Part, context: Spot) -> None:
    """Note what the `restricted` profile refuses in a securityContext."""
    for field in ledger.mapping(context):
        added = field.down("add") if field.key == "capabilities" else None
        if (
            (field.key in ("privileged", "allowPrivilegeEscalation") and field.value is True)
            or (field.key == "runAsUser" and field.value == 0)
            or (field.key == "runAsNonRoot" and field.value is False)
            or (field.key in ("procMount", "sysctls", "windowsOptions"))
            or (added is not None and added.value)
        ):
            part.loose.append(Said(value=None, spot=added if added is not None else field))
