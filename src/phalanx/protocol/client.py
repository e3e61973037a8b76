"""The agent's end of the protocol: signs what it sends, believes what the lead has signed, obeys no older lead."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, TypeVar

from phalanx.errors import ProtocolError
from phalanx.protocol.messages import Copied, Copy, Join, Joined, Orders, Poll, Report, Taken, decode, encode
from phalanx.protocol.signing import NONCE, RefusedError, ResignedError, RunKey, TakenError, check_answer, sign_request
from phalanx.protocol.transport import Answer, LeadSilentError, Transport

T = TypeVar("T")

_OK, _REFUSED = 200, 403
#: The answer to an agent that has joined an earlier lead only.
JOIN_AGAIN = 409
#: The answer to an agent by whose clock it is another time: the lead's time, in Unix seconds.
STALE = 425
#: The answer of a lead that learns from the question that another one has taken over.
DEPOSED = 410
#: The answer to an agent for whose host another one is believed to live.
TAKEN = 423
#: The answer of a lead that has handed over: where its successor is to be, `host:port`.
RESIGNED = 421


class NewLeadError(ProtocolError):
    """A lead of a later epoch has taken over, and wants this agent to join again."""


class LeadClient:
    """Calls the lead. Holds the highest epoch it has met."""

    def __init__(self, transport: Transport, key: RunKey, *, clock: Callable[[], float] = time.time) -> None:
        """`clock` gives Unix seconds."""
        self._transport, self._key, self._clock = transport, key, clock
        self._ahead = 0.0  # how far the lead's clock is ahead of ours
        self.epoch = 0
        #: Seconds by which this host's clock is surely ahead of the lead's (behind: below 0); known once it has joined.
        self.ahead = 0.0

    async def join(self, message: Join) -> Joined:
        """Raises RefusedError where the lead will not have this agent."""
        asked = self._clock()
        joined = await self._call("/v1/join", message, Joined)
        if joined.now:
            answered = self._clock()
            # The lead looked at its clock at some moment between the two.
            self.ahead = max(asked - joined.now, 0.0) + min(answered - joined.now, 0.0)
        return joined

    async def orders(self, message: Poll) -> Orders:
        """What to do next; empty after `wait` seconds without news."""
        return await self._call("/v1/orders", message, Orders)

    async def report(self, message: Report) -> Taken:
        """Hand over events. Safe to repeat."""
        return await self._call("/v1/events", message, Taken)

    async def copy(self, message: Copy) -> Copied:
        """The next piece of the records; empty after `wait` seconds without news."""
        return await self._call("/v1/records", message, Copied)

    async def _call(self, path: str, message: Any, kind: type[T]) -> T:
        body = encode(message)
        answer, epoch = await self._ask(path, body)
        if answer.status == STALE:  # a host's clock was set, or never was: the lead's is as good as any
            self._ahead = float(answer.body) - self._clock()
            answer, epoch = await self._ask(path, body)
        if answer.status == DEPOSED:  # it knows so from the run's folder, we do not yet
            raise LeadSilentError(f"the lead of epoch {epoch} rules no more")
        if epoch < self.epoch:
            raise LeadSilentError(f"a lead of epoch {epoch} answered; epoch {self.epoch} rules")
        if answer.status == JOIN_AGAIN:  # another call may have joined it meanwhile
            raise NewLeadError(f"the lead of epoch {epoch} has taken over")
        if answer.status == RESIGNED:
            raise ResignedError(answer.body.decode(errors="replace"))
        if answer.status == TAKEN:
            raise TakenError(f"the lead refused {path}: {answer.body.decode(errors='replace')}")
        if answer.status == _REFUSED:
            raise RefusedError(f"the lead refused {path}: {answer.body.decode(errors='replace')}")
        if answer.status != _OK:
            raise ProtocolError(f"the lead refused {path}: {answer.body.decode(errors='replace')}")
        self.epoch = epoch
        return decode(kind, answer.body)

    async def _ask(self, path: str, body: bytes) -> tuple[Answer, int]:
        now = self._clock() + self._ahead
        headers = sign_request(self._key, method="POST", path=path, body=body, epoch=self.epoch, now=now)
        answer = await self._transport.call("POST", path, headers, body)
        try:
            epoch = check_answer(
                self._key, answer.headers, nonce=headers[NONCE], status=answer.status, body=answer.body
            )
        except RefusedError as wrong:
            if not self.epoch:
                raise
            raise LeadSilentError(str(wrong)) from wrong  # whoever took a dead lead's port is no reason to end tasks
        return answer, epoch
