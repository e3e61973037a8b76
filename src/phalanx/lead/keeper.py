"""The run folder as a lead writes it: events as they come, the plan of each generation, the report at the end.

Nothing here raises for a full disk, or waits for a slow one: the run goes on, and what could not be written is tried
again.
"""

from __future__ import annotations

import dataclasses
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from phalanx.errors import PlaceError
from phalanx.events import Record
from phalanx.plan.plan import Plan
from phalanx.plan.wire import VERSION, to_wire
from phalanx.records.folder import RunFolder
from phalanx.records.past import Past, read_past
from phalanx.records.report import build_report
from phalanx.records.scribe import Scribe
from phalanx.records.writer import EventLog, write_atomic
from phalanx.states import RunState

#: Seconds without any progress for which a lead that has ended still tries to write what is left.
PATIENCE = 10.0


class Keeper:
    """Implements `lead.Records` on a disk."""

    def __init__(self, folder: Path) -> None:
        """Takes the lock of `events.jsonl`; raises PlaceError where another lead holds it."""
        self._folder = RunFolder(folder)
        self._log = EventLog(self._folder.events)
        self._scribe: Scribe | None = None  # begins with the first word
        self._newest: dict[Path, object] = {}  # by file: whose text it is to hold

    def past(self) -> Past:
        """What earlier leads have left here. Read under the lock, so that nobody adds to it meanwhile."""
        return dataclasses.replace(read_past(self._folder), dropped=self._log.dropped)

    def append(self, record: Record) -> None:
        """One line; a full disk delays it and loses nothing that memory can hold."""
        self._writing.put(record)

    def write_plan(self, plan: Plan) -> None:
        """`plan.json`, whole or not at all."""
        self._put(self._folder.plan, lambda: {"version": VERSION, **to_wire(plan)})

    def write_report(self, state: RunState, plan: Plan | None) -> None:
        """`report.json`, whole or not at all."""
        self._put(self._folder.report, lambda: build_report(state, plan, self._folder).to_json())

    async def settle(self) -> None:
        """Until all of it is written, or the disk is too slow to be waited for."""
        await self._writing.settle()

    def close(self) -> None:
        """Wait while the disk takes something, and give the lock back."""
        if not self._writing.close(PATIENCE):
            sys.stderr.write(f"records of {self._folder.path} could not be written: the disk is full, slow or gone\n")
            return  # the thread still holds the file
        self._log.close()

    @property
    def _writing(self) -> Scribe:
        if self._scribe is None:
            self._scribe = Scribe(self._log)
        return self._scribe

    def _put(self, path: Path, made: Callable[[], dict[str, Any]]) -> None:
        """A text that a newer one replaces is not tried again."""
        mine = self._newest[path] = object()
        text = ""

        def written() -> bool:
            nonlocal text
            if self._newest[path] is not mine:
                return True
            text = text or json.dumps(made(), indent=1) + "\n"
            try:
                write_atomic(path, text)
            except PlaceError:
                return not path.parent.is_dir()  # somebody took the folder away: nothing is waited for
            return True

        self._writing.write(written)
