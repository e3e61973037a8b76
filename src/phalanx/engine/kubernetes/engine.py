"""Starts a run in a cluster, and is its Started: what the launcher asks while it follows, and at the end."""

from __future__ import annotations

import contextlib
import dataclasses
import time
from collections.abc import Callable, Sequence
from typing import Any

from phalanx.decide.podfields import host_number
from phalanx.decide.seen import Standing
from phalanx.decide.waiting import told
from phalanx.engine.base import Submission
from phalanx.engine.bundle import agent_zip
from phalanx.engine.kubernetes.client import Client, ClusterError
from phalanx.engine.kubernetes.mirror import Mirror
from phalanx.engine.kubernetes.objects import objects
from phalanx.engine.kubernetes.place import Place, address_of, host_name
from phalanx.errors import PhalanxError, PlaceError
from phalanx.plan.cluster import Cluster
from phalanx.plan.marks import RUN, STOP
from phalanx.records.folder import RunFolder
from phalanx.records.reader import read_end

Manifest = dict[str, Any]

#: The kinds of a run's objects that are looked for when it is deleted, those that make others first.
KINDS = (
    "JobSet",
    "Job",
    "NetworkPolicy",
    "Service",
    "ConfigMap",
    "Secret",
    "RoleBinding",
    "Role",
    "ServiceAccount",
)
#: Seconds for which a Job that has ended without a word of its lead is given the benefit of the doubt.
_DOUBT = 10.0
#: Exit code of a run that somebody has stopped.
_STOPPED = 4


class KubernetesEngine:
    """See Engine."""

    name = "kubernetes"

    def __init__(self, client: Client, cluster: Cluster) -> None:
        """Asks nothing yet."""
        self._client = client
        self._cluster = dataclasses.replace(cluster, namespace=client.namespace)

    def start(self, submission: Submission) -> KubernetesRun:
        """Applies everything; takes it all back where a part is refused. Raises InputError, PlaceError."""
        manifests = objects(
            submission.outline,
            self._cluster,
            run=submission.run,
            agent=agent_zip(),
            key=submission.key.hex(),
            imports=submission.imports,
        )
        place = Place(self._client, submission.run)
        try:
            self._apply(manifests)
        except BaseException:
            with contextlib.suppress(PhalanxError):
                delete(place, also=manifests)
            raise
        run = KubernetesRun(
            place,
            RunFolder(submission.folder),
            start=submission.outline.policies.health.start,
            watched=self._cluster.role,
            attached=submission.attached,
        )
        run.follow()
        return run

    def _apply(self, manifests: Sequence[Manifest]) -> None:
        """The lead's Job first, held back, since all others are its own; it is let go once they are there.

        What a queue holds back stays with the queue.
        """
        owner_at = next(n for n, one in enumerate(manifests) if one["kind"] in ("Job", "JobSet"))
        first = manifests[owner_at]
        held = {**first, "spec": {**first["spec"], "suspend": True}}
        made = self._client.apply(held)
        owner = {
            "apiVersion": first["apiVersion"],
            "kind": first["kind"],
            "name": first["metadata"]["name"],
            "uid": made["metadata"]["uid"],
        }
        for manifest in (*manifests[:owner_at], *manifests[owner_at + 1 :]):
            meta = {**manifest["metadata"], "ownerReferences": [owner]}
            self._client.apply({**manifest, "metadata": meta})
        if not first["spec"].get("suspend"):
            self._client.apply({**first, "spec": {**first["spec"], "suspend": False}})


def delete(place: Place, *, also: Sequence[Manifest] = (), grace: int | None = None) -> None:
    """Delete every object of the run; idempotent. Goes on past what may not be deleted; raises the first refusal."""
    wrong: PlaceError | None = None
    known = {(one["kind"], one["metadata"]["name"]) for one in also}
    for kind in KINDS:
        names = {name for of, name in known if of == kind}
        try:
            names |= {one["metadata"]["name"] for one in place.client.list(kind, place.labels)}
        except ClusterError as refused:
            if refused.status not in (403, 404):  # a kind that this cluster, or this user, does not have
                wrong = wrong or refused
        for name in sorted(names):
            try:
                place.client.delete(kind, name, grace=grace)
            except ClusterError as refused:
                wrong = wrong or refused
    if grace == 0:
        with contextlib.suppress(ClusterError):
            for pod in place.pods():
                place.client.delete("Pod", pod["metadata"]["name"], grace=0)
    if wrong is not None:
        raise wrong


def suspend(place: Place, *, by: str) -> None:
    """Take the pods away and keep the Jobs: each pod gets TERM and its grace. Raises ClusterError."""
    asked: dict[str, Any] = {"metadata": {"annotations": {STOP: by}}}
    change = {**asked, "spec": {"suspend": True}}
    sets: list[dict[str, Any]] = []
    with contextlib.suppress(ClusterError):  # a kind that this cluster, or this user, does not have
        sets = place.client.list("JobSet", place.labels)
    for job in place.client.list("Job", place.labels):
        place.client.patch("Job", job["metadata"]["name"], asked if sets else change)
    for one in sets:
        place.client.patch("JobSet", one["metadata"]["name"], change)


class KubernetesRun:
    """See Started."""

    def __init__(
        self,
        place: Place,
        folder: RunFolder,
        *,
        start: float,
        watched: bool,
        attached: bool,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`start`: seconds until the lead's pod must run. `watched`: the lead watches the pods itself."""
        self.place, self._folder, self._start, self._watched, self._attached = place, folder, start, watched, attached
        self._clock, self._began = clock, clock()
        self.mirror = Mirror(place, folder)
        self._said: set[tuple[str, str, str]] = set()
        self._anew = 0
        self._ended_since: float | None = None
        self._broken: str | None = None

    @property
    def lead(self) -> str:
        """See Started."""
        return address_of(self.place.client, self.place.run)

    def follow(self) -> None:
        """Begin to put what happens into the folder."""
        self.mirror.start()

    def news(self) -> list[str]:
        """What is to be said of pods that wait, each once."""
        if self.mirror.records.anew != self._anew:
            self._anew = self.mirror.records.anew
            return [
                "nobody was left who knew the run's records: it begins anew, from its newest checkpoint if it has one"
            ]
        if self._watched and self.mirror.records.last:
            return []  # the lead says it, and the records have it
        found = []
        for name, seen in self.mirror.findings().items():
            if (name, seen.cause, seen.says) in self._said:
                continue
            self._said.add((name, seen.cause, seen.says))
            found.append(f"{name} {told(seen)}")
        return found

    def lost(self) -> dict[int, str]:
        """Hosts whose pods have ended, where the lead cannot see it itself."""
        if self._watched:
            return {}
        facts = self.place.facts()
        lost = {}
        for pod in list(self.mirror.pods.values()):
            number = host_number(pod.object, facts.get("roles", ()))
            seen = self.mirror.findings().get(host_name(pod.object))
            if number is not None and seen is not None and seen.standing is Standing.GONE:
                lost[number] = f"its pod {seen.says}"
        return lost

    def broken(self) -> str | None:
        """Why nothing more can come: the run was deleted, its lead's Job has ended, or no pod ever started."""
        if self._broken is None:
            self._broken = self._why()
        return self._broken

    def _why(self) -> str | None:
        mirror = self.mirror
        if mirror.refused is not None:
            return str(mirror.refused)
        if mirror.records.ended or not all(mirror.listed.values()):
            return None
        if not mirror.jobs:
            return f"its Jobs are gone from namespace {self.place.client.namespace}: somebody has deleted the run"
        if not mirror.records.last and self._clock() - self._began > self._start:
            return self._never_started()
        return self._ended_without_a_word()

    def _never_started(self) -> str:
        """The start deadline: what could not come up holds nothing any more (R49)."""
        found = self.mirror.findings(soon=0.0)
        why = "; ".join(f"{name} {seen.says}" for name, seen in sorted(found.items())[:3]) or "nobody says why"
        with contextlib.suppress(PhalanxError):
            delete(self.place)
        return f"its lead did not start within {self._start:g} s, and everything was released: {why}"

    def _ended_without_a_word(self) -> str | None:
        facts = self.place.facts()
        job = str(facts["lead"]).partition(".")[0].rpartition("-")[0]
        status = (self.mirror.jobs.get(job) or {}).get("status") or {}
        over = any(
            one.get("type") in ("Failed", "Complete") and one.get("status") == "True"
            for one in status.get("conditions") or ()
        )
        if not over:
            self._ended_since = None
            return None
        self._ended_since = self._ended_since or self._clock()
        if self._clock() - self._ended_since < _DOUBT:
            return None
        found = self.mirror.findings()
        said = "; ".join(f"{name} {seen.says}" for name, seen in sorted(found.items())[:3])
        return f"the Job {job} has ended, and its log has no end of the run" + (f": {said}" if said else "")

    def finish(self, patience: float) -> None:
        """The run has ended. One that was stopped leaves nothing behind; else its objects stay for their TTL."""
        end = read_end(self._folder)
        self.mirror.report()
        until = self._clock() + patience
        while self._clock() < until and any(_going(pod.object) for pod in self.mirror.pods.values() if not pod.gone):
            time.sleep(0.1)
        if end is not None and end.exit_code == _STOPPED:
            with contextlib.suppress(PhalanxError):
                delete(self.place)

    def stop(self, by: str) -> bool:
        """See Started: each pod is told to end, and the lead reads in its Job that this is a stop."""
        with contextlib.suppress(PhalanxError):
            suspend(self.place, by=by)
            return True
        return False

    def kill(self) -> None:
        """See Started."""
        self.mirror.close()
        with contextlib.suppress(PhalanxError):
            delete(self.place, grace=0)

    def let_go(self) -> None:
        """See Started: the run goes on in its cluster."""
        self.mirror.close()
        self.place.client.close()


def _going(pod: Any) -> bool:
    return (pod.get("status") or {}).get("phase") in ("Pending", "Running")


def runs_there(client: Client) -> dict[str, list[dict[str, Any]]]:
    """The Jobs of every run in the namespace, by run. Raises ClusterError."""
    found: dict[str, list[dict[str, Any]]] = {}
    for job in client.list("Job", RUN):
        found.setdefault(job["metadata"]["labels"][RUN], []).append(job)
    return found
