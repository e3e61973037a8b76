"""The run folder as a lead writes it: events as they come, the plan of each generation, the report at the end."""

from __future__ import annotations

import json
from pathlib import Path

from phalanx.events import Record
from phalanx.plan.plan import Plan
from phalanx.plan.wire import VERSION, to_wire
from phalanx.records.folder import RunFolder
from phalanx.records.report import build_report
from phalanx.records.writer import EventLog, write_atomic
from phalanx.states import RunState


class Keeper:
    """Implements `lead.Records` on a disk."""

    def __init__(self, folder: Path) -> None:
        """Takes the lock of `events.jsonl`; raises PlaceError where another lead holds it."""
        self._folder = RunFolder(folder)
        self._log = EventLog(self._folder.events)

    def append(self, record: Record) -> None:
        """One line; a full disk delays it and loses nothing that memory can hold."""
        self._log.append(record)

    def write_plan(self, plan: Plan) -> None:
        """`plan.json`, whole or not at all."""
        text = json.dumps({"version": VERSION, **to_wire(plan)}, indent=1)
        write_atomic(self._folder.plan, text + "\n")

    def write_report(self, state: RunState, plan: Plan | None) -> None:
        """`report.json`, whole or not at all."""
        report = build_report(state, plan, self._folder)
        write_atomic(self._folder.report, json.dumps(report.to_json(), indent=1) + "\n")
