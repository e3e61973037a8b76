"""When a verdict about slowness is told, and when it is taken back: neither at the first look. Pure."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

from phalanx.decide.slowness import About, Cause, Verdict
from phalanx.slowevents import SlowEnded, SlowEvent, SlowFound

#: Looks in a row that must agree before something is told, and before it is taken back: a look in which everybody saves
#: or validates is one.
IN_A_ROW = 2


@dataclasses.dataclass(frozen=True, slots=True)
class Streaks:
    """How many looks in a row have seen what is not told yet, and have missed what is."""

    counts: Mapping[About, int] = dataclasses.field(default_factory=dict)


def about(event: SlowEvent) -> About:
    """What an event is about, as a verdict says it."""
    return Cause(event.cause), event.task, event.peer, event.host


def settle(
    streaks: Streaks, found: Sequence[Verdict], holding: Sequence[SlowFound], *, generation: int, now: float
) -> tuple[Streaks, tuple[SlowEvent, ...]]:
    """What one more look adds: `found` now, while `holding` stand in the records."""
    told = {about(one) for one in holding}
    seen = {one.about: one for one in found}
    counts = {key: streaks.counts.get(key, 0) + 1 for key in (seen.keys() ^ told)}
    due = [key for key, count in counts.items() if count >= IN_A_ROW]
    events: list[SlowEvent] = [
        _begins(verdict, generation, now) for key, verdict in seen.items() if key in due and key not in told
    ]
    events += [_ends(one, now) for one in holding if about(one) in due]
    return Streaks({key: count for key, count in counts.items() if key not in due}), tuple(events)


def _begins(one: Verdict, generation: int, now: float) -> SlowFound:
    return SlowFound(
        time=now,
        generation=generation,
        cause=one.cause.value,
        task=one.task,
        peer=one.peer,
        host=one.host,
        factor=one.factor,
        says=one.says,
        advice=one.advice,
    )


def _ends(one: SlowFound, now: float) -> SlowEnded:
    return SlowEnded(time=now, generation=one.generation, cause=one.cause, task=one.task, peer=one.peer, host=one.host)
