"""Faults of a link: done to the very sockets of two tasks, from outside, without a proxy and without root.

`pidfd_getfd(2)` gives a second handle to a socket of another process. Through it a connection is reset, a listener is
shut, a filter drops what comes in (so that nothing is acknowledged: half-open), or the kernel paces what goes out. It
is allowed where tracing is: to root, to the same user where `kernel.yama.ptrace_scope` is 0, and to a parent.
"""

from __future__ import annotations

import contextlib
import ctypes
import dataclasses
import errno
import os
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

from phalanx.chaos.fault import Fault
from phalanx.chaos.whereabouts import CannotError, Whereabouts
from phalanx.process import Process

_PIDFD_GETFD = 438  # the same number on every architecture
_SO_ATTACH_FILTER, _SO_DETACH_FILTER, _SO_MAX_PACING_RATE = 26, 27, 47
_DROP = struct.pack("=HBBI", 0x06, 0, 0, 0)  # BPF: return 0, keep no byte
_LISTEN = "0A"
#: Bytes a second of a slow link, and of one that nobody slows.
SLOW, UNPACED = 256 << 10, (1 << 32) - 1
#: Seconds between two looks for connections that are new.
_LOOK = 0.05

_libc = ctypes.CDLL(None, use_errno=True)


@dataclasses.dataclass(frozen=True, slots=True)
class _Row:
    """One socket as /proc/net/tcp lists it; addresses in its own hexadecimal."""

    local: str
    remote: str
    state: str
    inode: str


def refuse(fault: Fault, where: Whereabouts) -> None:
    """Reset what is open between the two, and shut the listeners of both: whoever calls them again is refused."""
    one, other = _pair(fault, where)
    found = [*_between(one, other), *_listeners(one), *_listeners(other)]
    _check(found, fault)
    for handle, row in found:
        with handle:
            if row.state == _LISTEN:
                handle.shutdown(socket.SHUT_RDWR)
            else:
                _reset(handle)


def half_open(fault: Fault, where: Whereabouts) -> Callable[[], None]:
    """Drop what comes in on both ends, also of connections that are made meanwhile."""
    code = ctypes.create_string_buffer(_DROP)
    program = struct.pack("HL", 1, ctypes.addressof(code))
    return _Held(
        *_pair(fault, where),
        fault,
        strike=lambda handle: handle.setsockopt(socket.SOL_SOCKET, _SO_ATTACH_FILTER, program),
        undo=lambda handle: handle.setsockopt(socket.SOL_SOCKET, _SO_DETACH_FILTER, struct.pack("i", 0)),
    ).lift


def slow(fault: Fault, where: Whereabouts) -> Callable[[], None]:
    """Pace what goes out on both ends."""
    return _Held(
        *_pair(fault, where),
        fault,
        strike=lambda handle: handle.setsockopt(socket.SOL_SOCKET, _SO_MAX_PACING_RATE, struct.pack("I", SLOW)),
        undo=lambda handle: handle.setsockopt(socket.SOL_SOCKET, _SO_MAX_PACING_RATE, struct.pack("I", UNPACED)),
    ).lift


class _Held:
    """A fault of all connections between two processes, also of new ones, until it is lifted."""

    def __init__(
        self,
        one: Process,
        other: Process,
        fault: Fault,
        *,
        strike: Callable[[socket.socket], None],
        undo: Callable[[socket.socket], None],
    ) -> None:
        self._one, self._other, self._strike, self._undo = one, other, strike, undo
        self._known: dict[str, socket.socket] = {}
        found = list(_between(one, other))
        _check(found, fault)
        self._take(found)
        self._over = threading.Event()
        self._watch = threading.Thread(target=self._look, daemon=True)
        self._watch.start()

    def lift(self) -> None:
        """As it was before, for the connections that are still there."""
        self._over.set()
        self._watch.join()
        for handle in self._known.values():
            with handle, contextlib.suppress(OSError):
                self._undo(handle)

    def _look(self) -> None:
        while not self._over.wait(_LOOK):
            with contextlib.suppress(CannotError):  # one of the two has ended
                self._take(list(_between(self._one, self._other, self._known)))

    def _take(self, found: list[tuple[socket.socket, _Row]]) -> None:
        for handle, row in found:
            self._known[row.inode] = handle
            with contextlib.suppress(OSError):
                self._strike(handle)


def _pair(fault: Fault, where: Whereabouts) -> tuple[Process, Process]:
    one, other = fault.tasks
    return where.task(one), where.task(other)


def _check(found: list[tuple[socket.socket, _Row]], fault: Fault) -> None:
    if not any(row.state != _LISTEN for _, row in found):
        for handle, _ in found:
            handle.close()
        raise CannotError(f"{fault.target} have no connection to each other now")


def _between(
    one: Process, other: Process, known: dict[str, socket.socket] | None = None
) -> Iterator[tuple[socket.socket, _Row]]:
    """Both ends of each connection between two processes, but for the `known` ones."""
    mine, theirs = _sockets(one), _sockets(other)
    rows = _rows(one.pid)
    ends = {(row.local, row.remote): row for row in rows if row.state != _LISTEN}
    for row in ends.values():
        peer = ends.get((row.remote, row.local))
        if peer is None or row.inode not in mine or peer.inode not in theirs:
            continue
        for process, fd, end in ((one, mine[row.inode], row), (other, theirs[peer.inode], peer)):
            if known is None or end.inode not in known:
                yield _handle(process, fd), end


def _listeners(process: Process) -> Iterator[tuple[socket.socket, _Row]]:
    mine = _sockets(process)
    for row in _rows(process.pid):
        if row.state == _LISTEN and row.inode in mine:
            yield _handle(process, mine[row.inode]), row


def _sockets(process: Process) -> dict[str, int]:
    """By inode: the number of each socket that it has open. Raises CannotError."""
    folder = Path("/proc") / str(process.pid) / "fd"
    found = {}
    try:
        for entry in folder.iterdir():
            with contextlib.suppress(FileNotFoundError):
                name = str(entry.readlink())
                if name.startswith("socket:["):
                    found[name[8:-1]] = int(entry.name)
    except FileNotFoundError as wrong:
        raise CannotError(f"process {process.pid} has ended in this moment") from wrong
    except PermissionError as wrong:
        raise CannotError(f"process {process.pid} belongs to another user") from wrong
    return found


def _rows(pid: int) -> list[_Row]:
    """The TCP sockets of the process's network. IPv4 in IPv6 is told in the words of IPv4, so that ends meet."""
    found = []
    for name in ("tcp", "tcp6"):
        with contextlib.suppress(FileNotFoundError):
            for line in (Path("/proc") / str(pid) / "net" / name).read_text().splitlines()[1:]:
                part = line.split()
                found.append(_Row(_v4(part[1]), _v4(part[2]), part[3], part[9]))
    return found


def _v4(address: str) -> str:
    return address.removeprefix("0000000000000000FFFF0000")


def _handle(process: Process, fd: int) -> socket.socket:
    """Our own handle to its socket. Raises CannotError where that is not allowed."""
    try:
        pidfd = os.pidfd_open(process.pid)
    except ProcessLookupError as wrong:
        raise CannotError(f"process {process.pid} has ended in this moment") from wrong
    try:
        ours = _libc.syscall(_PIDFD_GETFD, pidfd, fd, 0)
    finally:
        os.close(pidfd)
    if ours < 0:
        number = ctypes.get_errno()
        if number == errno.EPERM:
            raise CannotError(
                f"the kernel does not let this user at the sockets of process {process.pid}",
                hint="as root, or with sysctl kernel.yama.ptrace_scope=0",
            )
        raise CannotError(f"a socket of process {process.pid} cannot be had: {os.strerror(number)}")
    return socket.socket(fileno=ours)


def _reset(handle: socket.socket) -> None:
    """`connect` to nobody: the kernel sends a reset, and the owner reads that it is not connected."""
    nobody = ctypes.create_string_buffer(struct.pack("H14x", socket.AF_UNSPEC))
    _libc.connect(handle.fileno(), nobody, 16)
