"""A run in a cluster, followed: its pods and Jobs are watched, their logs read, and all of it put into a run folder."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import json
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

from phalanx.apiwatch import ApiRefusedError
from phalanx.decide.podfields import host_number, own_status
from phalanx.decide.podjobs import see_job
from phalanx.decide.pods import see
from phalanx.decide.seen import Seen, Standing
from phalanx.engine.kubernetes.client import ForbiddenError
from phalanx.engine.kubernetes.copy import Outputs, Positions, RecordFile, parsed
from phalanx.engine.kubernetes.place import Place, host_name
from phalanx.errors import PlaceError
from phalanx.plan.marks import CONTAINER, RECORD
from phalanx.records.folder import RunFolder
from phalanx.records.reader import read_plan, read_state
from phalanx.records.report import build_report
from phalanx.records.writer import write_atomic

#: Logs that are followed at once: those of the first hosts, among whom the lead is; others on demand.
LOGS = 48
#: Seconds before a pod that waits is spoken of: most come up sooner.
SOON = 4.0
#: Seconds between two looks at what cannot be watched, and between two questions for events.
_LOOK, _EVENTS = 0.25, 10.0
#: Seconds that threads have to end: those that wait for the cluster's word do not, and nobody waits for them.
_PARTING = 0.3
#: Seconds before a log that broke off is opened again, doubled up to the longest.
_AGAIN, _LONGEST = 0.5, 8.0
#: A pod whose container has not begun has no log yet.
_NOT_YET, _GONE = 400, 404


@dataclasses.dataclass(slots=True)
class _Pod:
    """One pod as it was last told."""

    object: Mapping[str, Any]
    since: float
    gone: bool = False


class Mirror:
    """Follows one run. Everything it does is in threads of its own; `close` ends them."""

    def __init__(
        self, place: Place, folder: RunFolder, *, most: int = LOGS, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """Goes on where an earlier one of the same folder was. Nothing is asked before `start` or `catch_up`."""
        self.place, self.folder, self._most, self._clock = place, folder, most, clock
        folder.path.mkdir(parents=True, exist_ok=True)
        for each in (folder.logs, folder.tasks, folder.agents):
            each.mkdir(exist_ok=True)
        self.records = RecordFile(folder.events)
        self._outputs = Outputs(folder, self.records.starts)
        self._positions = Positions(folder.path / "pods.json")
        self._over = threading.Event()
        self._lock = threading.Lock()
        self.pods: dict[str, _Pod] = {}
        self.jobs: dict[str, Mapping[str, Any]] = {}
        #: Whether all pods and all Jobs that there are have been told.
        self.listed = {"Pod": False, "Job": False}
        self._logs: dict[str, threading.Thread] = {}
        self._threads: list[threading.Thread] = []
        self._events: tuple[float, list[dict[str, Any]]] = (-1e9, [])
        #: Why nothing can be followed, once that is certain.
        self.refused: PlaceError | None = None
        self.trouble = ""

    # One look --------------------------------------------------------------------------------------------------------

    def catch_up(self) -> None:
        """Read all that there is now: pods, Jobs, logs. Raises ClusterError."""
        for pod in self.place.pods():
            self.pods[pod["metadata"]["name"]] = _Pod(pod, self._clock())
        self.listed["Pod"] = True
        for job in self.place.client.list("Job", self.place.labels):
            self.jobs[job["metadata"]["name"]] = job
        self.listed["Job"] = True
        for name in self._with_logs():
            with contextlib.suppress(ApiRefusedError):
                self._read(name, follow=False)
        self.records.give_up_gaps()
        self._positions.save()
        self.report()

    # Following -------------------------------------------------------------------------------------------------------

    def start(self) -> None:
        """From now on."""
        for kind in ("Pod", "Job"):
            self._thread(f"watch {kind}", functools.partial(self._watch, kind))
        self._thread("logs", self._run)

    def close(self) -> None:
        """Ends all threads, as soon as what they wait for comes; idempotent."""
        self._over.set()
        until = time.monotonic() + _PARTING
        for thread in self._threads:
            thread.join(max(until - time.monotonic(), 0.0))
        with contextlib.suppress(OSError):
            self._positions.save()
        self.report()

    def report(self) -> None:
        """What a run that has ended means, beside its records, as everywhere; once."""
        if not self.records.ended or self.folder.report.exists():
            return
        made = build_report(read_state(self.folder), read_plan(self.folder), self.folder)
        with contextlib.suppress(PlaceError):
            write_atomic(self.folder.report, json.dumps(made.to_json(), indent=1) + "\n")

    def _thread(self, name: str, work: Callable[[], None]) -> threading.Thread:
        thread = threading.Thread(target=work, name=name, daemon=True)
        self._threads.append(thread)
        thread.start()
        return thread

    def _wait(self, seconds: float) -> bool:
        return self._over.wait(seconds) if seconds else self._over.is_set()

    def _watch(self, kind: str) -> None:
        try:
            for change in self.place.client.watch(kind, self.place.labels, wait=self._wait):
                self.trouble = str(change.trouble) if change.trouble else ""
                if change.listed:
                    self.listed[kind] = True
                if change.object is not None:
                    self._take(kind, change.object, gone=change.gone)
        except PlaceError as wrong:
            self.refused = wrong

    def _take(self, kind: str, item: Mapping[str, Any], *, gone: bool) -> None:
        name = str(item["metadata"]["name"])
        with self._lock:
            if kind == "Pod":
                known = self.pods.get(name)
                self.pods[name] = _Pod(item, known.since if known else self._clock(), gone=gone)
            elif gone:
                self.jobs.pop(name, None)
            else:
                self.jobs[name] = item

    def _run(self) -> None:
        """Opens the log of each pod whose container has begun, and of each that replaces one."""
        saved = self._clock()
        while not self._over.wait(_LOOK):
            for name in self._with_logs():
                if name not in self._logs:
                    self._logs[name] = self._thread(f"log {name}", functools.partial(self._follow, name))
            self.records.flush()
            if self._clock() - saved > 1.0:
                saved = self._clock()
                with contextlib.suppress(OSError):
                    self._positions.save()

    def _with_logs(self) -> list[str]:
        """Pods that have begun, by the number of their host; of many the first ones."""
        with self._lock:
            begun = [(name, pod.object) for name, pod in self.pods.items() if not pod.gone and _has_begun(pod.object)]
        try:
            facts = self.place.facts()
        except PlaceError:
            return []
        begun.sort(key=lambda one: (host_number(one[1], facts.get("roles", ())) or 0, one[0]))
        return [name for name, _ in begun[: self._most]]

    def _follow(self, name: str) -> None:
        delay = _AGAIN
        while not self._over.is_set():
            try:
                if self._read(name, follow=True):
                    delay = _AGAIN
            except ApiRefusedError as wrong:
                if wrong.status == _GONE:
                    return
                if not wrong.passing and wrong.status != _NOT_YET:
                    self.refused = self._forbidden(wrong)
                    return
            if self._has_ended(name) or self._over.wait(delay):
                return
            delay = min(delay * 2, _LONGEST)

    def _has_ended(self, name: str) -> bool:
        """Whether nothing can follow in its log."""
        pod = self.pods.get(name)
        return pod is None or pod.gone or (pod.object.get("status") or {}).get("phase") in ("Succeeded", "Failed")

    def _forbidden(self, wrong: ApiRefusedError) -> PlaceError:
        rule = '{apiGroups: [""], resources: [pods/log], verbs: [get]}'
        return ForbiddenError(
            f"this user may not read the logs of pods in namespace {self.place.client.namespace}, and so cannot "
            f"follow: the rule {rule} is missing",
            status=wrong.status,
            hint=f"`phalanx kubernetes rbac` prints the Role to ask an administrator for; the API says: {wrong}",
        )

    def _read(self, name: str, *, follow: bool) -> bool:
        """Read one log from where it was left; whether anything was new. Raises ApiRefusedError."""
        pod = self.pods[name].object
        host = host_number(pod, self.place.facts().get("roles", ()))
        stamp, _ = self._positions.of(name)
        seen: dict[str, int] = {}
        new = False
        for raw in self.place.client.log(name, container=CONTAINER, follow=follow, since=_second(stamp)):
            line = parsed(raw)
            if not line.stamp or not self._positions.is_new(name, line, seen):
                continue
            new = True
            if line.text.startswith(RECORD):
                self.records.take(line.text[len(RECORD) :])
            else:
                self._outputs.take(name, host, line)
            if self._over.is_set():
                break
        return new

    # What is seen ----------------------------------------------------------------------------------------------------

    def findings(self, *, soon: float = SOON) -> dict[str, Seen]:
        """What is to be said of pods, by their host names, and of Jobs that cannot make theirs, by the Jobs'.

        A pod may wait for `soon` seconds before it is spoken of.

        Where the API says nothing of a pod that waits, its events are asked for, once in a while.
        """
        now = self._clock()
        found: dict[str, Seen] = {}
        with self._lock:
            pods = [pod for pod in self.pods.values() if not pod.gone]
            jobs = list(self.jobs.values())
        waiting = [pod for pod in pods if (pod.object.get("status") or {}).get("phase") == "Pending"]
        lacking = [job for job in jobs if _lacks_pods(job)]
        late = any(now - pod.since > soon for pod in waiting) or bool(lacking)
        events = self._asked_events(now) if late else []
        for pod in pods:
            seen = see(pod.object, events)
            if seen is not None and (seen.standing is not Standing.WAITS or now - pod.since > soon):
                found[host_name(pod.object)] = seen
        for job in jobs:
            seen = see_job(job, events)
            if seen is not None:
                found[str(job["metadata"]["name"])] = seen
        return found

    def _asked_events(self, now: float) -> list[dict[str, Any]]:
        when, events = self._events
        if now - when >= _EVENTS:
            with contextlib.suppress(PlaceError):
                events = self.place.client.list("Event", fields="type=Warning", once=True)
            self._events = (now, events)
        return events


def _second(stamp: str) -> str:
    """The API takes whole seconds."""
    return f"{stamp[:19]}Z" if stamp else ""


def _has_begun(pod: Mapping[str, Any]) -> bool:
    state = own_status(pod).get("state") or {}
    return "running" in state or "terminated" in state


def _lacks_pods(job: Mapping[str, Any]) -> bool:
    status, spec = job.get("status") or {}, job.get("spec") or {}
    made = int(status.get("active") or 0) + int(status.get("succeeded") or 0)
    return not spec.get("suspend") and not status.get("completionTime") and made < int(spec.get("parallelism") or 0)
