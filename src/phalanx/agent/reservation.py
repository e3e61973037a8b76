"""Cores that no other run of this machine pins to: each is held by a name that the kernel gives to one process only.

An abstract socket's name is the machine's (its network namespace's), needs no file and no folder, is anybody's to
take, and is free again in the moment in which its process is gone, however that ended.
"""

from __future__ import annotations

import socket
from collections.abc import Iterable

_NAME = "\0phalanx.cpu.{}"


class Reservation:
    """The cores of one agent. Whoever finds one taken does not pin to it; nothing else follows from it."""

    def __init__(self, name: str = _NAME) -> None:
        """Nothing is held yet. Another `name` is for tests."""
        self._name = name
        self._held: dict[int, socket.socket] = {}

    def take(self, cpus: Iterable[int]) -> frozenset[int]:
        """Hold these; returns those that are held by now. Taking one again changes nothing."""
        wanted = frozenset(cpus)
        for cpu in wanted - self._held.keys():
            holder = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
            try:
                holder.bind(self._name.format(cpu))
            except OSError:
                holder.close()
            else:
                self._held[cpu] = holder
        return wanted & self._held.keys()

    def keep(self, cpus: Iterable[int]) -> None:
        """Let go of all others: another run may have them."""
        for cpu in self._held.keys() - frozenset(cpus):
            self._held.pop(cpu).close()
