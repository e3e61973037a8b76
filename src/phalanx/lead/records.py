"""Where a lead writes: the run folder in life, a list in tests."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from phalanx.events import Record
from phalanx.plan.plan import Plan
from phalanx.protocol.messages import Poll, Report
from phalanx.sample import LinkSample, LoadSample
from phalanx.states import RunState


class Records(Protocol):
    """What a lead has to keep. No call waits for a disk but `settle`, and that not for long."""

    def append(self, record: Record) -> None:
        """Keep one event. Must not raise for a full disk. Raises DeposedError where another lead writes now."""

    def write_plan(self, plan: Plan) -> None:
        """Keep the plan of the newest generation."""

    def write_report(self, state: RunState, plan: Plan | None) -> None:
        """Keep the report of a run that has ended."""

    def measured(self, message: Poll | Report, now: float) -> None:
        """Keep the samples that an agent has sent with this; `now` is the lead's clock. Those may get lost."""

    def seen(self, samples: Iterable[LinkSample | LoadSample]) -> None:
        """Keep what was seen of the tasks from outside. Those may get lost."""

    async def settle(self) -> None:
        """Until what was kept so far is written, or need not be waited for. Raises DeposedError as `append` does."""

    @property
    def size(self) -> int:
        """Bytes of events that are written."""
        ...

    async def text(self, after: int, most: int) -> tuple[bytes, int]:
        """The events after so many bytes, in whole lines, about `most` bytes of them; and how many bytes are left."""

    def plan_after(self, generation: int) -> tuple[str, int]:
        """The text of the newest plan and its generation, where that is a later one; else nothing, and 0."""
