"""How far the tasks are at this moment, for a person who asks: nothing of it is recorded, and nobody waits long."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Collection
from typing import Any

from phalanx.lead.mailbox import Mailbox
from phalanx.plan.wire import to_wire

#: What an agent has said within so many seconds is new enough, and so many agents a second are asked at most: where
#: many people ask, or one asks again and again, each agent comes once in that time.
FRESH, RATE = 1.0, 200
#: Seconds for which the agents are waited for.
_PATIENCE = 1.0


async def steps_now(boxes: Collection[Mailbox], clock: Callable[[], float]) -> list[dict[str, Any]]:
    """The newest sample of each task that runs and counts its steps, as it travels, and its `age` in seconds.

    An agent's open poll is answered early, so that it asks again and says how far its tasks are: one request, which
    would have come within seconds anyway. One that does not come in time is told of as it was.
    """
    began = clock()
    fresh = max(FRESH, len(boxes) / RATE)
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(_PATIENCE):
            await asyncio.gather(*(box.nudge() for box in boxes if began - box.asked >= fresh))
    now = clock()
    return [{**to_wire(one), "age": round(max(0.0, now - box.asked), 3)} for box in boxes for one in box.samples]
