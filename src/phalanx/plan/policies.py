"""How patient and how forgiving a job is. Every duration is in seconds."""

from __future__ import annotations

import dataclasses


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Health:
    """Deadlines of our own, since TensorFlow's are an hour or none (facts: MWMS() waits 1 h for a peer)."""

    #: From the start of a generation until every host has joined and every task listens.
    start: float = 300.0
    #: Without a sign of any kind a task is stuck; 0 never. None: 2 minutes for a task that has come to listen or to
    #: step, and never for a program that may sleep for as long as it likes.
    silence: float | None = None
    #: Without a step while its peers wait, a task hangs: this, or ten times the longest gap before; 0 never.
    hang: float = 600.0
    #: What TensorFlow's own heartbeats may miss before it gives a peer up (MWMS only); 0 leaves its ten seconds.
    heartbeat: float = 5.0
    #: After the first exit 0 of a group, how long the others may go on.
    finish: float = 600.0
    #: After success, how long an evaluator may score the last checkpoint (R81).
    evaluator: float = 60.0


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Grace:
    """Stop is TERM, grace, KILL: how long the grace is."""

    #: A stop that somebody asked for: time to save.
    stop: float = 10.0
    #: After a first failure the others are victims already: MWMS cannot go on, and ignores TERM (facts §5).
    failure: float = 0.5


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Restart:
    """How often a failed group is started again, by kind of failure; 0: the first failure ends the run."""

    max: int = 3
    within: float = 3600.0
    #: Standbys on a host for the next generation; None: one a task, or none where nothing is restarted.
    standbys: int | None = None

    @property
    def standby_limit(self) -> int | None:
        """At most so many on a host; None: as many as it has tasks that can stand by."""
        return 0 if self.standbys is None and not self.max else self.standbys


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Resize:
    """When an elastic job takes up a host that has come."""

    #: Seconds that a generation runs before it makes room for more: each change costs a stop and a start.
    cooldown: float = 60.0


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Preflight:
    """What is looked at before TensorFlow starts."""

    on: bool = True
    #: Checks, by id, that stop nothing and say nothing.
    ignore: tuple[str, ...] = ()
    #: The run ends once the checks are over: `phalanx preflight`.
    only: bool = False


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Policies:
    """Everything a job says about time and failure."""

    health: Health = dataclasses.field(default_factory=Health)
    grace: Grace = dataclasses.field(default_factory=Grace)
    restart: Restart = dataclasses.field(default_factory=Restart)
    resize: Resize = dataclasses.field(default_factory=Resize)
    preflight: Preflight = dataclasses.field(default_factory=Preflight)
