"""What happens to hosts, from the first word of an agent to its last. Read as part of `events`."""

from __future__ import annotations

import dataclasses

from phalanx.event import Event
from phalanx.plan.checklist import Fact, Fault
from phalanx.plan.outputs import Output


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class HostJoined(Event):
    """An agent has told who it is."""

    host: int
    name: str
    address: str
    cpus: int
    gpus: int
    memory: int
    agent_pid: int
    #: Which agent process it is: a lead that takes over knows it again by that.
    instance: str = ""
    #: The only role whose tasks it takes; empty: any.
    role: str = ""


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class HostLost(Event):
    """An agent has not been heard for longer than its lease, or has said that it cannot go on."""

    host: int
    reason: str
    #: Whose failure that is, where the place says more than that it is gone, and what to do then.
    kind: str = ""
    hint: str = ""


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class HostWithdrawn(Event):
    """Somebody takes the host away: the group stops where all can, and goes on without it."""

    host: int
    by: str


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class HostLeft(Event):
    """An agent has ended its tasks and gone, as it was told to."""

    host: int


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class StandbysReady(Event):
    """How many interpreters a host now keeps ready for the next generation, and the memory that only they use."""

    host: int
    count: int
    bytes: int


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class HostChecked(Event):
    """A host has looked at what it was asked to before step one, in `seconds`."""

    host: int
    generation: int
    seconds: float
    #: The checks it has made, by id; the others did not apply.
    looked: tuple[str, ...] = ()
    facts: tuple[Fact, ...] = ()
    faults: tuple[Fault, ...] = ()


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class PreflightPassed(Event):
    """Every host has looked, and nothing fatal was found: the tasks may start."""

    generation: int
    #: How many different checks were made, and for how many a warning was noted.
    checks: int
    warnings: int = 0
    #: From the orders to the last answer.
    seconds: float = 0.0


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class OutputsAsked(Event):
    """The run is about to end: the host where its leader ran is to look for what it should leave behind."""

    host: int
    patterns: tuple[str, ...]


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class OutputsFound(Event):
    """What a host has found of it, in the order it was asked for."""

    host: int
    outputs: tuple[Output, ...]
