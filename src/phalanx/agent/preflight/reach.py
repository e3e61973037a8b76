"""Whether this run's own agent answers at a peer's held ports, and the answers that this host gives.

A held port is bound and does not listen. For the time of the preflight a second socket listens beside it (facts §13:
SO_REUSEPORT, as TensorFlow will do) and greets whoever knows the run's key, so that a stranger at the address, or
another host behind it, is told apart. It is closed before any task starts. The caller closes first, so that no
connection of ours lingers on the port.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import hmac
import os
import socket
import struct
from collections.abc import Iterable
from typing import Any

from phalanx.plan.checklist import Peer
from phalanx.protocol.signing import RunKey

#: Seconds for one try, and for all tries at one port: a peer may be late with its own preflight.
TRY, PATIENCE = 3.0, 10.0

_HELLO, _NONCE = b"phalanx ", 16
_PAUSE, _LONGEST = 0.05, 1.0

Address = tuple[int, tuple[Any, ...]]


@dataclasses.dataclass(frozen=True, slots=True)
class Greeting:
    """What only this run's agent on a host can answer, in one generation."""

    key: RunKey
    run: str
    generation: int

    def answer(self, host: int, port: int, nonce: bytes) -> bytes:
        """The host and the port are part of it: another host behind the address is told apart."""
        parts = (self.run, str(self.generation), str(host), str(port))
        return self.key.mac(b"preflight", *(part.encode() for part in parts), nonce).encode()


class Greeter:
    """Listens on one host's held ports until `close`. Belongs to one event loop."""

    def __init__(self, greeting: Greeting, host: int) -> None:
        """Nothing listens yet."""
        self._greeting, self._host = greeting, host
        self._loop = asyncio.get_running_loop()
        self._listeners: list[socket.socket] = []
        self._guests: set[asyncio.Task[None]] = set()

    def listen(self, ports: Iterable[int]) -> None:
        """Answer on these. Raises OSError where one cannot be listened on."""
        for port in ports:
            listener = _listener(port)
            self._listeners.append(listener)
            self._loop.add_reader(listener, self._let_in, listener, port)

    def close(self) -> None:
        """No socket of ours listens on the ports any more. Idempotent."""
        for listener in self._listeners:
            self._loop.remove_reader(listener)
            listener.close()
        for guest in self._guests:
            guest.cancel()
        self._listeners = []

    def _let_in(self, listener: socket.socket, port: int) -> None:
        try:
            sock, _ = listener.accept()
        except OSError:
            return  # it has gone again
        sock.setblocking(False)  # noqa: FBT003 - its name says what it is
        guest = self._loop.create_task(self._greet(sock, port))
        self._guests.add(guest)
        guest.add_done_callback(self._guests.discard)

    async def _greet(self, sock: socket.socket, port: int) -> None:
        """A stranger, or one that goes away, is owed nothing."""
        with sock, contextlib.suppress(OSError, TimeoutError):
            # A reset rather than TIME_WAIT on the port, where the caller has not closed first.
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            async with asyncio.timeout(TRY):
                asked = await _receive(self._loop, sock, len(_HELLO) + _NONCE)
                if asked.startswith(_HELLO):
                    nonce = asked[len(_HELLO) :]
                    await self._loop.sock_sendall(sock, self._greeting.answer(self._host, port, nonce))
                    await self._loop.sock_recv(sock, 1)  # the caller closes first


async def reach(
    greeting: Greeting, peer: Peer, port: int, addresses: list[Address], *, patience: float = PATIENCE
) -> str:
    """Empty once the peer's agent has answered at the port; else what went wrong, tried until `patience` has passed."""
    clock = asyncio.get_running_loop().time
    until, wait = clock() + patience, _PAUSE
    while True:
        said = ""
        for address in addresses:
            said = await _try(greeting, peer, port, address)
            if not said:
                return ""
        if clock() >= until:
            return said
        await asyncio.sleep(wait)
        wait = min(wait * 2, _LONGEST)


async def _try(greeting: Greeting, peer: Peer, port: int, address: Address) -> str:
    family, place = address
    nonce = os.urandom(_NONCE)
    wanted = greeting.answer(peer.host, port, nonce)
    loop = asyncio.get_running_loop()
    connected, got = False, b""
    with socket.socket(family, socket.SOCK_STREAM) as sock:
        sock.setblocking(False)  # noqa: FBT003 - its name says what it is
        try:
            async with asyncio.timeout(TRY):
                await loop.sock_connect(sock, (place[0], port, *place[2:]))
                connected = True
                await loop.sock_sendall(sock, _HELLO + nonce)
                got = await _receive(loop, sock, len(wanted))
        except TimeoutError:
            return "something listens there, and it is not that host's agent" if connected else "timed out"
        except OSError as wrong:
            return os.strerror(wrong.errno).lower() if wrong.errno else str(wrong)
    if hmac.compare_digest(got, wanted):
        return ""
    return "something listens there, and it is not that host's agent" if got else "the connection was closed unanswered"


async def _receive(loop: asyncio.AbstractEventLoop, sock: socket.socket, count: int) -> bytes:
    """`count` bytes, fewer where the other side closes."""
    got = b""
    while len(got) < count and (part := await loop.sock_recv(sock, count - len(got))):
        got += part
    return got


def _listener(port: int) -> socket.socket:
    sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        sock.bind(("0.0.0.0", port))  # noqa: S104 - as the held socket, and TensorFlow
        sock.listen(1024)
        sock.setblocking(False)  # noqa: FBT003 - its name says what it is
    except OSError:
        sock.close()
        raise
    return sock
