"""The run folder as a lead writes it: events as they come, the plan of each generation, the report at the end.

Nothing here raises for a full disk, or waits for a slow one: the run goes on, and what could not be written is tried
again. The thread that writes looks at `lead.json` right before each write. Where another lead has claimed the run it
never writes again, and every word after that raises DeposedError.
"""

from __future__ import annotations

import dataclasses
import functools
import json
import os
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from phalanx.apart import apart
from phalanx.errors import PlaceError
from phalanx.events import Record
from phalanx.lead.deposed import DeposedError
from phalanx.lead.testimony import by_our_clock
from phalanx.plan.plan import Plan
from phalanx.plan.wire import VERSION, to_wire
from phalanx.protocol.messages import Poll, Report
from phalanx.records.folder import RunFolder
from phalanx.records.leadfile import BEAT, LeadFile, Rule, last_beat, read_rule
from phalanx.records.past import Past, read_past
from phalanx.records.reader import read_lines
from phalanx.records.report import build_report
from phalanx.records.sampler import Sampler, Sieve
from phalanx.records.scribe import SETTLE, Scribe
from phalanx.records.writer import EventLog, HeldError, write_atomic
from phalanx.sample import LinkSample, LoadSample, TaskSample
from phalanx.states import RunState

#: Seconds without any progress for which a lead that has ended still tries to write what is left.
PATIENCE = 10.0

#: Seconds for which a lead that holds the records is watched for a sign of life.
WATCH = 3 * BEAT


class Keeper:
    """Implements `lead.records.Records` on a disk."""

    def __init__(self, folder: Path, *, epoch: int = 1, address: str = "", watch: float = WATCH) -> None:
        """Claims the run's folder for a lead of that epoch, or the next one that is free; `epoch` then says which.

        Raises DeposedError where another lead holds the records and shows within `watch` seconds that it lives. One
        that does not (it is frozen, or its host is gone) is fenced off: it sees `lead.json` before it writes again.
        """
        self._folder = RunFolder(folder)
        self._scribe: Scribe | None = None  # begins with the first word
        self._newest: dict[Path, object] = {}  # by file: whose text it is to hold
        self._plan: Plan | None = None
        before = read_rule(self._folder)
        self.epoch = max(epoch, before.epoch + 1 if before else 0)
        try:
            self._log = EventLog(self._folder.events)
        except HeldError as held:
            if before is None or self._beats(watch):
                raise DeposedError(f"{self._folder.run} has a lead that lives: {held}") from held
            self._log = EventLog(self._folder.events, alone=False)
        self._claim = LeadFile(self._folder, Rule(epoch=self.epoch, address=address, pid=os.getpid()))
        self._log.fence = self._claim.check
        self._sieves = (Sieve(), Sieve(), Sieve())
        self._samples = Sampler(self._folder.task_samples, TaskSample, fence=self._claim.check)
        self._links = Sampler(self._folder.link_samples, LinkSample, fence=self._claim.check)
        self._loads = Sampler(self._folder.load_samples, LoadSample, fence=self._claim.check)

    def _beats(self, seconds: float) -> bool:
        first, until = last_beat(self._folder), time.monotonic() + seconds
        while time.monotonic() < until:
            time.sleep(0.1)
            if last_beat(self._folder) != first:
                return True
        return False

    def holds(self) -> bool:
        """Whether this lead still rules. Touches its file, for those who ask whether it lives. Waits for the disk."""
        if not self._claim.holds():
            return False
        self._claim.beat()
        return True

    def past(self) -> Past:
        """What earlier leads have left here. Read after the claim, so that nobody adds to it meanwhile."""
        past = read_past(self._folder)
        self._plan = past.plan
        return dataclasses.replace(past, dropped=self._log.dropped)

    @property
    def size(self) -> int:
        """See Records."""
        return self._log.size

    async def text(self, after: int, most: int) -> tuple[bytes, int]:
        """See Records."""
        return await apart(functools.partial(read_lines, self._folder.events, after, most), name="copy")

    def plan_after(self, generation: int) -> tuple[str, int]:
        """See Records."""
        plan = self._plan
        return (_text_of(plan), plan.generation) if plan is not None and plan.generation > generation else ("", 0)

    def append(self, record: Record) -> None:
        """One line; a full disk delays it and loses nothing that memory can hold."""
        self._check()
        self._writing.put(record)

    def write_plan(self, plan: Plan) -> None:
        """`plan.json`, whole or not at all."""
        self._plan = plan
        self._put(self._folder.plan, functools.partial(_text_of, plan))

    def write_report(self, state: RunState, plan: Plan | None) -> None:
        """`report.json`, whole or not at all."""

        def made() -> str:
            self._samples.settle(SETTLE)
            return _json(build_report(state, plan, self._folder).to_json())

        self._put(self._folder.report, made)

    def measured(self, message: Poll | Report, now: float) -> None:
        """See Records."""
        if message.samples and not self._writing.fenced:
            self._samples.put(self._sieves[0].through(by_our_clock(message, now), last=isinstance(message, Report)))

    def seen(self, samples: Iterable[LinkSample | LoadSample]) -> None:
        """See Records."""
        if not self._writing.fenced:
            found = [*samples]
            self._links.put(self._sieves[1].through(one for one in found if isinstance(one, LinkSample)))
            self._loads.put(self._sieves[2].through(one for one in found if isinstance(one, LoadSample)))

    async def settle(self) -> None:
        """Until all of it is written, or the disk is too slow to be waited for."""
        await self._writing.settle()
        self._check()

    def close(self) -> None:
        """Wait while the disk takes something, and give the lock back. A lead that was deposed writes nothing."""
        for sampler in (self._samples, self._links, self._loads):
            sampler.close(SETTLE)
        if not self._writing.close(PATIENCE):
            sys.stderr.write(f"records of {self._folder.path} could not be written: the disk is full, slow or gone\n")
            return  # the thread still holds the files
        self._claim.close()

    def _check(self) -> None:
        if self._writing.fenced:
            raise DeposedError(f"a lead after epoch {self.epoch} writes the records now")

    @property
    def _writing(self) -> Scribe:
        if self._scribe is None:
            self._scribe = Scribe(self._log)
        return self._scribe

    def _put(self, path: Path, made: Callable[[], str]) -> None:
        """A text that a newer one replaces is not tried again."""
        self._check()
        mine = self._newest[path] = object()
        text = ""

        def written() -> bool:
            nonlocal text
            if self._newest[path] is not mine:
                return True
            text = text or made()
            self._claim.check()
            try:
                write_atomic(path, text)
            except PlaceError:
                return not path.parent.is_dir()  # somebody took the folder away: nothing is waited for
            return True

        self._writing.write(written)


def _text_of(plan: Plan) -> str:
    return _json({"version": VERSION, **to_wire(plan)})


def _json(data: dict[str, Any]) -> str:
    return json.dumps(data, indent=1) + "\n"
