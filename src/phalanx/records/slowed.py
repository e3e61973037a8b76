"""What has made a training slow, as its report tells it."""

from __future__ import annotations

import dataclasses

from phalanx.states import RunState


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class SlowReport:
    """Something that made the training slow. See `decide.slowness.Verdict`."""

    cause: str
    task: str | None
    peer: str | None
    host: str | None
    generation: int
    factor: float
    says: str
    advice: str
    found: float
    #: None where it went on to the end of its generation, or goes on.
    ended: float | None


def slowed(state: RunState) -> tuple[SlowReport, ...]:
    """All that was found, oldest first."""
    names = {host.id: host.joined.name for host in state.hosts.values()}
    return tuple(
        SlowReport(
            cause=one.found.cause,
            task=str(one.found.task) if one.found.task else None,
            peer=str(one.found.peer) if one.found.peer else None,
            host=names.get(one.found.host, f"host {one.found.host}") if one.found.host is not None else None,
            generation=one.found.generation,
            factor=one.found.factor,
            says=one.found.says,
            advice=one.found.advice,
            found=one.found.time,
            ended=one.ended,
        )
        for one in state.slow
    )
