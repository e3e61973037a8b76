"""What makes a training slow, from the moment it is seen until it is over. Read as part of `events`."""

from __future__ import annotations

import dataclasses

from phalanx.event import Event
from phalanx.names import TaskId


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class SlowEvent(Event):
    """What it is about: `decide.slowness.Verdict` says what the fields mean."""

    generation: int
    #: task, host, link, host-links, network, crowd, input or server.
    cause: str
    task: TaskId | None = None
    peer: TaskId | None = None
    host: int | None = None

    @property
    def about(self) -> tuple[str, TaskId | None, TaskId | None, int | None]:
        """What the beginning and the end of one slowness have in common."""
        return self.cause, self.task, self.peer, self.host


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class SlowFound(SlowEvent):
    """Somebody or something holds the training up, and goes on to."""

    factor: float
    says: str
    advice: str = ""


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class SlowEnded(SlowEvent):
    """It does not any more."""


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Slowness:
    """One that was found, and when it ended; None: it has not, within its generation."""

    found: SlowFound
    ended: float | None = None


def after(slow: tuple[Slowness, ...], event: SlowEvent) -> tuple[Slowness, ...]:
    """All of a run after one more event."""
    if isinstance(event, SlowFound):
        return (*slow, Slowness(found=event))
    return tuple(
        dataclasses.replace(one, ended=event.time)
        if one.ended is None and one.found.about == event.about and one.found.generation == event.generation
        else one
        for one in slow
    )


def holding(slow: tuple[Slowness, ...], generation: int) -> tuple[SlowFound, ...]:
    """Those that hold a generation up now."""
    return tuple(one.found for one in slow if one.ended is None and one.found.generation == generation)
