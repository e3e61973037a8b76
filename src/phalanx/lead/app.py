"""The lead's routes: for agents by signature, for people by token, and a health word for anyone."""

from __future__ import annotations

import asyncio
import hmac
import json
import time
from collections.abc import Awaitable, Callable
from typing import Any

from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route

from phalanx.errors import PhalanxError
from phalanx.events import event_to_json
from phalanx.lead.deposed import DeposedError
from phalanx.lead.lead import Lead
from phalanx.lead.steps import steps_now
from phalanx.plan.wire import WireError, to_wire
from phalanx.protocol.client import DEPOSED, JOIN_AGAIN, RESIGNED, STALE, TAKEN
from phalanx.protocol.messages import Copy, Join, Poll, Report, decode, encode
from phalanx.protocol.signing import (
    NONCE,
    Gate,
    RefusedError,
    ResignedError,
    RunKey,
    StaleError,
    TakenError,
    sign_answer,
)
from phalanx.protocol.transport import REQUEST_LIMIT

_JOIN = "/v1/join"

#: Where people show their token if `Authorization` does not come through: the API server of Kubernetes takes it.
PEOPLE = "x-phalanx-token"


#: What an agent is told instead of an answer; the first kind that fits.
_STATUS: dict[type[Exception], int] = {
    DeposedError: DEPOSED,
    ResignedError: RESIGNED,
    TakenError: TAKEN,
    RefusedError: 403,
    WireError: 400,
}


class App:
    """Binds one lead to its routes. `hosts` are the Host headers it answers to: others are a foreign page's trick. None
    are named where nobody can know them all, behind proxies and names of a cluster: signature and token must do.
    """

    def __init__(
        self, lead: Lead, key: RunKey, *, hosts: frozenset[str], clock: Callable[[], float] = time.time
    ) -> None:
        """`hosts` holds `address:port` strings."""
        self._lead, self._key, self._hosts, self._clock = lead, key, hosts, clock
        self._gate = Gate(key)
        self._token = key.people_token()

    def asgi(self) -> Starlette:
        """The application."""
        return Starlette(
            routes=[
                Route("/healthz", self._health, methods=["GET"]),
                Route(_JOIN, self._agent(self._join), methods=["POST"]),
                Route("/v1/orders", self._agent(self._orders), methods=["POST"]),
                Route("/v1/events", self._agent(self._events), methods=["POST"]),
                Route("/v1/records", self._agent(self._records), methods=["POST"]),
                Route("/v1/run", self._person(self._run), methods=["GET"]),
                Route("/v1/steps", self._person(self._steps), methods=["GET"]),
                Route("/v1/slow", self._person(self._slow), methods=["GET"]),
                Route("/v1/stop", self._person(self._stop), methods=["POST"]),
                Route("/v1/scale", self._person(self._scale), methods=["POST"]),
                Route("/v1/stacks", self._person(self._stacks), methods=["POST"]),
                Route("/v1/withdraw", self._person(self._withdraw), methods=["POST"]),
                Route("/v1/lost", self._person(self._lost), methods=["POST"]),
            ]
        )

    # For anyone ----------------------------------------------------------------------------------------------------

    async def _health(self, request: Request) -> Response:
        del request
        return Response("ok\n", media_type="text/plain")

    # For agents ----------------------------------------------------------------------------------------------------

    async def _join(self, request: Request, body: bytes) -> Any:
        del request
        joined = self._lead.join(decode(Join, body))
        await self._lead.settle()
        return joined

    async def _events(self, request: Request, body: bytes) -> Any:
        del request
        taken = self._lead.report(decode(Report, body))
        await self._lead.settle()
        return taken

    async def _records(self, request: Request, body: bytes) -> Any:
        del request
        return await self._lead.copy(decode(Copy, body))

    async def _orders(self, request: Request, body: bytes) -> Any:
        """Answers the poll, and notices when the agent hangs up: a killed one is known long before its lease ends."""
        poll = decode(Poll, body)
        answer = asyncio.ensure_future(self._lead.orders(poll))
        gone = asyncio.ensure_future(_disconnected(request))
        try:
            await asyncio.wait({answer, gone}, return_when=asyncio.FIRST_COMPLETED)
            if not answer.done():
                self._lead.hung_up(poll)
                message = "hung up"
                raise RefusedError(message)
            return answer.result()
        finally:
            answer.cancel()
            gone.cancel()

    def _agent(self, serve: Callable[[Request, bytes], Awaitable[Any]]) -> Callable[[Request], Awaitable[Response]]:
        async def route(request: Request) -> Response:
            try:
                body = await self._body(request)
                epoch = self._gate.check(
                    request.headers, method=request.method, path=request.url.path, body=body, now=self._clock()
                )
                self._lead.check_epoch(epoch)
            except StaleError:
                return self._signed(request, STALE, f"{self._clock():.3f}".encode())
            except RefusedError as wrong:
                return _plain(403, str(wrong))
            except DeposedError as wrong:
                return self._signed(request, DEPOSED, str(wrong).encode())
            try:
                if epoch < self._lead.epoch and request.url.path != _JOIN:
                    status, text = JOIN_AGAIN, b"an earlier lead's: join again"
                else:
                    status, text = 200, encode(await serve(request, body))
            except (DeposedError, ResignedError, RefusedError, WireError) as wrong:
                status = next(status for kind, status in _STATUS.items() if isinstance(wrong, kind))
                text = str(wrong).encode()
            return self._signed(request, status, text)

        return route

    def _signed(self, request: Request, status: int, body: bytes) -> Response:
        nonce = request.headers[NONCE]
        headers = sign_answer(self._key, nonce=nonce, status=status, body=body, epoch=self._lead.epoch)
        return Response(body, status_code=status, headers=headers, media_type="application/json")

    # For people ----------------------------------------------------------------------------------------------------

    def _standing(self) -> dict[str, Any]:
        return {"run": self._lead.run, "phase": self._lead.state.phase.value}

    async def _run(self, request: Request, body: bytes) -> Any:
        del request, body
        state = self._lead.state
        return {
            **self._standing(),
            "epoch": self._lead.epoch,
            "seq": state.seq,
            "end": event_to_json(state.end) if state.end else None,
            "hosts": {str(host.id): host.joined.agent_pid if host.living else 0 for host in state.hosts.values()},
        }

    async def _steps(self, request: Request, body: bytes) -> Any:
        del request, body
        return {**self._standing(), "steps": await steps_now(self._lead.living().values(), self._clock)}

    async def _slow(self, request: Request, body: bytes) -> Any:
        del request, body
        return {**self._standing(), "look": to_wire(self._lead.slow.look(self._lead.state, self._clock()))}

    async def _stop(self, request: Request, body: bytes) -> Any:
        del request
        data = _object(body)
        self._lead.people.stop(by=_by(data), hard=data.get("hard", False) is True)
        return self._standing()

    async def _scale(self, request: Request, body: bytes) -> Any:
        del request
        data = _object(body)
        self._lead.people.scale(_number(data, "workers"), by=_by(data))
        return self._standing()

    async def _stacks(self, request: Request, body: bytes) -> Any:
        del request
        data = _object(body)
        named = data.get("tasks") or []
        known = {str(task): task for task in self._lead.state.tasks}
        if not isinstance(named, list) or not all(isinstance(one, str) and one in known for one in named):
            message = f"tasks: a list of tasks of this run wanted, not {named!r}"
            raise WireError(message)
        seq = self._lead.state.seq
        wanted = tuple(known[one] for one in named or known)
        asked = self._lead.people.stacks(wanted, by=_by(data))
        return {"run": self._lead.run, "seq": seq, "tasks": [str(task) for task in asked]}

    async def _withdraw(self, request: Request, body: bytes) -> Any:
        del request
        data = _object(body)
        self._lead.people.withdraw(_number(data, "host"), by=_by(data))
        return self._standing()

    async def _lost(self, request: Request, body: bytes) -> Any:
        del request
        data = _object(body)
        self._lead.people.lose(_number(data, "host"), str(data.get("reason", "its agent has ended")))
        return self._standing()

    def _person(self, serve: Callable[[Request, bytes], Awaitable[Any]]) -> Callable[[Request], Awaitable[Response]]:
        async def route(request: Request) -> Response:
            try:
                body = await self._body(request)
            except RefusedError as wrong:
                return _plain(403, str(wrong))
            if not hmac.compare_digest(_token(request).encode(), self._token.encode()):
                return _plain(401, "a token is wanted: `phalanx` verbs read it from this user's index of runs")
            try:
                answer = await serve(request, body)
                await self._lead.settle()  # what was asked for outlives this lead, as far as the disk takes it
                return Response(json.dumps(answer), media_type="application/json")
            except WireError as wrong:
                return _plain(400, str(wrong))
            except DeposedError as wrong:
                return _plain(DEPOSED, str(wrong))
            except PhalanxError as wrong:
                return _plain(409, f"{wrong}\n{wrong.hint}" if wrong.hint else str(wrong))

        return route

    async def _body(self, request: Request) -> bytes:
        if self._hosts and request.headers.get("host", "") not in self._hosts:
            raise RefusedError(f"foreign Host header {request.headers.get('host', '')!r}")
        body = bytearray()
        try:
            async for chunk in request.stream():
                body += chunk
                if len(body) > REQUEST_LIMIT:
                    message = "too large"
                    raise RefusedError(message)
        except ClientDisconnect as wrong:
            message = "hung up"
            raise RefusedError(message) from wrong
        return bytes(body)


def _token(request: Request) -> str:
    """The one that somebody shows; in a header of our own where a proxy keeps `Authorization` to itself."""
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    return request.headers.get(PEOPLE) or (token if scheme.lower() == "bearer" else "")


def _object(body: bytes) -> dict[str, Any]:
    try:
        data = json.loads(body or b"{}")
    except (ValueError, RecursionError):
        data = None
    if not isinstance(data, dict):
        message = "body: a JSON object wanted"
        raise WireError(message)
    return data


def _number(data: dict[str, Any], name: str) -> int:
    if type(data.get(name)) is not int:
        raise WireError(f"{name}: a number wanted")
    return int(data[name])


def _by(data: dict[str, Any]) -> str:
    """Who asks, as he says."""
    return str(data.get("by", "somebody"))


async def _disconnected(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        continue


def _plain(status: int, text: str) -> Response:
    return Response(text + "\n", status_code=status, media_type="text/plain")
