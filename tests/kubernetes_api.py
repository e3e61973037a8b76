"""A small API server for tests: objects, list and watch, server-side apply, logs, the pod proxy, and its own faults.

It keeps what it is given and checks little: whether objects are valid is another test's matter.
"""

from __future__ import annotations

import asyncio
import collections
import contextlib
import copy
import dataclasses
import json
import socket
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route

_TICK = 0.01


@dataclasses.dataclass
class Fault:
    """What the next request that `meets` gets."""

    status: int
    meets: Callable[[Request], bool]
    headers: dict[str, str] = dataclasses.field(default_factory=dict)
    message: str = "made by the test"


class FakeCluster:
    """Its state, and what a test does to it. Every method may be called from any thread."""

    def __init__(self) -> None:
        self.objects: dict[tuple[str, str, str], dict[str, Any]] = {}
        self.history: list[tuple[int, str, str, dict[str, Any]]] = []
        self.version = 100
        #: Versions up to this one are forgotten: a watch from there gets 410.
        self.compacted = 0
        self.logs: dict[str, list[tuple[str, str]]] = collections.defaultdict(list)
        self.faults: collections.deque[Fault] = collections.deque()
        self.forbidden: set[tuple[str, str]] = set()
        self.asked: list[tuple[str, str]] = []
        self.proxied: Callable[[str, str, str, dict[str, str], bytes], tuple[int, str]] | None = None
        self.down = False
        self.streams = 0
        self.token: str | None = None
        self._lock = threading.RLock()

    def put(self, item: dict[str, Any], *, plural: str = "pods", namespace: str = "ml") -> dict[str, Any]:
        """Make or change an object; watchers hear of it."""
        with self._lock:
            self.version += 1
            item = copy.deepcopy(item)
            meta = item.setdefault("metadata", {})
            meta["resourceVersion"] = str(self.version)
            meta.setdefault("uid", f"uid-{plural}-{meta['name']}-{self.version}")
            meta.setdefault("namespace", namespace)
            key = (namespace, plural, meta["name"])
            kind = "MODIFIED" if key in self.objects else "ADDED"
            self.objects[key] = item
            self.history.append((self.version, kind, plural, item))
            return item

    def remove(self, name: str, *, plural: str = "pods", namespace: str = "ml") -> bool:
        """Take an object away, and what it owns."""
        with self._lock:
            item = self.objects.pop((namespace, plural, name), None)
            if item is None:
                return False
            self.version += 1
            item = copy.deepcopy(item)
            item["metadata"]["resourceVersion"] = str(self.version)
            self.history.append((self.version, "DELETED", plural, item))
            uid = item["metadata"].get("uid")
            for _, of, other in list(self.objects):
                owners = self.objects.get((namespace, of, other), {}).get("metadata", {}).get("ownerReferences", [])
                if any(owner.get("uid") == uid for owner in owners):
                    self.remove(other, plural=of, namespace=namespace)
            return True

    def get(self, name: str, *, plural: str = "pods", namespace: str = "ml") -> dict[str, Any] | None:
        with self._lock:
            return copy.deepcopy(self.objects.get((namespace, plural, name)))

    def names(self, plural: str | None = None) -> list[str]:
        with self._lock:
            return sorted(f"{of}/{name}" for _, of, name in self.objects if plural in (None, of))

    def forget(self) -> None:
        """What etcd's compaction does: only what comes from now on can be watched."""
        with self._lock:
            self.compacted = self.version

    def break_streams(self) -> None:
        """Cut every watch and log that is open."""
        with self._lock:
            self.streams += 1

    def write(self, pod: str, text: str, *, at: str | None = None) -> None:
        """A line of a pod's log."""
        with self._lock:
            number = len(self.logs[pod])
            stamp = at or time.strftime("%Y-%m-%dT%H:%M:%S.", time.gmtime()) + f"{number:09d}Z"
            self.logs[pod].append((stamp, text))

    def fail(self, status: int, *, times: int = 1, path: str = "", headers: dict[str, str] | None = None) -> None:
        """The next requests whose path has `path` in it fail so."""
        for _ in range(times):
            self.faults.append(Fault(status, lambda request: path in request.url.path, headers or {}))

    # HTTP ----------------------------------------------------------------------------------------------------------

    def app(self) -> Starlette:
        return Starlette(routes=[Route("/{path:path}", self._serve, methods=["GET", "POST", "PATCH", "DELETE"])])

    async def _serve(self, request: Request) -> Response:  # noqa: C901, PLR0911 - a branch a question
        path = request.url.path
        parts = [part for part in path.split("/") if part]
        parts = parts[2:] if parts[0] == "api" else parts[3:]
        namespace = "ml"
        if parts[0] == "namespaces":
            namespace, parts = parts[1], parts[2:]
        plural, name, rest = parts[0], parts[1] if len(parts) > 1 else "", parts[2:]
        watching = request.query_params.get("watch") == "true"
        verb = {"POST": "create", "PATCH": "patch", "DELETE": "delete"}.get(request.method) or (
            "watch" if watching else "get" if name else "list"
        )
        what = plural if not rest else f"{plural}/{rest[0]}"
        self.asked.append((verb, what))
        if self.down:
            return _status(503, "the server is not there")
        if self.token is not None and request.headers.get("authorization") != f"Bearer {self.token}":
            return _status(401, "Unauthorized")
        for fault in list(self.faults):
            if fault.meets(request):
                self.faults.remove(fault)
                return _status(fault.status, fault.message, fault.headers)
        if (verb, what) in self.forbidden:
            said = f'{what} is forbidden: User "jane" cannot {verb} resource "{what}" in API group ""'
            return _status(403, f'{said} in the namespace "{namespace}"')
        if rest[:1] == ["log"]:
            return self._log(request, namespace, name)
        if rest[:1] == ["proxy"]:
            return await self._proxy(request, name, "/" + "/".join(rest[1:]))
        if verb == "list":
            return self._list(request, namespace, plural)
        if verb == "watch":
            return self._watch(request, namespace, plural)
        return await self._one(request, verb, namespace, plural, name)

    async def _one(  # noqa: PLR0911 - a return a verb
        self, request: Request, verb: str, namespace: str, plural: str, name: str
    ) -> Response:
        found = self.get(name, plural=plural, namespace=namespace)
        body = await request.body()
        if verb == "create":
            item = json.loads(body)
            if plural == "selfsubjectaccessreviews":
                return JSONResponse({**item, "status": {"allowed": True}})
            return JSONResponse(self.put(item, plural=plural, namespace=namespace), status_code=201)
        if verb == "patch":
            change = json.loads(body)
            if request.headers["content-type"] == "application/apply-patch+yaml":
                base = found or {"apiVersion": change["apiVersion"], "kind": change["kind"], "metadata": {"name": name}}
                return JSONResponse(self.put(_merged(base, change), plural=plural, namespace=namespace))
            if found is None:
                return _status(404, f'{plural} "{name}" not found')
            return JSONResponse(self.put(_merged(found, change), plural=plural, namespace=namespace))
        if found is None:
            return _status(404, f'{plural} "{name}" not found')
        if verb == "delete":
            self.remove(name, plural=plural, namespace=namespace)
            return JSONResponse({"kind": "Status", "status": "Success"})
        return JSONResponse(found)

    def _matching(self, request: Request, namespace: str, plural: str) -> list[dict[str, Any]]:
        with self._lock:
            items = [
                copy.deepcopy(item)
                for (where, of, _), item in self.objects.items()
                if of == plural and where == namespace and _selected(item, request)
            ]
        return sorted(items, key=lambda item: str(item["metadata"]["name"]))

    def _list(self, request: Request, namespace: str, plural: str) -> Response:
        items = self._matching(request, namespace, plural)
        limit = int(request.query_params.get("limit", "0")) or len(items) or 1
        start = int(request.query_params.get("continue", "0"))
        more = str(start + limit) if start + limit < len(items) else ""
        meta = {"resourceVersion": str(self.version), "continue": more}
        return JSONResponse({"kind": "List", "metadata": meta, "items": items[start : start + limit]})

    def _watch(self, request: Request, namespace: str, plural: str) -> Response:
        since = int(request.query_params.get("resourceVersion", "0"))
        if since < self.compacted:
            gone = _body(410, "too old resource version")
            return StreamingResponse(_lines([json.dumps({"type": "ERROR", "object": gone})]))

        async def stream() -> AsyncIterator[bytes]:
            at, mine = since, self.streams
            seconds = float(request.query_params.get("timeoutSeconds", "60"))
            until = time.monotonic() + seconds
            while time.monotonic() < until and mine == self.streams and not self.down:
                with self._lock:
                    news = [one for one in self.history if one[0] > at and one[2] == plural]
                for version, kind, _, item in news:
                    at = version
                    if item["metadata"].get("namespace") == namespace and _selected(item, request):
                        yield (json.dumps({"type": kind, "object": item}) + "\n").encode()
                await asyncio.sleep(_TICK)

        return StreamingResponse(stream())

    def _log(self, request: Request, namespace: str, pod: str) -> Response:
        if self.get(pod, namespace=namespace) is None:
            return _status(404, f'pods "{pod}" not found')
        follow = request.query_params.get("follow") == "true"
        since = request.query_params.get("sinceTime", "")

        async def stream() -> AsyncIterator[bytes]:
            at, mine = 0, self.streams
            while mine == self.streams and not self.down:
                with self._lock:
                    news, at = self.logs[pod][at:], len(self.logs[pod])
                for stamp, text in news:
                    if stamp[:19] >= since[:19]:
                        yield f"{stamp} {text}\n".encode()
                item = self.get(pod, namespace=namespace)
                if not follow or item is None or item["status"]["phase"] in ("Succeeded", "Failed"):
                    return
                await asyncio.sleep(_TICK)

        return StreamingResponse(stream())

    async def _proxy(self, request: Request, pod: str, path: str) -> Response:
        if self.proxied is None:
            return _status(503, "error trying to reach service: connection refused")
        body = await request.body()
        status, text = await asyncio.to_thread(self.proxied, pod, request.method, path, dict(request.headers), body)
        return PlainTextResponse(text, status_code=status)


def _body(status: int, message: str) -> dict[str, Any]:
    return {"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": message, "code": status}


def _status(status: int, message: str, headers: dict[str, str] | None = None) -> Response:
    return JSONResponse(_body(status, message), status_code=status, headers=headers)


async def _lines(lines: list[str]) -> AsyncIterator[bytes]:
    for line in lines:
        yield line.encode() + b"\n"


def _selected(item: dict[str, Any], request: Request) -> bool:
    labels = item["metadata"].get("labels") or {}
    for wanted in filter(None, request.query_params.get("labelSelector", "").split(",")):
        name, equals, value = wanted.partition("=")
        if labels.get(name) != value if equals else name not in labels:
            return False
    for wanted in filter(None, request.query_params.get("fieldSelector", "").split(",")):
        name, _, value = wanted.partition("=")
        at: Any = item
        for part in name.split("."):
            at = (at or {}).get(part)
        if at != value:
            return False
    return True


def _merged(base: dict[str, Any], change: dict[str, Any]) -> dict[str, Any]:
    """RFC 7386, which is enough for an apply as well where one manager owns all."""
    found = copy.deepcopy(base)
    for name, value in change.items():
        if value is None:
            found.pop(name, None)
        elif isinstance(value, dict) and isinstance(found.get(name), dict):
            found[name] = _merged(found[name], value)
        else:
            found[name] = copy.deepcopy(value)
    return found


@contextlib.contextmanager
def served(cluster: FakeCluster) -> Iterator[str]:
    """Its address while the block runs."""
    listener = socket.create_server(("127.0.0.1", 0))
    config = uvicorn.Config(
        cluster.app(),
        http="h11",
        loop="asyncio",
        ws="none",
        lifespan="off",
        log_config=None,
        timeout_graceful_shutdown=1,
    )
    server = uvicorn.Server(config)
    server.install_signal_handlers = lambda: None
    thread = threading.Thread(target=lambda: asyncio.run(server.serve(sockets=[listener])), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        cluster.break_streams()
        server.should_exit = True
        thread.join(10)
        listener.close()


def kubeconfig(path: Path, server: str) -> Path:
    """A kubeconfig with one context, `test`."""
    path.write_text(
        json.dumps(
            {
                "apiVersion": "v1",
                "kind": "Config",
                "current-context": "test",
                "clusters": [{"name": "test", "cluster": {"server": server}}],
                "users": [{"name": "jane", "user": {"token": "jane"}}],
                "contexts": [{"name": "test", "context": {"cluster": "test", "user": "jane", "namespace": "ml"}}],
            }
        )
    )
    return path
