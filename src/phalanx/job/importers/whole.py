"""What every dialect says of a whole job: its name and marks, restarts, deadlines, queues."""

from __future__ import annotations

import re
from collections.abc import Callable

from phalanx.job.importers import masked
from phalanx.job.importers.draft import KUBERNETES, Draft
from phalanx.job.importers.ledger import Spot
from phalanx.job.importers.manifests import blank

KUEUE = "kueue.x-k8s.io/queue-name"
_NAME = re.compile(r"[a-z](?:[a-z0-9-]{0,38}[a-z0-9])?\Z")
_NAMESPACE = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\Z")
_LABEL_KEY = re.compile(r"(?:[a-z0-9.-]+/)?[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?\Z")
_LABEL_VALUE = re.compile(r"(?:[A-Za-z0-9](?:[A-Za-z0-9._-]{0,61}[A-Za-z0-9])?)?\Z")
_SERVERS = {
    **dict.fromkeys(
        ("creationTimestamp", "generation", "managedFields", "resourceVersion", "selfLink", "uid", "deletionTimestamp"),
        "written by the API server",
    ),
    "ownerReferences": "whoever owned it does not own the run",
    "finalizers": "nobody waits for the run's objects to go",
    "clusterName": "a kubeconfig's context says which cluster",
}
_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


class Whole:
    """Reads what stands around the roles into a draft."""

    def __init__(self, draft: Draft) -> None:
        self._draft, self._ledger = draft, draft.ledger

    def metadata(self, spot: Spot) -> None:
        """Name, namespace, labels and annotations of the object."""
        self._ledger.each(
            spot,
            {
                "name": self._name,
                "generateName": self._generated,
                "namespace": self.namespace,
                "labels": self._labels,
                "annotations": self._annotations,
                **dict.fromkeys(_SERVERS, lambda one: self._ledger.drop(one, _SERVERS[one.key])),
            },
        )

    def status(self, spot: Spot) -> None:
        """What became of it elsewhere is none of the job's."""
        self._ledger.drop(spot, "what became of that job is no part of this one")

    def name(self, text: str, spot: Spot) -> None:
        """What the run is called, shortened to what every engine accepts."""
        if unfilled := blank(text):
            self._ledger.refuse(spot, f"`{unfilled}` is still to be filled in")
            return
        name = short_name(text)
        why = "" if name == text else f"`{text}`: at most 40 lower-case letters, digits and dashes, a letter first"
        self._draft.put(("name",), name, spot, why)

    def _name(self, spot: Spot) -> None:
        if text := self._ledger.text(spot):
            self.name(text, spot)

    def _generated(self, spot: Spot) -> None:
        if text := self._ledger.text(spot):
            self._draft.put(("name",), short_name(text), spot, "every run gets a number of its own after its name")

    def namespace(self, spot: Spot) -> None:
        """Where the run goes."""
        text = self._ledger.text(spot)
        if unfilled := blank(text):
            self._ledger.refuse(spot, f"`{unfilled}` is still to be filled in")
        elif text and not _NAMESPACE.match(text):
            self._ledger.refuse(
                spot, f"`{text[:80]}` is no namespace: lower-case letters, digits and dashes, at most 63"
            )
        elif text:
            self._draft.put((*KUBERNETES, "namespace"), text, spot)

    def _labels(self, spot: Spot) -> None:
        for field in self._ledger.mapping(spot):
            text = self._ledger.text(field)
            if field.key == KUEUE:
                self.queue(field)
            elif _LABEL_KEY.match(field.key) and _LABEL_VALUE.match(text):
                masked.below(self._ledger, field)
                self._draft.put((*KUBERNETES, "labels", field.key), text, field)
            else:
                self._ledger.drop(field, "no label that Kubernetes would take")

    def _annotations(self, spot: Spot) -> None:
        for field in self._ledger.mapping(spot):
            text = self._ledger.text(field)
            if field.key == _APPLIED:
                self._ledger.drop(field, "written by kubectl apply")
            elif field.key == KUEUE:
                self.queue(field)
            elif _LABEL_KEY.match(field.key):
                masked.below(self._ledger, field)
                self._draft.put((*KUBERNETES, "annotations", field.key), text, field)
            else:
                self._ledger.drop(field, "no annotation that Kubernetes would take")

    def queue(self, spot: Spot, why: str = "") -> None:
        """Kueue's; Volcano's where its scheduler starts the pods."""
        text = self._ledger.text(spot)
        there = self._draft.said((*KUBERNETES, "queue"))
        if text and there not in (None, text):
            self._ledger.refuse(spot, f"a run waits in one queue, and {there} is named already")
        elif text and _LABEL_VALUE.match(text):
            self._draft.put((*KUBERNETES, "queue"), text, spot, why)
        elif text:
            self._ledger.refuse(spot, f"`{text[:80]}` is no name of a queue")

    def priority(self, spot: Spot) -> None:
        """The PriorityClass."""
        if text := self._ledger.text(spot):
            self._draft.put((*KUBERNETES, "priority"), text, spot)

    def seconds(self, key: str) -> Callable[[Spot], None]:
        """A reader for a number of seconds, which becomes `on.kubernetes.KEY`."""

        def reader(spot: Spot) -> None:
            number = self._ledger.number(spot, 1 if key == "deadline" else 0)
            if number is not None:
                self._draft.put((*KUBERNETES, key), _time(number), spot)

        return reader

    def restarts(self, spot: Spot, counts: str) -> None:
        """The most restarts. `counts`: what the number counted before."""
        if (number := self._ledger.number(spot)) is not None:
            why = f"counted {counts}; here the restarts of the whole group, of one kind of failure, within an hour"
            self._draft.put(("restart", "max"), number, spot, why)

    def clean(self, spot: Spot) -> None:
        """What became of pods after the end: cleanPodPolicy."""
        self._ledger.change(spot, "always: no process outlives the run; its logs stay in the run's folder")

    def policies(self, spots: list[Spot], *, counted: bool) -> None:
        """The restartPolicy of every role; `counted`: a limit is said elsewhere."""
        ledger = self._ledger
        known = ("Always", "OnFailure", "Never", "ExitCode")
        for spot in spots:
            if spot.value not in known:
                ledger.refuse(spot, f"one of {', '.join(known)} is expected here")
        said = {str(spot.value) for spot in spots}
        if said == {"Never"} and not counted:
            for spot in spots:
                self._draft.put(("restart", "max"), 0, spot)
            return
        words = {
            "Never": "never, where others are: a group starts again as one, so `restart` holds for this role too",
            "OnFailure": "each pod by itself; here the group starts again as one, a ps or an evaluator alone",
            "Always": "also after success; here a task that has ended well stays ended, a failed group starts again",
            "ExitCode": "again after 128 and more, never after less; here the lead tells by exit code and last lines",
        }
        words["Never"] = words["Never"] if len(said) > 1 else "never; the limit that is said beside it holds"
        for spot in spots:
            if spot.value in known:
                ledger.change(spot, words[spot.value], ("restart",))


def short_name(text: str) -> str:
    """As job.yaml has it: at most 40 lower-case letters, digits and dashes."""
    if _NAME.match(text):
        return text
    slug = re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")
    slug = slug if slug[:1].isalpha() else f"job-{slug}"
    return slug[:40].strip("-")


def _time(number: int) -> int | str:
    for unit, seconds in (("d", 86400), ("h", 3600), ("m", 60)):
        if number and number % seconds == 0:
            return f"{number // seconds}{unit}"
    return number
