"""A lead whose own host is taken away names its successor, so that nobody waits for a silence to last."""

from __future__ import annotations

from phalanx.lead.roll import Roll
from phalanx.protocol.signing import ResignedError
from phalanx.states import RunState


class Handover:
    """Asked after each step, and by each answer."""

    def __init__(self, own: str) -> None:
        """`own`: the `host:port` by which agents know this lead; empty where it stays whatever comes."""
        #: See above.
        self.own = own
        self._heir = ""

    def due(self, roll: Roll, state: RunState) -> str | None:
        """Where the next lead would answer, once this one's host has been let go; None while that stays, empty where
        nobody could follow.
        """
        if not self.own or state.phase.terminal:
            return None
        host = next((host for host, box in roll.boxes.items() if box.join.lead == self.own), None)
        if host is None or not state.hosts[host].left:
            return None
        stay = [box.join.lead for other, box in sorted(roll.living(state).items()) if not state.hosts[other].leaving]
        return next((address for address in roll.line(state) if address in stay), "")

    def to(self, heir: str) -> None:
        """From now on whoever asks is sent there."""
        self._heir = heir

    def check(self) -> None:
        """Raises ResignedError once this lead has handed over."""
        if self._heir:
            raise ResignedError(self._heir)
