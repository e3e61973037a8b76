"""Bytes on the connections between tasks, as the kernel counts them: netlink's sock_diag, no `ss` and no privilege."""

from __future__ import annotations

import dataclasses
import errno
import os
import socket
import struct
from collections.abc import Iterator, Sequence

_SOCK_DIAG = 4  # NETLINK_SOCK_DIAG
_BY_FAMILY = 20  # SOCK_DIAG_BY_FAMILY
_REQUEST, _DUMP = 0x1, 0x300
_ERROR, _DONE = 2, 3
_ESTABLISHED = 1 << 1
_INFO = 2  # INET_DIAG_INFO: ask for struct tcp_info
_BYTECODE = 1  # INET_DIAG_REQ_BYTECODE
#: Conditions of the kernel's filter: source and destination port, at least and at most; and a jump.
_JUMP, _S_GE, _S_LE, _D_GE, _D_LE = 1, 2, 3, 4, 5

_HEADER = struct.Struct("=IHHII")
_QUESTION = struct.Struct("=BBBBI HH 4s12s 4s12s III".replace(" ", ""))
_ANSWER = struct.Struct("=BBBB2s2s16s16sIIIIIIII")
_ATTRIBUTE = struct.Struct("=HH")
#: Where tcpi_bytes_acked and tcpi_bytes_received are in struct tcp_info (include/uapi/linux/tcp.h; since 4.1), and what
#: came later (4.10): microseconds in which something was under way, and those of them in which the other side had no
#: room for it.
_COUNTS = struct.Struct("=QQ")
_COUNTS_AT = 120
_ROUND_TRIP = struct.Struct("=I")
_ROUND_TRIP_AT = 68
_TIMES = struct.Struct("=QQ")
_TIMES_AT = 168
_MICRO = 1e-6
_V4_IN_V6 = bytes(10) + b"\xff\xff"


@dataclasses.dataclass(frozen=True, slots=True)
class Connection:
    """One end of an established connection, and the bytes that have passed it since it was made."""

    inode: int
    local: int
    remote: int
    #: Acknowledged by the other side, and come from it.
    sent: int
    received: int
    #: The other end's address; an IPv4 address inside IPv6 as IPv4.
    address: str = ""
    #: Seconds, the smoothed round trip.
    rtt: float = 0.0
    #: Seconds in which something was under way from here, while the other side had room; None: an older kernel.
    busy: float | None = None


class PeerTable:
    """Asks the kernel for connections. One socket for all questions; `close` it at the end."""

    def __init__(self) -> None:
        """Raises OSError where there is no sock_diag (a sandboxed kernel)."""
        self._socket = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, _SOCK_DIAG)
        self._socket.settimeout(1.0)
        self._number = 0

    def connections(self, ports: Sequence[int]) -> list[Connection]:
        """Those of this network namespace with either end between the lowest and the highest of `ports`.

        Raises OSError where the kernel does not answer.
        """
        if not ports:
            return []
        found = []
        for family in (socket.AF_INET, socket.AF_INET6):  # gRPC listens on IPv6 sockets for both
            self._number += 1
            self._socket.send(_question(family, self._number, min(ports), max(ports)))
            found += [made for data in self._answers() if (made := _connection(data)) is not None]
        return found

    def close(self) -> None:
        """No more questions."""
        self._socket.close()

    def _answers(self) -> Iterator[bytes]:
        while True:
            data = self._socket.recv(1 << 18)
            while len(data) >= _HEADER.size:
                length, kind, _, number, _ = _HEADER.unpack_from(data)
                body, data = data[_HEADER.size : length], data[(length + 3) & ~3 :]
                if number != self._number:
                    continue  # of a question that was given up
                if kind == _DONE:
                    return
                if kind == _ERROR:
                    code = -struct.unpack_from("=i", body)[0]
                    if code == errno.ENOENT:
                        return  # no such family in this kernel
                    raise OSError(code, os.strerror(code))
                yield body


def _question(family: int, number: int, low: int, high: int) -> bytes:
    asked = _QUESTION.pack(
        family, socket.IPPROTO_TCP, 1 << (_INFO - 1), 0, _ESTABLISHED, 0, 0, b"", b"", b"", b"", 0, 2**32 - 1, 2**32 - 1
    )
    test = _either_port_between(low, high)
    body = asked + _ATTRIBUTE.pack(_ATTRIBUTE.size + len(test), _BYTECODE) + test
    return _HEADER.pack(_HEADER.size + len(body), _BY_FAMILY, _REQUEST | _DUMP, number, 0) + body


def _either_port_between(low: int, high: int) -> bytes:
    """The kernel's bytecode: each test says how far to go on when it holds, and when not; past the end is a no."""
    rows = (
        (_S_GE, 8, 20, low),
        (_S_LE, 8, 12, high),
        (_JUMP, 4, 20, None),  # yes: to the end
        (_D_GE, 8, 20, low),
        (_D_LE, 8, 12, high),
    )
    code = b""
    for test, yes, no, port in rows:
        code += struct.pack("=BBH", test, yes, no)
        code += struct.pack("=BBH", 0, 0, port) if port is not None else b""
    return code


def _connection(data: bytes) -> Connection | None:
    head = _ANSWER.unpack_from(data)
    local, remote, inode = int.from_bytes(head[4], "big"), int.from_bytes(head[5], "big"), head[-1]
    at = _ANSWER.size
    while at + _ATTRIBUTE.size <= len(data):
        length, kind = _ATTRIBUTE.unpack_from(data, at)
        if kind == _INFO and length >= _ATTRIBUTE.size + _COUNTS_AT + _COUNTS.size:
            info = data[at + _ATTRIBUTE.size : at + length]
            sent, received = _COUNTS.unpack_from(info, _COUNTS_AT)
            rtt = _ROUND_TRIP.unpack_from(info, _ROUND_TRIP_AT)[0] * _MICRO
            return Connection(inode, local, remote, sent, received, _address(head[0], head[7]), rtt, _busy(info))
        at += max((length + 3) & ~3, _ATTRIBUTE.size)
    return None


def _busy(info: bytes) -> float | None:
    if len(info) < _TIMES_AT + _TIMES.size:
        return None
    busy, no_room = _TIMES.unpack_from(info, _TIMES_AT)
    return float(max(busy - no_room, 0) * _MICRO)


def _address(family: int, raw: bytes) -> str:
    if family == socket.AF_INET:
        return socket.inet_ntop(socket.AF_INET, raw[:4])
    if raw.startswith(_V4_IN_V6):
        return socket.inet_ntop(socket.AF_INET, raw[12:])
    return socket.inet_ntop(socket.AF_INET6, raw)
