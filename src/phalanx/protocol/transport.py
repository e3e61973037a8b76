"""One request, one answer: over HTTP/1.1 for real hosts, straight into the lead's app for simulated ones."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Mapping
from typing import Protocol

from phalanx.errors import ProtocolError
from phalanx.names import join_host_port

#: No honest answer is larger: ten thousand tasks of one host with long commands stay below a tenth of it.
LIMIT = 64 * 1024 * 1024

#: No honest request is larger: two hundred events with twenty long lines each stay below half of it.
REQUEST_LIMIT = 8 * 1024 * 1024


#: Seconds to be let in. Beyond that a new try is better: the kernel waits twice as long after each packet it loses.
CONNECT = 5.0


class LeadSilentError(ProtocolError):
    """The lead does not answer."""


class NobodyThereError(LeadSilentError):
    """Its host says that nobody listens there: the agent that would keep a lead alive at that address is gone."""


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Answer:
    """What came back; header names are lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class Transport(Protocol):
    """Carries a signed request to the lead."""

    async def call(self, method: str, path: str, headers: Mapping[str, str], body: bytes) -> Answer:
        """Raises LeadSilentError when no whole answer came. May be cancelled; nothing is retried here."""
        ...


class HttpTransport:
    """A new connection for each request, straight to the address: no proxy is ever asked (R46)."""

    def __init__(self, host: str, port: int, *, timeout: float = 40.0) -> None:
        """`timeout` bounds a whole request, in seconds: more than any long poll; the caller may have less patience."""
        self._host, self._port, self._timeout = host, port, timeout

    def turn_to(self, address: str) -> None:
        """Requests that begin from now on go to another `host:port`."""
        host, _, port = address.rpartition(":")
        self._host, self._port = host.strip("[]"), int(port)

    async def call(self, method: str, path: str, headers: Mapping[str, str], body: bytes) -> Answer:
        """See Transport."""
        address = join_host_port(self._host, self._port)
        try:
            async with asyncio.timeout(self._timeout):
                return await self._exchange(address, method, path, headers, body)
        except ConnectionRefusedError as wrong:
            raise NobodyThereError(f"nobody listens at {address}") from wrong
        except (OSError, EOFError, TimeoutError, ValueError, asyncio.LimitOverrunError) as wrong:
            raise LeadSilentError(f"the lead at {address} does not answer: {wrong or 'time-out'}") from wrong

    async def _exchange(self, address: str, method: str, path: str, headers: Mapping[str, str], body: bytes) -> Answer:
        async with asyncio.timeout(CONNECT):
            reader, writer = await asyncio.open_connection(self._host, self._port)
        try:
            lines = [
                f"{method} {path} HTTP/1.1",
                f"host: {address}",
                "connection: close",
                f"content-length: {len(body)}",
            ]
            lines += [f"{name}: {value}" for name, value in headers.items()]
            writer.write("\r\n".join([*lines, "", ""]).encode() + body)
            await writer.drain()
            status, found = _head(await reader.readuntil(b"\r\n\r\n"))
            length = int(found.get("content-length", "0"))
            if not 0 <= length <= LIMIT:
                message = f"an answer of {length} bytes"
                raise ValueError(message)
            return Answer(status=status, headers=found, body=await reader.readexactly(length))
        finally:
            writer.close()


def _head(text: bytes) -> tuple[int, dict[str, str]]:
    first, *rest = text.decode("latin-1").split("\r\n")
    headers = (line.partition(":") for line in rest if ":" in line)
    return int(first.split(" ", 2)[1]), {name.strip().lower(): value.strip() for name, _, value in headers}
