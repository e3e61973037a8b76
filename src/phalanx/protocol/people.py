"""How the command line talks to a lead: by a token derived from the run's key, never through a proxy."""

from __future__ import annotations

import http.client
import json
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from phalanx.errors import InputError, PlaceError
from phalanx.events import RunEnded, event_from_json
from phalanx.plan.wire import WireError
from phalanx.protocol.client import DEPOSED


class LeadUnreachableError(PlaceError):
    """The lead of this run does not answer. `phalanx ps` shows whether it has ended."""


class LeadMuteError(LeadUnreachableError):
    """Somebody listens where the lead should be, and does not answer: it is frozen, or its successor starts."""


class LeadBarredError(LeadUnreachableError):
    """This user may not speak to the lead, whoever it is: waiting changes nothing."""


class Carrier(Protocol):
    """Takes people's words to leads that cannot be reached directly: those whose address is a URL of its scheme."""

    def ask(
        self, address: str, method: str, path: str, *, headers: Mapping[str, str], body: bytes, timeout: float
    ) -> tuple[int, str]:
        """Status and text of the lead's own answer. Raises LeadUnreachableError, LeadMuteError where one may come."""
        ...

    def patience(self, address: str) -> float:
        """Seconds for which a lead that did not answer may still come; 0 where none will. Never raises."""
        ...


#: By the scheme of the address. An engine enters its own as it is imported.
CARRIERS: dict[str, Carrier] = {}


def carrier_of(address: str) -> Carrier | None:
    """Who takes words to that address; None for `host:port`. Raises LeadUnreachableError where none is installed."""
    scheme, colon, _ = address.partition("://")
    if not colon:
        return None
    if scheme not in CARRIERS:
        raise LeadUnreachableError(f"nothing is installed here that reaches {address}")
    return CARRIERS[scheme]


def alive(address: str, token: str) -> bool:
    """Whether the lead of this very run answers at `address`. Never raises."""
    try:
        return bool(_call(address, token, "GET", "/v1/run", None, timeout=2.0).get("run"))
    except (PlaceError, ValueError):
        return False


def state(address: str, token: str) -> dict[str, Any]:
    """`{"run", "phase", "epoch", "seq", "hosts", "end"}`; hosts by number: the pid of its agent, 0 where that is gone.

    `end` is for `end_of`. Raises LeadUnreachableError.
    """
    return _call(address, token, "GET", "/v1/run", None, timeout=3.0)


def end_of(told: Mapping[str, Any]) -> RunEnded | None:
    """How the run has ended by that answer of `state`; None while it goes on."""
    try:
        event = event_from_json(told["end"])
    except (KeyError, WireError):  # it goes on, or an older phalanx leads it
        return None
    return event if isinstance(event, RunEnded) else None


def steps(address: str, token: str) -> list[dict[str, Any]]:
    """How far each task is that counts its steps: a `TaskSample` as it travels, and its `age`.

    Asks every agent, none more than once in seconds. Raises LeadUnreachableError.
    """
    found = _call(address, token, "GET", "/v1/steps", None, timeout=5.0).get("steps")
    return [one for one in found if isinstance(one, dict)] if isinstance(found, list) else []


def slow(address: str, token: str) -> Any:
    """Where the time of the last half minute went, as `plan.wire` writes a `decide.slowness.Look`.

    Raises LeadUnreachableError.
    """
    return _call(address, token, "GET", "/v1/slow", None, timeout=5.0).get("look")


def stop(address: str, token: str, *, hard: bool, by: str) -> None:
    """Ask the lead to end the run; idempotent. Returns once it has taken note. Raises LeadUnreachableError."""
    _call(address, token, "POST", "/v1/stop", {"hard": hard, "by": by}, timeout=3.0)


def scale(address: str, token: str, *, workers: int, by: str) -> None:
    """Ask for so many workers. Raises InputError where the job does not take them, LeadUnreachableError."""
    _call(address, token, "POST", "/v1/scale", {"workers": workers, "by": by}, timeout=3.0)


def stacks(address: str, token: str, *, tasks: Sequence[str], by: str) -> dict[str, Any]:
    """Ask the lead for what these tasks' threads do, all tasks where none is named.

    `{"run", "seq", "tasks"}`: the files come as `stacks-written` events after `seq`, one for each of `tasks`. Raises
    LeadUnreachableError.
    """
    return _call(address, token, "POST", "/v1/stacks", {"tasks": list(tasks), "by": by}, timeout=3.0)


def withdraw(address: str, token: str, *, host: int, by: str) -> None:
    """Take a host away: the run stops where it can and goes on without it. Raises LeadUnreachableError."""
    _call(address, token, "POST", "/v1/withdraw", {"host": host, "by": by}, timeout=3.0)


def lost(address: str, token: str, *, host: int, reason: str) -> None:
    """Tell the lead that a host's agent has ended; idempotent. Raises LeadUnreachableError."""
    _call(address, token, "POST", "/v1/lost", {"host": host, "reason": reason}, timeout=2.0)


def _call(address: str, token: str, method: str, path: str, data: Any, *, timeout: float) -> dict[str, Any]:
    body = b"" if data is None else json.dumps(data).encode()
    # The second is for those on the way who keep the first to themselves.
    headers = {"Authorization": f"Bearer {token}", "X-Phalanx-Token": token, "Content-Type": "application/json"}
    carrier = carrier_of(address)
    if carrier is not None:
        del headers["Authorization"]  # it is the way's own
        status, text = carrier.ask(address, method, path, headers=headers, body=body, timeout=timeout)
    else:
        status, text = _direct(address, method, path, headers=headers, body=body, timeout=timeout)
    if status == http.HTTPStatus.CONFLICT:
        message, _, hint = text.rstrip("\n").partition("\n")
        raise InputError(message, hint=hint or None)
    if status == DEPOSED:
        raise LeadMuteError(f"the lead at {address} rules no more")
    if status != http.HTTPStatus.OK:
        raise LeadUnreachableError(f"the lead at {address} refused: {status} {text[:200]}")
    try:
        found = json.loads(text)
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise LeadUnreachableError(f"the lead at {address} answered with something else")
    return found


def _direct(
    address: str, method: str, path: str, *, headers: Mapping[str, str], body: bytes, timeout: float
) -> tuple[int, str]:
    host, _, port = address.rpartition(":")
    if not port:
        message = "nobody here knows where this run's lead is"
        raise LeadUnreachableError(message, hint="phalanx report shows how far it came")
    connection = http.client.HTTPConnection(host.strip("[]"), int(port), timeout=timeout)
    try:
        connection.request(method, path, body=body or None, headers=dict(headers))
        answer = connection.getresponse()
        return answer.status, answer.read().decode(errors="replace")
    except (TimeoutError, ConnectionResetError, BrokenPipeError, http.client.HTTPException) as wrong:
        raise LeadMuteError(f"the lead at {address} does not answer: {wrong}") from wrong
    except OSError as wrong:
        raise LeadUnreachableError(f"the lead at {address} does not answer: {wrong}") from wrong
    finally:
        connection.close()
