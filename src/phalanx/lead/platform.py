"""The cluster as the lead's pod sees it: why pods wait, what takes them away, and the sizes of their Jobs.

Everything that may take its time is in threads of its own; the lead hears of it by calls into its loop. Whatever goes
wrong here ends in one note: the run goes on without eyes.
"""

from __future__ import annotations

import asyncio
import collections
import contextlib
import dataclasses
import json
import os
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from phalanx import events as ev
from phalanx.apart import apart
from phalanx.apiwatch import ApiRefusedError, changes
from phalanx.decide.exits import Kind
from phalanx.decide.podfields import created_at, name_of, own_status, uid_of
from phalanx.decide.pods import see
from phalanx.decide.seen import Seen, Standing
from phalanx.decide.waiting import PODS_WAIT, told
from phalanx.errors import PlaceError
from phalanx.lead.inpod import InPod
from phalanx.lead.lead import Lead
from phalanx.lead.ownjobs import Facts, Jobs
from phalanx.names import some
from phalanx.plan.marks import RUN
from phalanx.states import RunPhase, RunState

#: What a pod is told beside its outline.
MOUNTED = Path("/phalanx/run/pod.json")

#: Seconds between two looks at what the lead wants, and between two questions for events.
_LOOK, _EVENTS = 0.5, 15.0
#: Seconds after a pod's creation, or after the lead's start, before one that waits is spoken of.
_SOON = 5.0
#: Hosts that one sentence names.
_NAMED = 4


#: Causes by which the cluster itself does not hear of a node any more.
_NODE_GONE = frozenset({"node-silent", "tainted", "node-gone", "node-lost"})


class Platform:
    """Watches for one lead. `start` and `close` are called in the lead's loop; nothing here raises."""

    def __init__(
        self,
        lead: Lead,
        facts: Facts,
        api: InPod | None,
        *,
        why: str = "",
        clock: Callable[[], float] = time.time,
    ) -> None:
        """Without an `api` it sees nothing, and says `why`, once."""
        self._lead, self._facts, self._clock = lead, facts, clock
        self._seeing, self._api, self._blindness = api is not None, api or InPod.nowhere(), why
        self._loop: asyncio.AbstractEventLoop | None = None
        self._over = threading.Event()
        self._began = clock()
        #: By uid: while one pod of a host ends, its replacement is there already.
        self._pods: dict[str, Mapping[str, Any]] = {}
        self._found: dict[str, Seen] = {}
        self._said: set[str] = set()
        self._events: list[dict[str, Any]] = []
        self._sized: int | None = None
        self._failed: set[str] = set()
        self._images = False
        namespace = api.namespace if api is not None else ""
        self._base = f"/api/v1/namespaces/{namespace}"
        self._jobs = Jobs(facts, self._api)
        lead.because = self.because

    def start(self) -> asyncio.Task[None]:
        """The watch begins; the task looks after the lead's wishes until it is cancelled."""
        self._loop = asyncio.get_running_loop()
        return asyncio.ensure_future(self._look())

    # The watch, in its thread --------------------------------------------------------------------------------------

    def _watch(self) -> None:
        query = {"labelSelector": f"{RUN}={self._facts.run}"}
        try:
            for change in changes(self._api, f"{self._base}/pods", query, wait=self._over.wait):
                if change.object is not None:
                    self._post(self._changed, change.object, change.gone)
                if self._over.is_set():
                    return
        except Exception as wrong:  # noqa: BLE001 - whatever it is, the run goes on without
            self._post(self._blind, f"the pods of this run cannot be watched from inside: {wrong}")

    def _post(self, call: Callable[..., None], *what: Any) -> None:
        if self._loop is not None and not self._over.is_set():
            with contextlib.suppress(RuntimeError):  # the loop has ended
                self._loop.call_soon_threadsafe(call, *what)

    # What is heard, in the lead's loop -----------------------------------------------------------------------------

    def _blind(self, why: str) -> None:
        if why not in self._failed:
            self._failed.add(why)
            self._note(why)

    def _changed(self, pod: Mapping[str, Any], gone: bool) -> None:  # noqa: FBT001 - through call_soon, which names nothing
        host, uid = self._facts.host(pod), uid_of(pod)
        if host is None:
            return
        self._pods[uid] = pod
        self._judge(host, pod, gone=gone)
        if gone:
            del self._pods[uid]
            self._found.pop(uid, None)

    def _judge(self, host: int, pod: Mapping[str, Any], *, gone: bool = False) -> None:
        seen = see(pod, self._events) or (self._found.get(uid_of(pod)) if gone else None)
        if seen is None:
            self._found.pop(uid_of(pod), None)
        else:
            self._found[uid_of(pod)] = seen
        if gone or (seen is not None and seen.standing is Standing.GONE):
            self._gone(host, seen, pod)
        elif seen is not None and seen.standing is Standing.AILS and not self._ends and not self._scaled_away(host):
            self._once(host, f"the pod of host {self._facts.name(host)} {told(seen)}", pod)
            if seen.cause == "deleted":
                self._is_it_a_stop()
            elif seen.cause in _NODE_GONE and host in self._lead.roll.awaited:
                # Of two halves that do not hear each other, the one whose nodes the cluster hears goes on.
                says, hint = f"its pod {seen.says}", seen.advice
                self._lead.people.lose(host, says, name=name_of(pod), kind=seen.kind.value, hint=hint)

    def _gone(self, host: int, seen: Seen | None, pod: Mapping[str, Any]) -> None:
        if self._ends or (pod.get("status") or {}).get("phase") == "Succeeded":
            return
        state = self._lead.state.hosts.get(host)
        kind = seen.kind.value if seen is not None else Kind.INFRASTRUCTURE.value
        says = seen.says if seen is not None else "is gone"
        if seen is not None and seen.standing is Standing.AILS:
            says = says.replace("is being deleted", "was deleted")
        if state is None:
            if seen is not None and seen.cause == "exited" and seen.kind is Kind.USER:  # another one would end so, too
                message = f"host {self._facts.name(host)} cannot join: its pod {says}"
                self._lead.fail_to_bind(PlaceError(message, hint=seen.advice or None))
            elif seen is not None:
                self._once(host, f"the pod of host {self._facts.name(host)} {told(seen)}; its Job makes another", pod)
        elif state.joined.name != name_of(pod):
            return  # that of a replacement
        elif state.living:
            hint = seen.advice if seen is not None else ""
            self._lead.people.lose(host, f"its pod {says}", name=name_of(pod), kind=kind, hint=hint)
        elif seen is not None and state.lost and says not in state.lost:
            self._once(host, f"host {self._facts.name(host)} was lost: its pod {told(seen)}", pod)

    def _scaled_away(self, host: int) -> bool:
        """Whether the pod goes since we have asked its Job for fewer."""
        role, _, index = self._facts.name(host).rpartition("-")
        return role == "worker" and self._sized is not None and int(index) >= self._sized

    def because(self, lost: ev.HostLost) -> ev.HostLost:
        """The same with its cause, where the cluster has told one."""
        known = self._lead.state.hosts.get(lost.host)
        its = [uid for uid, pod in self._pods.items() if known is not None and name_of(pod) == known.joined.name]
        seen = self._found.get(its[0]) if its else None
        if seen is None or seen.standing is Standing.WAITS:
            return lost
        reason = f"{lost.reason}; its pod {seen.says}"
        return dataclasses.replace(lost, reason=reason, kind=seen.kind.value, hint=seen.advice)

    def _once(self, host: int, message: str, about: Mapping[str, Any]) -> None:
        """Once of this pod, whichever lead has said it."""
        key = f"{uid_of(about)} {message}"
        before = any(one.message == message and one.time > _made_at(about) for one in self._lead.state.notes)
        if key not in self._said and not before:
            self._note(message, host=host if host in self._lead.state.hosts else None)
        self._said.add(key)

    def _note(self, message: str, host: int | None = None) -> None:
        if not self._lead.state.phase.terminal:
            self._lead.people.note(message, host=host)

    @property
    def _ends(self) -> bool:
        """Whether pods go since the run does."""
        return self._lead.state.phase.terminal or self._lead.state.stop is not None

    # What the lead wants -------------------------------------------------------------------------------------------

    async def _look(self) -> None:
        while not self._lead.state.run:  # noqa: ASYNC110 - the lead's first words wake nobody
            await asyncio.sleep(_LOOK / 10)
        if not self._seeing:
            self._note(self._blindness)
            return
        threading.Thread(target=self._watch, name="pods", daemon=True).start()
        asked = 0.0
        while True:
            await asyncio.sleep(_LOOK)
            state = self._lead.state
            if state.asked is not None and state.asked != self._sized:
                self._sized = state.asked
                await self._resize(state.asked)
            if state.phase in (RunPhase.JOINING, RunPhase.RESTARTING):
                if self._waiting() and self._clock() - asked > _EVENTS:
                    asked = self._clock()
                    await self._ask_events()
                self._tell_who_waits(state)
            elif state.phase is RunPhase.RUNNING and not self._images:
                self._tell_images()

    def _waiting(self) -> list[tuple[int, Mapping[str, Any]]]:
        """Pods that have not begun, for longer than most take, with their hosts."""
        now = self._clock()
        return [
            (host, pod)
            for pod in self._pods.values()
            if (pod.get("status") or {}).get("phase") == "Pending"
            and now - max(_made_at(pod), self._began) > _SOON
            and (host := self._facts.host(pod)) is not None
        ]

    async def _ask_events(self) -> None:
        try:
            query = {"fieldSelector": "type=Warning", "limit": "500"}
            found = await apart(lambda: self._api.get(f"{self._base}/events", query), name="events")
        except Exception as wrong:  # noqa: BLE001 - see the page's first words
            self._blind(f"events cannot be asked for: {wrong}")
            return
        self._events = [one for one in found.get("items") or [] if isinstance(one, dict)]
        for host, pod in self._waiting():
            self._judge(host, pod)

    def _tell_who_waits(self, state: RunState) -> None:
        """One note for all that wait for the same."""
        alike: dict[tuple[str, str], list[int]] = collections.defaultdict(list)
        for host, pod in sorted(self._waiting(), key=lambda one: one[0]):
            seen, known = self._found.get(uid_of(pod)), state.hosts.get(host)
            if seen is not None and seen.standing is Standing.WAITS and (known is None or not known.living):
                alike[seen.says, seen.advice].append(host)
        for (says, advice), hosts in alike.items():
            key = f"{state.generation} {says}"
            if key not in self._said:
                self._said.add(key)
                names = [self._facts.name(host) for host in hosts]
                self._note(f"{PODS_WAIT}{some(names, _NAMED)}: {says}" + (f"; {advice}" if advice else ""))

    def _tell_images(self) -> None:
        """The digest that runs; a tag that was moved between two pulls gives a job two programs."""
        digests: dict[str, list[int]] = collections.defaultdict(list)
        names = {host.joined.name: number for number, host in self._lead.state.hosts.items() if host.living}
        for pod in self._pods.values():
            if (digest := _digest(pod)) and name_of(pod) in names:
                digests[digest].append(names[name_of(pod)])
        if sum(map(len, digests.values())) < len(self._lead.living()):
            return
        self._images = True
        if len(digests) == 1:
            message = f"image: {next(iter(digests))}"
            if not self._lead.state.has_noted(message):
                self._note(message)
            return
        said = "; ".join(
            f"{some([self._facts.name(host) for host in sorted(hosts)], _NAMED)}: {digest}"
            for digest, hosts in digests.items()
        )
        self._note(f"the pods run different images: {said}; name the image by its digest, so that all run the same")

    async def _resize(self, workers: int) -> None:
        try:
            await apart(lambda: self._jobs.resize("worker", workers), name="resize")
        except Exception as wrong:  # noqa: BLE001 - see the page's first words
            self._note(f"the number of pods cannot be changed to {workers}: {wrong}")

    def _is_it_a_stop(self) -> None:
        """Pods that are deleted may be what a client's stop looks like from here."""

        def ask() -> None:
            with contextlib.suppress(ApiRefusedError):
                if by := self._jobs.stop_asked():
                    self._post(lambda: self._lead.people.stop(by=by, hard=False))

        threading.Thread(target=ask, name="stop?", daemon=True).start()

    # The end -------------------------------------------------------------------------------------------------------

    async def close(self, state: RunState, report: Mapping[str, str], *, patience: float = 5.0) -> None:
        """The run has ended: its report goes where it outlives the pods, and unless all is well its Jobs end too.

        `report`: the data of the ConfigMap, the most telling entry first; what is too large is left out.
        """
        self._over.set()
        if not self._seeing:
            return
        with contextlib.suppress(Exception):
            async with asyncio.timeout(patience):
                await apart(lambda: self._jobs.publish(report), name="report")
        if state.end is not None and state.end.exit_code:
            with contextlib.suppress(Exception):
                async with asyncio.timeout(patience):
                    await apart(self._jobs.release, name="release")


def here(lead: Lead, *, mounted: Path = MOUNTED, environ: Mapping[str, str] = os.environ) -> Platform | None:
    """The eyes of a lead in a pod; None where this is no pod. One without a token (`rbac: none`) sees nothing."""
    try:
        facts = Facts.of(json.loads(mounted.read_bytes()))
    except (OSError, ValueError, KeyError, TypeError):
        return None
    api, why = (
        InPod.here(environ),
        "rbac: none: what happens outside the containers is named only while a client follows",
    )
    return Platform(lead, facts, api, why=why)


def _made_at(pod: Mapping[str, Any]) -> float:
    return created_at(pod) or 0.0


def _digest(pod: Mapping[str, Any]) -> str:
    return str(own_status(pod).get("imageID") or "").removeprefix("docker-pullable://")
