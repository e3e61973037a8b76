"""What is asked of a cluster: apply, get, list, watch, log, delete; a patch, and a word to a pod. By a kubeconfig.

Objects are plain JSON. lightkube reads the kubeconfig and opens the connection: no other module knows it.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Self

import httpx2

from phalanx.apiwatch import Api, ApiRefusedError, Change, changes
from phalanx.engine.kubernetes.access_to import Access, connect
from phalanx.engine.kubernetes.kinds import KINDS, Kind, kind_of
from phalanx.errors import PlaceError

#: The owner of the fields that we apply.
MANAGER = "phalanx"
#: Seconds for which a request is tried again while the API does not answer, and within which it must answer each time.
PATIENCE, ANSWER = 60.0, 15.0
#: Seconds for which a log that is followed may be silent before it is opened anew: a way that is gone is found out so.
LOG = 600.0
#: Seconds between two tries, doubled up to the longest.
_FIRST, _LONGEST = 0.25, 5.0

_UNAUTHORIZED, _FORBIDDEN, _NOT_FOUND, _CONFLICT = 401, 403, 404, 409


class ClusterError(PlaceError):
    """The cluster does not do what it was asked."""

    def __init__(self, message: str, *, status: int = 0, hint: str | None = None) -> None:
        """`status`: HTTP's; 0 where there was no answer."""
        super().__init__(message, hint=hint)
        self.status = status


class ForbiddenError(ClusterError):
    """The user may not do this; the message names the missing rule."""


class Client:
    """One user's way to one namespace of one cluster. For several threads. Close it, or let it go with the process."""

    def __init__(
        self,
        access: Access,
        *,
        patience: float = PATIENCE,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        """Asks nothing yet. `patience` bounds each request with all its tries, in seconds."""
        self.access = access
        self.namespace = access.namespace
        self._patience, self._sleep = patience, sleep
        self._lock = threading.Lock()
        self._http = connect(access)
        #: How many requests were made.
        self.requests = 0

    def close(self) -> None:
        """Idempotent."""
        self._http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *wrong: object) -> None:
        self.close()

    # The verbs -----------------------------------------------------------------------------------------------------

    def apply(self, manifest: Mapping[str, Any]) -> dict[str, Any]:
        """Make the object so, whatever it was before; returns it as it is now. Raises ClusterError."""
        kind = kind_of(manifest)
        name = manifest["metadata"]["name"]
        query = {"fieldManager": MANAGER, "force": "true"}
        return self._call("patch", kind, name, query=query, body=manifest, content="application/apply-patch+yaml")

    def get(self, kind: str, name: str) -> dict[str, Any] | None:
        """The object; None where there is none."""
        try:
            return self._call("get", KINDS[kind], name)
        except ClusterError as wrong:
            if wrong.status == _NOT_FOUND:
                return None
            raise

    def list(self, kind: str, labels: str = "", fields: str = "", *, once: bool = False) -> list[dict[str, Any]]:
        """All that match. `once`: for who would rather go on without than wait."""
        found: list[dict[str, Any]] = []
        query = _selectors(labels, fields)
        more = ""
        while True:
            asked = {**query, "limit": "500", **({"continue": more} if more else {})}
            answer = self._call("list", KINDS[kind], query=asked, patience=0.0 if once else self._patience)
            found += answer.get("items") or []
            more = (answer.get("metadata") or {}).get("continue") or ""
            if not more:
                return found

    def watch(self, kind: str, labels: str, *, wait: Callable[[float], bool]) -> Iterator[Change]:
        """See `apiwatch.changes`. Raises ClusterError where it cannot ever work."""
        of = KINDS[kind]
        try:
            yield from changes(_Streams(self), self._path(of), _selectors(labels, ""), wait=wait)
        except ApiRefusedError as wrong:
            raise self._error(wrong, "watch", of, "") from wrong

    def log(
        self, pod: str, *, container: str, follow: bool = False, since: str = "", previous: bool = False, tail: int = 0
    ) -> Iterator[bytes]:
        """Its lines, each with its time before it; `since`: an RFC 3339 time. Raises ApiRefusedError when cut off."""
        query = {"container": container, "timestamps": "true"}
        query |= {"follow": "true"} if follow else {}
        query |= {"sinceTime": since} if since else {}
        query |= {"previous": "true"} if previous else {}
        query |= {"tailLines": str(tail)} if tail else {}
        return self.lines(f"{self._path(KINDS['Pod'], pod)}/log", query, quiet=LOG if follow else ANSWER)

    def delete(self, kind: str, name: str, *, grace: int | None = None) -> None:
        """Delete the object and, in the background, what it owns. One that is not there is no mistake."""
        body: dict[str, Any] = {"kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": "Background"}
        body |= {"gracePeriodSeconds": grace} if grace is not None else {}
        try:
            self._call("delete", KINDS[kind], name, body=body)
        except ClusterError as wrong:
            if wrong.status != _NOT_FOUND:
                raise

    def patch(self, kind: str, name: str, change: Mapping[str, Any]) -> dict[str, Any]:
        """Merge the change into the object."""
        return self._call("patch", KINDS[kind], name, body=change, content="application/merge-patch+json")

    def create(self, manifest: Mapping[str, Any]) -> dict[str, Any]:
        """For objects that are questions, such as a SelfSubjectAccessReview."""
        return self._call("create", kind_of(manifest), body=manifest)

    def ask(
        self, pod: str, port: int, method: str, path: str, *, headers: Mapping[str, str], body: bytes, timeout: float
    ) -> tuple[int, str]:
        """One request to a port of a pod, by way of the API server: status and text. Raises ClusterError."""
        place = f"{self._path(KINDS['Pod'], f'{pod}:{port}')}/proxy{path}"
        self.requests += 1
        try:
            answer = self._http.request(method, place, headers=dict(headers), content=body, timeout=timeout)
        except httpx2.HTTPError as wrong:
            raise ClusterError(f"the cluster does not answer: {_words(wrong)}") from wrong
        if answer.status_code in (_UNAUTHORIZED, _FORBIDDEN) and _is_status(answer):
            told = ApiRefusedError(answer.status_code, _message(answer))
            verb = "get" if method == "GET" else "create"
            raise self._error(told, verb, dataclasses.replace(KINDS["Pod"], plural="pods/proxy"), pod)
        return answer.status_code, answer.text

    # How they are asked --------------------------------------------------------------------------------------------

    def _call(
        self,
        verb: str,
        kind: Kind,
        name: str = "",
        *,
        query: Mapping[str, str] | None = None,
        body: Mapping[str, Any] | None = None,
        content: str = "application/json",
        patience: float | None = None,
    ) -> dict[str, Any]:
        method = {"get": "GET", "list": "GET", "delete": "DELETE", "patch": "PATCH", "create": "POST"}[verb]
        until = time.monotonic() + (self._patience if patience is None else patience)
        delay = _FIRST
        renewed = False
        while True:
            try:
                return self.request(method, self._path(kind, name), query or {}, body, content)
            except ApiRefusedError as wrong:
                rest = max(wrong.retry_after, delay)
                if wrong.status == _UNAUTHORIZED and not renewed:
                    renewed = True  # the kubeconfig may have a newer token by now
                    self._reconnect()
                    continue
                if not wrong.passing or time.monotonic() + rest > until:
                    raise self._error(wrong, verb, kind, name) from wrong
                self._sleep(rest)
                delay = min(delay * 2, _LONGEST)

    def request(
        self, method: str, path: str, query: Mapping[str, str], body: Mapping[str, Any] | None, content: str
    ) -> dict[str, Any]:
        """Once. Raises ApiRefusedError."""
        self.requests += 1
        data = None if body is None else json.dumps(body).encode()
        headers = {"Content-Type": content} if data is not None else {}
        try:
            answer = self._http.request(method, path, params=dict(query), content=data, headers=headers, timeout=ANSWER)
        except httpx2.HTTPError as wrong:
            raise ApiRefusedError(0, _words(wrong)) from wrong
        if not answer.is_success:
            raise ApiRefusedError(answer.status_code, _message(answer), retry_after=_retry_after(answer))
        found = answer.json() if answer.content else {}
        return found if isinstance(found, dict) else {}

    def lines(self, path: str, query: Mapping[str, str], *, quiet: float) -> Iterator[bytes]:
        """An answer line by line, as it comes. Raises ApiRefusedError."""
        self.requests += 1
        timeout = httpx2.Timeout(ANSWER, read=quiet)
        rest = b""
        try:
            with self._http.stream("GET", path, params=dict(query), timeout=timeout) as answer:
                if not answer.is_success:
                    answer.read()
                    raise ApiRefusedError(answer.status_code, _message(answer), retry_after=_retry_after(answer))
                for piece in answer.iter_bytes():
                    *whole, rest = (rest + piece).split(b"\n")
                    yield from whole
        except httpx2.HTTPError as wrong:
            raise ApiRefusedError(0, _words(wrong)) from wrong
        if rest:
            yield rest

    def _reconnect(self) -> None:
        with self._lock, contextlib.suppress(PlaceError):
            old, self._http = self._http, connect(self.access)
            old.close()

    def _path(self, kind: Kind, name: str = "") -> str:
        inside = f"/namespaces/{self.namespace}" if kind.namespaced else ""
        return f"{kind.api}{inside}/{kind.plural}" + (f"/{name}" if name else "")

    def _error(self, wrong: ApiRefusedError, verb: str, kind: Kind, name: str) -> ClusterError:
        what = f"{kind.plural} {name}".strip()
        where = f"namespace {self.namespace} of {self.access.context}"
        if wrong.status == _FORBIDDEN and "exceeded quota" not in str(wrong):
            rule = f'apiGroups: ["{kind.group}"], resources: [{kind.plural}], verbs: [{verb}]'
            return ForbiddenError(
                f"this user may not {verb} {what} in {where}: the rule {{{rule}}} is missing",
                status=wrong.status,
                hint=f"`phalanx kubernetes rbac` prints the Role to ask an administrator for; the API says: {wrong}",
            )
        if wrong.status == _UNAUTHORIZED:
            return ClusterError(
                f"{self.access.context} does not know this user: its token or certificate is no longer valid",
                status=wrong.status,
                hint="log in to the cluster again",
            )
        if wrong.status == 0:
            return ClusterError(
                f"{self.access.server} does not answer: {wrong}",
                hint="is this the right context? kubectl config get-contexts",
            )
        return ClusterError(f"{where} refuses to {verb} {what}: {wrong}", status=wrong.status)


class _Streams:
    """See apiwatch.Api."""

    def __init__(self, client: Client) -> None:
        self._client = client

    def get(self, path: str, query: Mapping[str, str]) -> dict[str, Any]:
        return self._client.request("GET", path, query, None, "application/json")

    def lines(self, path: str, query: Mapping[str, str], *, quiet: float) -> Iterator[bytes]:
        return self._client.lines(path, query, quiet=quiet)


_CHECKED: type[Api] = _Streams


def _selectors(labels: str, fields: str) -> dict[str, str]:
    return {**({"labelSelector": labels} if labels else {}), **({"fieldSelector": fields} if fields else {})}


def _message(answer: httpx2.Response) -> str:
    """The API's own sentence."""
    try:
        told = answer.json().get("message")
    except (ValueError, AttributeError):
        told = None
    text = told if isinstance(told, str) and told else answer.text.strip()[:300]
    return text or f"HTTP {answer.status_code}"


def _is_status(answer: httpx2.Response) -> bool:
    """Whether it is the API server's own word, and not the pod's."""
    try:
        found = answer.json()
    except ValueError:
        return False
    return isinstance(found, dict) and found.get("kind") == "Status"


def _retry_after(answer: httpx2.Response) -> float:
    try:
        return min(max(float(answer.headers.get("Retry-After", "0")), 0.0), 60.0)
    except ValueError:
        return 0.0


def _words(wrong: Exception) -> str:
    return str(wrong) or type(wrong).__name__
