"""The run folder as a lead writes it: events as they come, the plan of each generation, the report at the end.

Nothing here raises for a full disk: the run goes on, and what could not be written is tried again.
"""

from __future__ import annotations

import dataclasses
import json
import sys
import time
from pathlib import Path

from phalanx.errors import PlaceError
from phalanx.events import Record
from phalanx.plan.plan import Plan
from phalanx.plan.wire import VERSION, to_wire
from phalanx.records.folder import RunFolder
from phalanx.records.past import Past, read_past
from phalanx.records.report import build_report
from phalanx.records.writer import EventLog, write_atomic
from phalanx.states import RunState

#: Seconds for which a lead that has ended still tries to write what the disk refuses.
PATIENCE = 5.0


class Keeper:
    """Implements `lead.Records` on a disk."""

    def __init__(self, folder: Path) -> None:
        """Takes the lock of `events.jsonl`; raises PlaceError where another lead holds it."""
        self._folder = RunFolder(folder)
        self._log = EventLog(self._folder.events)
        self._late: dict[Path, str] = {}  # texts that the disk has not taken yet

    def past(self) -> Past:
        """What earlier leads have left here. Read under the lock, so that nobody adds to it meanwhile."""
        return dataclasses.replace(read_past(self._folder), dropped=self._log.dropped)

    def append(self, record: Record) -> None:
        """One line; a full disk delays it and loses nothing that memory can hold."""
        self._log.append(record)

    def write_plan(self, plan: Plan) -> None:
        """`plan.json`, whole or not at all."""
        self._put(self._folder.plan, json.dumps({"version": VERSION, **to_wire(plan)}, indent=1) + "\n")

    def write_report(self, state: RunState, plan: Plan | None) -> None:
        """`report.json`, whole or not at all."""
        report = build_report(state, plan, self._folder)
        self._put(self._folder.report, json.dumps(report.to_json(), indent=1) + "\n")

    def flush(self) -> bool:
        """Try again what the disk refused. True where nothing waits any more."""
        for path, text in list(self._late.items()):
            self._put(path, text)
        return self._log.flush() and not self._late

    def close(self) -> None:
        """Try for some seconds what still waits, and give the lock back."""
        until = time.monotonic() + PATIENCE
        while not self.flush() and time.monotonic() < until:
            time.sleep(0.2)
        for path in self._late:
            sys.stderr.write(f"{path} could not be written: the disk is full or gone\n")
        self._log.close()

    def _put(self, path: Path, text: str) -> None:
        try:
            write_atomic(path, text)
        except PlaceError:
            self._late[path] = text
        else:
            self._late.pop(path, None)
        if not path.parent.is_dir():  # somebody took the folder away: nothing is waited for
            self._late.pop(path, None)
