"""The agent's end of the protocol: signs what it sends, believes what the lead has signed, obeys no older lead."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, TypeVar

from phalanx.errors import ProtocolError
from phalanx.protocol.messages import Join, Joined, Orders, Poll, Report, Taken, decode, encode
from phalanx.protocol.signing import NONCE, RefusedError, RunKey, check_answer, sign_request
from phalanx.protocol.transport import Transport

T = TypeVar("T")

_OK = 200


class LeadClient:
    """Calls the lead. Holds the highest epoch it has met."""

    def __init__(self, transport: Transport, key: RunKey, *, clock: Callable[[], float] = time.time) -> None:
        """`clock` gives Unix seconds."""
        self._transport, self._key, self._clock = transport, key, clock
        self.epoch = 0

    async def join(self, message: Join) -> Joined:
        """Raises RefusedError where the lead will not have this agent."""
        return await self._call("/v1/join", message, Joined)

    async def orders(self, message: Poll) -> Orders:
        """What to do next; empty after `wait` seconds without news."""
        return await self._call("/v1/orders", message, Orders)

    async def report(self, message: Report) -> Taken:
        """Hand over events. Safe to repeat."""
        return await self._call("/v1/events", message, Taken)

    async def _call(self, path: str, message: Any, kind: type[T]) -> T:
        body = encode(message)
        headers = sign_request(self._key, method="POST", path=path, body=body, epoch=self.epoch, now=self._clock())
        answer = await self._transport.call("POST", path, headers, body)
        epoch = check_answer(self._key, answer.headers, nonce=headers[NONCE], status=answer.status, body=answer.body)
        if epoch < self.epoch:
            raise RefusedError(f"a lead of epoch {epoch} gave an order; epoch {self.epoch} rules")
        if answer.status != _OK:
            raise ProtocolError(f"the lead refused {path}: {answer.body.decode(errors='replace')}")
        self.epoch = epoch
        return decode(kind, answer.body)
