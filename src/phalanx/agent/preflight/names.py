"""Names, as gRPC resolves them: by getaddrinfo, IPv4 and IPv6 in the order in which they come."""

from __future__ import annotations

import ipaddress
import socket
import threading
import time
from collections.abc import Callable
from typing import Any

#: Seconds between two questions about a name: short at first, since a record may be on its way.
_FIRST, _LONGEST = 0.2, 2.0

Resolve = Callable[..., list[tuple[Any, ...]]]


class Unresolved(Exception):  # noqa: N818 - no error before the deadline
    """The name is still unknown: says what the resolver said last."""


def resolve(
    name: str,
    *,
    patience: float,
    over: threading.Event,
    ask: Resolve = socket.getaddrinfo,
    clock: Callable[[], float] = time.monotonic,
) -> list[tuple[int, tuple[Any, ...]]]:
    """`[(family, sockaddr)]`, port 0, in the resolver's order; asks again until `patience` seconds have passed (R44).

    An IP address is its own answer. Raises Unresolved; ends at once when `over` is set.
    """
    if is_address(name):
        patience = 0.0
    until, wait = clock() + patience, _FIRST
    while True:
        try:
            found = ask(name, 0, type=socket.SOCK_STREAM)
        except OSError as wrong:
            said = wrong.strerror or str(wrong)
        except UnicodeError:
            raise Unresolved(f"{name} is no name of a host") from None
        else:
            return [(family, address) for family, _, _, _, address in found]
        if clock() >= until or over.wait(wait):
            waited = f" for {patience:.0f} s" if patience else ""
            raise Unresolved(f"{name} does not resolve{waited}: {said}")
        wait = min(wait * 1.5, _LONGEST)


def is_address(name: str) -> bool:
    """Whether it is an IP address, and no name."""
    try:
        ipaddress.ip_address(name.strip("[]").partition("%")[0])
    except ValueError:
        return False
    return True
