"""One run under faults: waits for each moment, does the fault, looks at what comes of it, undoes it, goes on."""

from __future__ import annotations

import dataclasses
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from phalanx.chaos.docket import Docket
from phalanx.chaos.fault import Fault
from phalanx.chaos.kinds import Aim
from phalanx.chaos.output import leader_of, printed
from phalanx.chaos.strike import STRIKES
from phalanx.chaos.training import Training, all_run
from phalanx.chaos.watch import Outcome, Told, Watch, missed, refused
from phalanx.chaos.whereabouts import CannotError, Whereabouts
from phalanx.events import RunEnded
from phalanx.protocol import people
from phalanx.records.index import Entry
from phalanx.records.reader import Tail
from phalanx.states import RunPhase, RunState, fold, steps_done

#: Seconds between two looks at the records, and between two questions to the lead.
LOOK, ASK = 0.01, 1.0
#: Seconds without a lead after which the run is lost: longer than its lease and an election.
LEADLESS = 25.0
#: Seconds that a fault which nobody has to notice is given to be noticed all the same.
SETTLE = 3.0
#: Seconds before the end of a run in which a process can no longer be hurt since its program is over.
ENDING = 3.0
#: Seconds without a word after which it is said what is waited for.
SILENT = 10.0


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Patience:
    """How long a fault may take to be settled, in seconds, and how long one that may pass is looked at."""

    fault: float = 120.0
    settle: float = SETTLE


class Launcher(Protocol):
    """Who has started the run for us."""

    def lives(self) -> bool:
        """Whether it has not ended yet."""
        ...

    def end(self) -> None:
        """End the run at once, whether its lead answers or not."""
        ...


class Session:
    """Faults come one after the other. `say` hears each as it is done and as it is settled."""

    def __init__(
        self,
        entry: Entry,
        faults: tuple[Fault, ...],
        *,
        prepared: Path | None = None,
        patience: Patience | None = None,
        say: Callable[[str], None] = lambda _: None,
        launched: Launcher | None = None,
        join: Callable[[int], None] | None = None,
        steps: bool | None = None,
    ) -> None:
        """`launched`: who follows a run that we have started; None for somebody else's run.

        A run of ours is seen to its end; another is left once its faults are settled. `join`: brings a host back.
        `steps`: as `Training` takes it.
        """
        self._join = join
        self._entry, self._prepared, self._hears, self._launched = entry, prepared, say, launched
        self._patience = patience or Patience()
        # Those with a time of their own come in its order, the others where they stand.
        timed = iter(sorted((f for f in faults if f.when.after is not None), key=lambda f: f.when.after or 0.0))
        self._due = [next(timed) if fault.when.after is not None else fault for fault in faults]
        self._told: list[Told] = []
        self._docket = Docket()
        self._lift: tuple[float, Callable[[], None]] | None = None
        self._tail = Tail(entry.files.events)
        self.state = RunState()
        self._unsettled: Fault | None = None  # what was not over when the run ended
        self._training = Training(steps=steps)
        self._free = 0.0  # when the fault before was over
        self._refused: float | None = None  # when the newest in `told` could not be done
        self._began = self._asked = self._heard = self._spoken = time.monotonic()

    def run(self) -> tuple[Told, ...]:
        """Until the faults are over, or the run is."""
        try:
            while not self._look():
                time.sleep(LOOK)
        finally:
            self._undo()
            self._tail.close()
        ended = self.state.phase.terminal and self._refused is not None
        if ended and time.monotonic() - (self._refused or 0.0) < ENDING:
            self._told[-1] = missed(self._told[-1].fault, "the run ended in this moment")
        self._told += [missed(fault, self._why_missed(fault)) for fault in self._due]
        return tuple(self._told)

    def _look(self) -> bool:
        now = time.monotonic()
        self._read(now)
        self._settle(now)
        if self.state.phase.terminal or (self._launched is None and not self._due and self._docket.newest is None):
            return True
        if (why := self._lost(now)) is not None:
            for watch in self._docket:
                watch.lost(why)
            self._settle(now)
            self.state = dataclasses.replace(self.state, phase=RunPhase.LOST)
            return True
        if self._due and self._may_come(self._due[0]) and self._is_due(self._due[0], now):
            self._strike(self._due.pop(0), now)
        if now - self._spoken >= SILENT:
            self._say(self._waits(now))
        return False

    def _read(self, now: float) -> None:
        for record in self._tail.poll():
            self.state = fold(self.state, record)
            ends = isinstance(record.event, RunEnded)
            self._unsettled = next((watch.told.fault for watch in self._docket if watch.open and ends), None)
            self._docket.see(record.event, self.state, now)
            if ends:
                self._undo()
        self._training.see(self.state, now)

    def _settle(self, now: float) -> None:
        newest = self._docket.newest
        if self._lift is not None and now >= self._lift[0] and newest and not self._still_counts(newest.told.fault):
            self._undo()
        self._docket.wait(now, settle=self._patience.settle, patience=self._patience.fault)
        if newest is not None and not newest.open:
            self._undo()
        for watch in self._docket.take():
            told = watch.told
            self._say(f"{told.fault}: {told.outcome.value}" + (f" ({told.why})" if told.why else ""))
            self._told.append(told)
            self._free, self._refused = now, None
            if told.outcome is Outcome.HUNG and self._launched is not None:
                self._launched.end()

    def _may_come(self, fault: Fault) -> bool:
        """One whose moment was chosen need not wait until nothing can come any more of the one before; others do."""
        return self._docket.quiet if fault.when.gap is None else self._docket.newest is None

    def _still_counts(self, fault: Fault) -> bool:
        """Whether the run takes a host that was hit for living: until then no other agent may join in its place."""
        host = self.state.hosts.get(int(fault.target)) if fault.row.aim is Aim.HOST else None
        return host is not None and host.living

    def _undo(self) -> None:
        if self._lift is not None:
            lift, self._lift = self._lift[1], None
            lift()
            if (newest := self._docket.newest) is not None:
                newest.lifted(time.monotonic())

    def _is_due(self, fault: Fault, now: float) -> bool:
        when, training = fault.when, self._training
        if not all_run(self.state):
            return False
        if when.line:
            return re.search(when.line, printed(self._entry.files, leader_of(self.state)), re.MULTILINE) is not None
        if training.since is None or training.began is None:
            return False
        if when.after is not None:
            return now - training.began >= when.after
        return now - max(self._free, training.since) >= (when.gap or 0.0)

    def _why_missed(self, fault: Fault) -> str:
        """A moment may have come, and the fault still had to wait for the one before it, or for the group."""
        after, began = fault.when.after, self._training.began
        hung = next((told for told in self._told if told.outcome is Outcome.HUNG), None)
        if hung is not None and self._launched is not None:
            return f"the run was ended, since {hung.fault} had hung"
        if began is None and not fault.when.line:
            return "the run ended before all trained"
        if after is None or began is None or time.monotonic() - began < after:
            return "the run ended before its moment"
        held = f"{self._unsettled} was not over" if self._unsettled is not None else "not all trained"
        return f"its moment came while {held}, and the run ended meanwhile"

    def _waits(self, now: float) -> str:
        phase = "running" if self.state.phase is RunPhase.RUNNING else self.state.phase.value
        steps = steps_done(self.state)
        words = [f"{self._entry.run}: still {phase}, {now - self._began:.0f} s" + (f", step {steps}" if steps else "")]
        if (newest := self._docket.newest) is not None:
            words.append(f"waiting for what comes of {newest.told.fault}")
        elif self._due:
            waits = self._training.since is None and not self._due[0].when.line
            words.append(f"{self._due[0]} {'waits until all train' if waits else 'is to come'}")
        return "; ".join(words)

    def _say(self, line: str) -> None:
        self._spoken = time.monotonic()
        self._hears(line)

    def _strike(self, fault: Fault, now: float) -> None:
        where = Whereabouts(entry=self._entry, state=self.state, prepared=self._prepared, join=self._join)
        try:
            lift = STRIKES[fault.kind](fault, where)
        except CannotError as wrong:
            told = refused(fault, str(wrong))
            self._say(f"{fault}: {told.outcome.value}: {wrong}")
            self._told.append(told)
            self._free = self._refused = now
            return
        self._say(str(fault))
        struck = time.monotonic()
        self._docket.add(Watch(fault, self.state, now=struck, since=self._training.began or struck))
        lasts = fault.row.lasts(fault.value)
        if lift is not None:
            self._lift = (struck + lasts if lasts is not None else float("inf"), lift)

    def _lost(self, now: float) -> str | None:
        """Why nobody leads the run any more; None while somebody may."""
        if self._launched is not None and not self._launched.lives() and self._launcher_outlived():
            self._read(now)
            return None if self.state.phase.terminal else "its launcher has given it up"
        if now - self._asked < ASK:
            return None
        self._asked = now
        if people.alive(self._entry.address, self._entry.token):
            self._heard = now
        elif now - self._heard > LEADLESS:
            return f"no lead has answered for {LEADLESS:g} s"
        return None

    def _launcher_outlived(self) -> bool:
        """Whether the launcher ended by itself: one that we have killed says nothing about the run."""
        done = [*self._told, *(watch.told for watch in self._docket)]
        return all(told.fault.kind != "launcher" for told in done)
