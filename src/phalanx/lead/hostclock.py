"""What an agent says happened at its own time, told in the lead's."""

from __future__ import annotations

import dataclasses

from phalanx.events import Event

#: Seconds by which two clocks may seem to differ only because a message was long under way.
_UNDER_WAY = 60.0


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
