"""One host of a run, as its events tell it."""

from __future__ import annotations

import dataclasses

from phalanx import events as ev


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class HostState:
    """One host: joined, and later left or lost."""

    id: int
    joined: ev.HostJoined
    lost: str = ""
    #: When it, or the agent that was here before it, was last lost, and why.
    lost_at: float | None = None
    lost_why: str = ""
    left: bool = False
    #: Somebody is taking it away.
    leaving: bool = False
    #: Standbys for the next generation, and the bytes that only they use.
    standbys: int = 0
    standby_bytes: int = 0

    @property
    def living(self) -> bool:
        """Whether its agent is still expected to answer."""
        return not self.lost and not self.left
