"""One run in one namespace: its address, its pods, its key, and the way to its lead through the API server."""

from __future__ import annotations

import base64
import json
import threading
import time
import urllib.parse
from collections.abc import Mapping
from typing import Any

from phalanx.decide.podfields import labels_of, name_of
from phalanx.engine.kubernetes.access_to import access
from phalanx.engine.kubernetes.client import Client, ClusterError, ForbiddenError
from phalanx.engine.kubernetes.names import Names
from phalanx.errors import PlaceError
from phalanx.plan.marks import INDEX, RUN
from phalanx.protocol.client import DEPOSED
from phalanx.protocol.people import CARRIERS, LeadBarredError, LeadMuteError, LeadUnreachableError
from phalanx.protocol.signing import RunKey

SCHEME = "kubernetes"

#: Seconds for which a lead is awaited whose pods are on their way, or whose cluster does not answer.
_PATIENCE = 60.0
#: Seconds for which what a lead's whereabouts were is believed.
_BELIEVED = 5.0
#: What the API server says of a port at which nobody listens, or of a pod that is gone.
_NOBODY = frozenset({500, 502, 503, 504, 404, 400})


def address_of(client: Client, run: str) -> str:
    """Where a run is, in one word: `kubernetes://CONTEXT/NAMESPACE/RUN`."""
    context = urllib.parse.quote(client.access.context, safe="")
    return f"{SCHEME}://{context}/{client.namespace}/{run}"


def parts_of(address: str) -> tuple[str, str, str]:
    """Context, namespace and run of an address. Raises LeadUnreachableError."""
    parts = address.partition("://")[2].split("/")
    if len(parts) != 3:  # noqa: PLR2004 - context, namespace, run
        raise LeadUnreachableError(f"{address} is no place of a run in a cluster")
    return urllib.parse.unquote(parts[0]), parts[1], parts[2]


class Place:
    """One run as a client meets it. Asks the cluster for what it is asked, and keeps what cannot change."""

    def __init__(self, client: Client, run: str) -> None:
        """Asks nothing yet."""
        self.client, self.run = client, run
        self.names = Names(run=run)
        self.labels = f"{RUN}={run}"
        self._facts: dict[str, Any] | None = None
        self._lead: tuple[float, str] | None = None

    def facts(self) -> dict[str, Any]:
        """What `pod.json` says. Raises ClusterError, PlaceError where the run is not there."""
        if self._facts is None:
            found = self.client.get("ConfigMap", self.names.outline)
            if found is None:
                raise PlaceError(
                    f"there is no run {self.run} in namespace {self.client.namespace} of {self.client.access.context}",
                    hint="`phalanx ps --on kubernetes` lists those that are there",
                )
            self._facts = json.loads((found.get("data") or {}).get("pod.json", "{}"))
        return self._facts

    def key(self) -> RunKey | None:
        """The run's key; None for who may not read its Secret, or where it is not there yet."""
        try:
            found = self.client.get("Secret", self.names.key)
        except ForbiddenError:
            return None
        data = (found or {}).get("data") or {}
        if "key" in data:
            return RunKey.of(base64.b64decode(data["key"]).decode())
        if "token" in data:
            return RunKey.of(base64.b64decode(data["token"]).decode())
        return None

    def pods(self) -> list[dict[str, Any]]:
        """All that there are."""
        return self.client.list("Pod", self.labels)

    def ask(
        self, method: str, path: str, *, headers: Mapping[str, str], body: bytes, timeout: float
    ) -> tuple[int, str]:
        """The lead's answer, whichever pod it is in. Raises LeadUnreachableError or LeadMuteError."""
        try:
            for name in self._candidates():
                status, text = self.client.ask(
                    name, int(self.facts()["port"]), method, path, headers=headers, body=body, timeout=timeout
                )
                if status not in _NOBODY and status != DEPOSED:
                    self._lead = (time.monotonic(), name)
                    return status, text
                self._lead = None
        except ForbiddenError as wrong:
            raise LeadBarredError(f"{wrong}", hint=wrong.hint) from wrong
        except ClusterError as wrong:
            raise LeadMuteError(f"the lead of {self.run} cannot be asked: {wrong}") from wrong
        raise LeadMuteError(f"no pod of {self.run} leads it at this moment")

    def _candidates(self) -> list[str]:
        """Pods in which the lead may be: where it was a moment ago, else pod 0 of its role and those of the line."""
        if self._lead is not None and time.monotonic() - self._lead[0] < _BELIEVED:
            return [self._lead[1]]
        facts = self.facts()
        hosts = [str(one).partition(".")[0] for one in (facts["lead"], *facts.get("line", ()))]
        there = {
            host_name(pod): str(pod["metadata"]["name"])
            for pod in self.pods()
            if (pod.get("status") or {}).get("phase") == "Running"
        }
        return [there[host] for host in hosts if host in there]

    def going(self) -> bool:
        """Whether a pod of the run is there that has not ended."""
        return any((pod.get("status") or {}).get("phase") in ("Pending", "Running") for pod in self.pods())


def host_name(pod: Mapping[str, Any]) -> str:
    """`RUN-ROLE-i`: what stays the same when the pod is replaced."""
    spec, labels = pod.get("spec") or {}, labels_of(pod)
    if spec.get("hostname"):
        return str(spec["hostname"])
    return f"{labels.get('batch.kubernetes.io/job-name', name_of(pod))}-{labels.get(INDEX, '')}"


class _ByApiServer:
    """See protocol.people.Carrier. Connections are kept: a verb asks several times."""

    def __init__(self) -> None:
        self._places: dict[str, Place] = {}
        self._lock = threading.Lock()

    def place(self, address: str) -> Place:
        with self._lock:
            if address not in self._places:
                context, namespace, run = parts_of(address)
                client = Client(access(None if context == "in-cluster" else context, namespace), patience=5.0)
                self._places[address] = Place(client, run)
            return self._places[address]

    def forget(self) -> None:
        """Close all connections; they are opened again where they are wanted."""
        with self._lock:
            for place in self._places.values():
                place.client.close()
            self._places.clear()

    def ask(
        self, address: str, method: str, path: str, *, headers: Mapping[str, str], body: bytes, timeout: float
    ) -> tuple[int, str]:
        try:
            return self.place(address).ask(method, path, headers=headers, body=body, timeout=timeout)
        except LeadUnreachableError:
            raise
        except PlaceError as wrong:
            raise LeadUnreachableError(str(wrong), hint=wrong.hint) from wrong

    def patience(self, address: str) -> float:
        try:
            return _PATIENCE if self.place(address).going() else 0.0
        except ForbiddenError:
            return 0.0
        except PlaceError:
            return _PATIENCE


BY_API_SERVER = _ByApiServer()
CARRIERS[SCHEME] = BY_API_SERVER
