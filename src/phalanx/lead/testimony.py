"""What agents say: each word once, in their order, by the lead's clock, and nothing that is not theirs to say."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

from phalanx import events as ev
from phalanx.events import Event
from phalanx.plan.wire import WireError
from phalanx.protocol.messages import Poll, Report
from phalanx.sample import TaskSample

#: What an agent may put into the records; everything else is the lead's to say.
_FROM_AGENTS = (
    ev.TaskEvent,
    ev.HostChecked,
    ev.Noted,
    ev.StopRequested,
    ev.HostLost,
    ev.HostWithdrawn,
    ev.StandbysReady,
    ev.OutputsFound,
)

#: Seconds by which two clocks may seem to differ only because a message was long under way.
_UNDER_WAY = 60.0


def words_of(message: Report, *, taken: int, now: float) -> Iterator[tuple[int, Event]]:
    """The events of a report with their numbers, those up to `taken` left out. Raises WireError at one that is none."""
    for number, data in enumerate(message.events, start=message.first):
        if number <= taken:
            continue
        event = on_our_clock(ev.event_from_json(data), message.now, now)
        if not isinstance(event, _FROM_AGENTS) or getattr(event, "host", message.host) not in (message.host, None):
            raise WireError(f"host {message.host} may not say {type(event).__name__}")
        yield number, event


def on_our_clock(event: Event, sent: float | None, now: float) -> Event:
    """The event with its times by the lead's clock; `sent` is what the agent's clock said when it told us.

    A host's clock that is wrong, or set in mid-run, would else make tasks that ran for minutes run for hours or for
    less than nothing. Differences that a slow message explains are left.
    """
    if sent is None or abs(now - sent) <= _UNDER_WAY:
        return event
    times = {
        field.name: getattr(event, field.name) + now - sent
        for field in dataclasses.fields(event)
        if field.name in ("time", "since")
    }
    return dataclasses.replace(event, **times)


def by_our_clock(message: Poll | Report, now: float) -> list[TaskSample]:
    """The samples that came with it, by the lead's clock, as `on_our_clock` has it."""
    sent = message.now if isinstance(message, Report) else max((one.at for one in message.samples), default=None)
    if sent is None or abs(now - sent) <= _UNDER_WAY:
        return list(message.samples)
    return [dataclasses.replace(one, at=one.at + now - sent) for one in message.samples]
