"""Who may speak: every request and every answer carries an HMAC-SHA256 made with the run's key.

The key itself is never sent, never in argv and never in a task's environment. A request is signed over method, path,
body, lead epoch, nonce and time; an answer over the request's nonce and its own body, so that an agent trusts the
lead as the lead trusts the agent. Nothing is encrypted: TensorFlow's own gRPC is not either.
"""

from __future__ import annotations

import dataclasses
import hashlib
import hmac
import itertools
import os
from collections.abc import Mapping

from phalanx.errors import ProtocolError

#: Header names, lower case as ASGI has them.
SIGNATURE, NONCE, TIME, EPOCH = "x-phalanx-signature", "x-phalanx-nonce", "x-phalanx-time", "x-phalanx-epoch"

#: Seconds by which two hosts' clocks may differ before a message counts as stale.
TOLERANCE = 120.0

_KEY_BYTES = 32
_LONGEST_EPOCH = 12  # digits; Python refuses to read thousands


class RefusedError(ProtocolError):
    """A message was not signed with this run's key, is stale, or was seen before."""


class TakenError(RefusedError):
    """Another agent is here for that host, and has not been given up yet."""


class ResignedError(ProtocolError):
    """This lead has handed over to the one that is to answer at the address which this says."""


class StaleError(RefusedError):
    """A message whose time is too far from the receiver's; it was signed with the run's key."""


@dataclasses.dataclass(frozen=True, slots=True)
class RunKey:
    """The secret of one run. Its repr does not show it."""

    _value: bytes

    @classmethod
    def new(cls) -> RunKey:
        """From the operating system's randomness."""
        return cls(os.urandom(_KEY_BYTES))

    @classmethod
    def from_hex(cls, text: str) -> RunKey:
        """Raises ValueError."""
        return cls(bytes.fromhex(text))

    @classmethod
    def of(cls, text: str) -> RunKey:
        """The key in hex; any other text, such as a token that Kubernetes has made, stands for its hash."""
        text = text.strip()
        try:
            return cls.from_hex(text)
        except ValueError:
            return cls(hashlib.sha256(text.encode()).digest())

    def hex(self) -> str:
        """For the pipe to an agent, and nowhere else."""
        return self._value.hex()

    def people_token(self) -> str:
        """What the page and the command line show to the lead; the key cannot be found from it."""
        return self.mac(b"people")

    def mac(self, *parts: bytes) -> str:
        """HMAC over the parts, each with its length before it, so that no two lists look alike."""
        code = hmac.new(self._value, digestmod=hashlib.sha256)
        for part in parts:
            code.update(len(part).to_bytes(8, "big"))
            code.update(part)
        return code.hexdigest()

    def __repr__(self) -> str:
        return "RunKey(…)"


def sign_request(key: RunKey, *, method: str, path: str, body: bytes, epoch: int, now: float) -> dict[str, str]:
    """The headers that go with a request."""
    nonce = os.urandom(12).hex()
    stamp = f"{now:.3f}"
    code = key.mac(
        b"request", method.encode(), path.encode(), body, str(epoch).encode(), nonce.encode(), stamp.encode()
    )
    return {SIGNATURE: code, NONCE: nonce, TIME: stamp, EPOCH: str(epoch)}


def sign_answer(key: RunKey, *, nonce: str, status: int, body: bytes, epoch: int) -> dict[str, str]:
    """The headers that go with the answer to the request of that nonce."""
    code = key.mac(b"answer", nonce.encode(), str(status).encode(), body, str(epoch).encode())
    return {SIGNATURE: code, EPOCH: str(epoch)}


def check_answer(key: RunKey, headers: Mapping[str, str], *, nonce: str, status: int, body: bytes) -> int:
    """The epoch of the lead that answered. Raises RefusedError."""
    epoch = _epoch(headers)
    wanted = key.mac(b"answer", nonce.encode(), str(status).encode(), body, str(epoch).encode())
    if not hmac.compare_digest(wanted, headers.get(SIGNATURE, "")):
        message = "the answer is not signed with this run's key: another program listens at the lead's address"
        raise RefusedError(message)
    return epoch


class Gate:
    """Lets each signed request through once. Remembers nonces for as long as their time would be accepted."""

    def __init__(self, key: RunKey) -> None:
        """Remembers nothing yet."""
        self._key = key
        self._seen: dict[str, float] = {}

    def check(self, headers: Mapping[str, str], *, method: str, path: str, body: bytes, now: float) -> int:
        """The epoch the sender believes in. Raises RefusedError, saying which of the three reasons it is."""
        nonce, stamp = headers.get(NONCE, ""), headers.get(TIME, "")
        epoch = _epoch(headers)
        parts = (method.encode(), path.encode(), body, str(epoch).encode(), nonce.encode(), stamp.encode())
        if not hmac.compare_digest(self._key.mac(b"request", *parts), headers.get(SIGNATURE, "")):
            message = "wrong signature"
            raise RefusedError(message)
        sent = _seconds(headers)
        if not abs(now - sent) <= TOLERANCE:  # also refuses NaN
            message = f"stale: sent {now - sent:+.0f} s ago by the sender's clock"
            raise StaleError(message, hint="set the hosts' clocks (chrony, ntpd)")
        if nonce in self._seen:
            message = "replayed: this message was received before"
            raise RefusedError(message)
        self._forget(now)
        self._seen[nonce] = sent
        return epoch

    def _forget(self, now: float) -> None:
        # Insertion order is nearly time order, so only the old head is looked at.
        for nonce, sent in tuple(itertools.islice(self._seen.items(), 2)):
            if now - sent > TOLERANCE:
                del self._seen[nonce]


def _epoch(headers: Mapping[str, str]) -> int:
    text = headers.get(EPOCH, "")
    if not text.isdecimal() or len(text) > _LONGEST_EPOCH:
        raise RefusedError(f"no {EPOCH}")
    return int(text)


def _seconds(headers: Mapping[str, str]) -> float:
    try:
        return float(headers.get(TIME, ""))
    except ValueError as wrong:
        raise RefusedError(f"no {TIME}") from wrong
