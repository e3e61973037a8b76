"""The kinds of faults: what each does, to whom, and how a run has to take it. A table, a row a kind."""

from __future__ import annotations

import dataclasses
import enum


class Aim(enum.Enum):
    """Whom a fault is done to, and how that is written."""

    TASK = "TYPE:INDEX, such as worker:1"
    HOST = "the number of its host"
    LEAD = "nothing: there is one"
    LAUNCHER = "nothing: there is one launcher"
    PAIR = "two tasks, such as worker:0-worker:1"
    OURS = "agent:N, lead, or nothing for all of them"
    SIZE = "nothing: =N says how many workers"


class Takes(enum.Enum):
    """How a run has to take a fault."""

    #: The target is named as the first failure; then a restart, or the end where no budget is left.
    BLAMES = "it is the culprit; restart, or the end"
    #: Nobody notices, nothing restarts.
    UNHARMED = "training goes on"
    #: Another lead takes over, and training does not notice.
    TAKEN_OVER = "another lead takes over"
    #: An attached run ends as stopped; a detached one goes on.
    LAUNCHER = "an attached run stops, a detached one goes on"
    #: The group stops where all can save and starts again in that size; nobody is blamed.
    RESIZED = "the group starts again in that size"
    #: It passes unnoticed, or one of the two is the culprit.
    EITHER = "it passes, or one of the two is the culprit"


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Kind:
    """One row. `value` says what `=VALUE` means, `usual` is its default; None: the fault is never lifted."""

    name: str
    summary: str
    aim: Aim
    takes: Takes
    value: str = ""
    usual: float | None = None
    #: Whether it needs what only a run that `phalanx chaos` started has in it.
    prepared: bool = False
    #: Whether `usual` is an amount instead of the seconds that it lasts.
    amount: bool = False
    #: Seconds after its end within which what it does may still show.
    shows: float = 0.0
    #: How reports say it, where its name alone would be no sentence.
    says: str = ""

    def lasts(self, value: float | None) -> float | None:
        """Seconds until it is lifted; None: never."""
        if self.amount or not self.value:
            return 0.0 if self.amount else None
        return self.usual if value is None else value

    def may_pass(self, value: float | None) -> bool:
        """Whether a run may take it without a word."""
        brief = self.aim is Aim.TASK and self.lasts(value) is not None
        return self.takes in (Takes.UNHARMED, Takes.EITHER, Takes.LAUNCHER) or brief


_LASTS = "seconds that it lasts"

KINDS: dict[str, Kind] = {
    kind.name: kind
    for kind in (
        Kind(name="kill", summary="SIGKILL to a task", aim=Aim.TASK, takes=Takes.BLAMES),
        Kind(name="stop", summary="SIGSTOP to a task", aim=Aim.TASK, takes=Takes.BLAMES, value=_LASTS),
        Kind(
            name="stall",
            summary="a task lives on and does nothing: its main thread sleeps, its others go on",
            aim=Aim.TASK,
            takes=Takes.BLAMES,
            value=_LASTS,
            prepared=True,
        ),
        Kind(
            name="refuse",
            summary="connections between two tasks are reset, new ones refused",
            aim=Aim.PAIR,
            takes=Takes.EITHER,
            shows=15.0,  # TensorFlow has noticed a connection that it seldom uses after 5 to 9 s
        ),
        Kind(
            name="half-open",
            summary="what two tasks send each other is lost without a word",
            aim=Aim.PAIR,
            takes=Takes.EITHER,
            value=_LASTS,
            usual=3.0,
            shows=10.0,  # the kernel tries again ever more seldom
        ),
        Kind(
            name="slow",
            summary="two tasks send each other at most 256 KiB a second",
            aim=Aim.PAIR,
            takes=Takes.EITHER,
            value=_LASTS,
            usual=3.0,
            shows=5.0,  # what has piled up is still on its way
        ),
        Kind(
            name="clock",
            summary="the wall clock of agents and lead jumps",
            aim=Aim.OURS,
            takes=Takes.UNHARMED,
            says="move the clock",
            value="by how much: 1h, -1h",
            usual=3600.0,
            prepared=True,
            amount=True,
        ),
        Kind(
            name="disk",
            summary="agents and lead can write nothing, as on a full disk",
            aim=Aim.OURS,
            takes=Takes.UNHARMED,
            says="fill the disk",
            value=_LASTS,
            usual=2.0,
        ),
        Kind(
            name="agent",
            summary="SIGKILL to the agent of a host",
            aim=Aim.HOST,
            takes=Takes.BLAMES,
            says="kill",
            value="seconds until another agent joins in its place, if the loss is known by then; without: none does",
        ),
        Kind(
            name="lead",
            summary="SIGKILL to the lead",
            aim=Aim.LEAD,
            takes=Takes.TAKEN_OVER,
            says="kill the lead",
        ),
        Kind(
            name="launcher",
            summary="SIGKILL to the launcher",
            aim=Aim.LAUNCHER,
            takes=Takes.LAUNCHER,
            says="kill the launcher",
        ),
        Kind(
            name="scale",
            summary="`phalanx scale` to another number of workers",
            aim=Aim.SIZE,
            takes=Takes.RESIZED,
            value="how many workers",
            amount=True,
        ),
    )
}
