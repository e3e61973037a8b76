"""Where a lead writes: the run folder in life, a list in tests."""

from __future__ import annotations

from typing import Protocol

from phalanx.events import Record
from phalanx.plan.plan import Plan
from phalanx.states import RunState


class Records(Protocol):
    """What a lead has to keep. No call waits for a disk but `settle`, and that not for long."""

    def append(self, record: Record) -> None:
        """Keep one event. Must not raise for a full disk. Raises DeposedError where another lead writes now."""

    def write_plan(self, plan: Plan) -> None:
        """Keep the plan of the newest generation."""

    def write_report(self, state: RunState, plan: Plan | None) -> None:
        """Keep the report of a run that has ended."""

    async def settle(self) -> None:
        """Until what was kept so far is written, or need not be waited for. Raises DeposedError as `append` does."""
