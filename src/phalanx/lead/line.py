"""The line: the lowest living hosts that may lead, should this lead fall silent."""

from __future__ import annotations

from collections.abc import Mapping

from phalanx.decide.quorum import LINE
from phalanx.hoststate import HostState
from phalanx.lead.mailbox import Mailbox


class Line:
    """Asked at each join, of thousands: it looks at all hosts again only where one of the line itself is gone."""

    def __init__(self) -> None:
        """Nobody yet."""
        self._places: dict[int, str] = {}  # by host, in their order

    def joins(self, host: int, place: str) -> None:
        """A host has come, and would lead at this address; at an empty one it never would."""
        if place:
            self._places = dict(sorted({**self._places, host: place}.items())[:LINE])

    def places(self, boxes: Mapping[int, Mailbox], hosts: Mapping[int, HostState]) -> tuple[str, ...]:
        """Their addresses, lowest host first."""
        if not all(hosts[host].living for host in self._places):
            living = [host for host in sorted(boxes) if hosts[host].living and boxes[host].join.lead]
            self._places = {host: boxes[host].join.lead for host in living[:LINE]}
        return tuple(self._places.values())
