"""What is said before step one: what each host has found, and that the way is clear. Read as part of `events`."""

from __future__ import annotations

import dataclasses

from phalanx.event import Event
from phalanx.plan.checklist import Fact, Fault


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
