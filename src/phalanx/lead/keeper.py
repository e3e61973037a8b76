"""The run folder as a lead writes it: events as they come, the plan of each generation, the report at the end.

Nothing here raises for a full disk: the run goes on, and what could not be written is tried again.
"""

from __future__ import annotations

import dataclasses
import json
import os
import sys
import time
from pathlib import Path

from phalanx.errors import PlaceError
from phalanx.events import Record
from phalanx.lead.deposed import DeposedError
from phalanx.plan.plan import Plan
from phalanx.plan.wire import VERSION, to_wire
from phalanx.records.folder import RunFolder
from phalanx.records.leadfile import BEAT, LeadFile, Rule, last_beat, read_rule
from phalanx.records.past import Past, read_past
from phalanx.records.report import build_report
from phalanx.records.writer import EventLog, HeldError, write_atomic
from phalanx.states import RunState

#: Seconds for which a lead that has ended still tries to write what the disk refuses.
PATIENCE = 5.0

#: Seconds for which a lead that holds the records is watched for a sign of life.
WATCH = 3 * BEAT


class Keeper:
    """Implements `lead.Records` on a disk."""

    def __init__(self, folder: Path, *, epoch: int = 1, address: str = "", watch: float = WATCH) -> None:
        """Claims the run's folder for a lead of that epoch, or the next one that is free; `epoch` then says which.

        Raises DeposedError where another lead holds the records and shows within `watch` seconds that it lives. One
        that does not (it is frozen, or its host is gone) is fenced off: it sees `lead.json` before it writes again.
        """
        self._folder = RunFolder(folder)
        self._late: dict[Path, str] = {}  # texts that the disk has not taken yet
        before = read_rule(self._folder)
        self.epoch = max(epoch, before.epoch + 1 if before else 0)
        try:
            self._log = EventLog(self._folder.events)
        except HeldError as held:
            if before is None or self._beats(watch):
                raise DeposedError(f"{self._folder.run} has a lead that lives: {held}") from held
            self._log = EventLog(self._folder.events, alone=False)
        self._claim = LeadFile(self._folder, Rule(epoch=self.epoch, address=address, pid=os.getpid()))

    def _beats(self, seconds: float) -> bool:
        first, until = last_beat(self._folder), time.monotonic() + seconds
        while time.monotonic() < until:
            time.sleep(0.1)
            if last_beat(self._folder) != first:
                return True
        return False

    def holds(self) -> bool:
        """Whether this lead still rules. Touches its file, for those who ask whether it lives."""
        if not self._claim.holds():
            return False
        self._claim.beat()
        return True

    def past(self) -> Past:
        """What earlier leads have left here. Read after the claim, so that nobody adds to it meanwhile."""
        return dataclasses.replace(read_past(self._folder), dropped=self._log.dropped)

    def append(self, record: Record) -> None:
        """One line; a full disk delays it and loses nothing that memory can hold."""
        self._check()
        self._log.append(record)

    def write_plan(self, plan: Plan) -> None:
        """`plan.json`, whole or not at all."""
        self._check()
        self._put(self._folder.plan, json.dumps({"version": VERSION, **to_wire(plan)}, indent=1) + "\n")

    def write_report(self, state: RunState, plan: Plan | None) -> None:
        """`report.json`, whole or not at all."""
        self._check()
        report = build_report(state, plan, self._folder)
        self._put(self._folder.report, json.dumps(report.to_json(), indent=1) + "\n")

    def flush(self) -> bool:
        """Try again what the disk refused. True where nothing waits any more."""
        for path, text in list(self._late.items()):
            self._put(path, text)
        return self._log.flush() and not self._late

    def close(self) -> None:
        """Try for some seconds what still waits, and give the lock back. A lead that was deposed writes nothing."""
        if not self._claim.holds():
            self._log.abandon()
            self._claim.close()
            return
        until = time.monotonic() + PATIENCE
        while not self.flush() and time.monotonic() < until:
            time.sleep(0.2)
        for path in self._late:
            sys.stderr.write(f"{path} could not be written: the disk is full or gone\n")
        self._log.close()
        self._claim.close()

    def _check(self) -> None:
        if not self._claim.holds():
            raise DeposedError(f"a lead after epoch {self.epoch} writes the records now")

    def _put(self, path: Path, text: str) -> None:
        try:
            write_atomic(path, text)
        except PlaceError:
            self._late[path] = text
        else:
            self._late.pop(path, None)
        if not path.parent.is_dir():  # somebody took the folder away: nothing is waited for
            self._late.pop(path, None)
