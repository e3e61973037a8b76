"""Holds TCP ports from the moment they are promised until TensorFlow listens on them, against all comers."""

from __future__ import annotations

import contextlib
import errno
import os
import socket
from collections.abc import Iterator
from pathlib import Path

from phalanx.errors import InputError, PlaceError

#: Below the usual ephemeral ports (32768-60999), where any connection may take one, and below Kubernetes' node ports.
POOL = range(20000, 30000)
#: Where to look when the pool is ephemeral on this machine.
_ANYWHERE = range(1024, 65536)
#: What others are known to listen on, later perhaps than we look.
_WELL_KNOWN = frozenset({24007, 24224, 25565, 25672, 26257, 26379, 27017, 27018, 27019, 28015, 29092, 29500})
#: With fewer ports than this outside the ephemeral range, the range is no longer respected.
_FEW = 1000
#: How many holders an error names.
_NAMED = 5

_EPHEMERAL = Path("/proc/sys/net/ipv4/ip_local_port_range")
_LISTEN = "0A"


class PortHolder:
    """Ports nobody else can take, though the task may listen on them.

    Each is bound to `address` *without* SO_REUSEADDR and SO_REUSEPORT, and gets SO_REUSEPORT only then (facts 13): a
    second holder and a thief get EADDRINUSE, while a server of the same user that sets SO_REUSEPORT, as TensorFlow does
    with TF_GRPC_REUSE_PORT=1, listens there and gets every connection, since the holder itself never listens.
    TensorFlow binds all addresses, so all are held: a port held on one address only would be free on the others, and
    TensorFlow's bind would fail on whoever took it there.
    """

    def __init__(self, ports: tuple[int, int] | None = None, *, address: str = "0.0.0.0") -> None:  # noqa: S104 - above
        """`ports`: first and last to choose from; None: from outside the ephemeral range. Raises InputError."""
        if ports is not None and not 0 < ports[0] <= ports[1] < _ANYWHERE.stop:
            raise InputError(
                f"{ports[0]}-{ports[1]} is no range of ports", hint="write FIRST-LAST, each between 1 and 65535"
            )
        self._chosen = ports
        self._address = address
        self._held: dict[int, socket.socket] = {}

    @property
    def held(self) -> tuple[int, ...]:
        """What is held now, in the order it was taken."""
        return tuple(self._held)

    def hold(self, count: int) -> tuple[int, ...]:
        """Hold `count` more ports, or none at all.

        Raises InputError where the range is too small in itself, PlaceError where too much of it is taken or where
        this host lets nobody bind there.
        """
        pool = self._pool()
        if self._chosen is not None and len(pool) < len(self._held) + count:
            first, last = self._chosen
            raise InputError(
                f"the ports {first}-{last} are {len(pool)}, and this host needs {len(self._held) + count}: "
                "one a task, for this generation and the next",
                hint="widen --ports A-B, or put fewer tasks on a host",
            )
        found: dict[int, socket.socket] = {}
        for port in self._order(pool):
            if len(found) == count:
                break
            if port not in self._held and (sock := self._bind(port)) is not None:
                found[port] = sock
        if len(found) < count:
            for sock in found.values():
                sock.close()
            raise self._exhausted(pool, free=len(found), wanted=count)
        self._held |= found
        return tuple(found)

    def lend(self, port: int) -> None:
        """Let any server listen there that sets SO_REUSEADDR, as most do; other holders still get EADDRINUSE."""
        if (sock := self._held.get(port)) is not None:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)

    def release(self, port: int) -> None:
        """Let go of one port; a server that listens on it is not disturbed. No error when it is not held."""
        sock = self._held.pop(port, None)
        if sock is not None:
            sock.close()

    def release_all(self) -> None:
        """Let go of every port. Idempotent."""
        for port in self.held:
            self.release(port)

    def _pool(self) -> list[int]:
        if self._chosen is not None:
            return list(range(self._chosen[0], self._chosen[1] + 1))
        return default_pool()

    def _order(self, pool: list[int]) -> Iterator[int]:
        """From a random place on, so that agents that start together do not all try the same ports."""
        start = int.from_bytes(os.urandom(4), "little") % len(pool)
        yield from pool[start:]
        yield from pool[:start]

    def _bind(self, port: int) -> socket.socket | None:
        """The held port; None where it is taken."""
        sock = socket.socket(socket.AF_INET6 if ":" in self._address else socket.AF_INET, socket.SOCK_STREAM)
        try:
            sock.bind((self._address, port))
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        except OSError as wrong:
            sock.close()
            if wrong.errno == errno.EADDRINUSE:
                return None
            raise PlaceError(
                f"port {port} of {self._address} cannot be bound on this host: {wrong.strerror}",
                hint="ports below 1024 are for root; choose others with --ports A-B"
                if port < _ANYWHERE.start
                else None,
            ) from wrong
        return sock

    def _exhausted(self, pool: list[int], *, free: int, wanted: int) -> PlaceError:
        taken = [port for port in pool if port not in self._held]
        named = holders(taken)
        lines = [f"{port} by {named[port]}" for port in taken if port in named][:_NAMED]
        unnamed = len(taken) - free - len(named)
        if unnamed > 0:
            lines.append(f"{unnamed} by sockets that do not listen: another phalanx agent, or a connection just closed")
        return PlaceError(
            f"{wanted} ports are wanted of {pool[0]}-{pool[-1]} on this host, and {free} are free"
            + (f"; taken: {', '.join(lines)}" if lines else ""),
            hint="name other ports with --ports A-B, or stop what holds these (phalanx ps)",
        )


def default_pool(ephemeral: Path = _EPHEMERAL) -> list[int]:
    """The ports to choose from where nobody said: outside the ephemeral range as long as there are enough of them."""
    low, high = _bounds(ephemeral)
    for candidates in (POOL, _ANYWHERE):
        outside = [port for port in candidates if not low <= port <= high and port not in _WELL_KNOWN]
        if len(outside) >= _FEW:
            return outside
    return [port for port in POOL if port not in _WELL_KNOWN]


def holders(ports: list[int], proc: Path = Path("/proc")) -> dict[int, str]:
    """Who has these ports, as far as the kernel tells: `python3 (pid 4711)`, or the number of another user.

    A socket that is bound and neither listens nor is connected is in no table.
    """
    wanted = set(ports)
    sockets: dict[str, tuple[int, str]] = {}  # inode → port, user
    for table in ("tcp", "tcp6"):
        for fields in _rows(proc / "net" / table):
            port = int(fields[1].rpartition(":")[2], 16)
            if port in wanted and (fields[3] == _LISTEN or port not in {known for known, _ in sockets.values()}):
                sockets[fields[9]] = (port, fields[7])
    found = {port: f"user {user}" if user != "0" else "root" for port, user in sockets.values()}
    for inode, owner in _owners(set(sockets), proc):
        found[sockets[inode][0]] = owner
    return found


def _rows(table: Path) -> list[list[str]]:
    try:
        return [line.split() for line in table.read_text(encoding="ascii").splitlines()[1:]]
    except OSError:
        return []  # a kernel without IPv6


def _owners(inodes: set[str], proc: Path) -> Iterator[tuple[str, str]]:
    """Each of these sockets that a process we may look into has open, and that process."""
    for process in proc.iterdir() if inodes else ():
        if not process.name.isdecimal():
            continue
        open_files = set(_open_files(process))
        for inode in inodes:
            if f"socket:[{inode}]" in open_files:
                yield inode, f"{_name(process)} (pid {process.name})"


def _open_files(process: Path) -> Iterator[str]:
    try:
        for link in (process / "fd").iterdir():
            with contextlib.suppress(FileNotFoundError):  # closed meanwhile
                yield os.readlink(link)  # noqa: PTH115 - text, not a path
    except OSError:
        return  # another user's, or gone


def _name(process: Path) -> str:
    try:
        return (process / "comm").read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return "a process that has just ended"


def _bounds(ephemeral: Path) -> tuple[int, int]:
    try:
        low, high = ephemeral.read_text(encoding="ascii").split()
    except (OSError, ValueError):
        return 32768, 60999  # Linux's default
    return int(low), int(high)
