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
    lost_kind: str = ""
    lost_hint: str = ""
    left: bool = False
    #: Somebody is taking it away.
    leaving: bool = False
    #: Standbys for the next generation, and the bytes that only they use.
    standbys: int = 0
    standby_bytes: int = 0

    def followed_by(self, joined: ev.HostJoined) -> HostState:
        """The same host with another agent. What the one before has left behind is still to be judged."""
        return HostState(
            id=self.id,
            joined=joined,
            lost_at=self.lost_at,
            lost_why=self.lost_why,
            lost_kind=self.lost_kind,
            lost_hint=self.lost_hint,
        )

    @property
    def living(self) -> bool:
        """Whether its agent is still expected to answer."""
        return not self.lost and not self.left
