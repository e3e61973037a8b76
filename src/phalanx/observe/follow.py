"""Following a run to its end: its records as they grow, shown by a view. Knows no signals, influences nothing."""

from __future__ import annotations

import contextlib
import dataclasses
import shutil
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol

from phalanx.events import Noted, Record, RunEnded
from phalanx.names import TaskId
from phalanx.records.folder import RunFolder
from phalanx.records.lone import WARNING
from phalanx.records.reader import Tail, fold_on, with_skipped
from phalanx.states import RunPhase, RunState, fold
from phalanx.taskstate import TaskPhase, TaskState

#: Seconds between two looks.
POLL = 0.05
#: Seconds between two questions whether anybody still leads the run.
ASK = 0.5
#: Seconds for which a lead that still answers may write the end after its agents have gone.
ENDING = 15.0
#: Seconds for which the end of a run may be on its way from its lead into the records.
UNWRITTEN = 3.0
#: What a launcher exits with where the place failed.
_PLACE_FAILED = 3
#: A disk with less than this many bytes takes nothing any more.
_ROOM = 1 << 16


#: Why nobody leads a run any more; or how its lead says that it has ended; None while it goes on.
Broken = Callable[[], "str | RunEnded | None"]


class View(Protocol):
    """Shows a run while it is followed."""

    def update(self, state: RunState, records: Sequence[Record]) -> None:
        """Called at each look; `records` are new and folded into `state` already, often there are none."""
        ...

    def say(self, message: str) -> None:
        """A word of the launcher's own. May be called from a signal handler, so it only takes note."""
        ...

    def close(self, state: RunState) -> None:
        """Give the terminal back; say how the run ended, where it has. The last call."""
        ...


class Follower:
    """Drives one view through one run."""

    def __init__(
        self,
        folder: RunFolder,
        view: View,
        *,
        broken: Broken = lambda: None,
        alive: Callable[[], bool] = lambda: False,
        poll: float = POLL,
        ask: float = ASK,
    ) -> None:
        """`broken` is asked every `ask` seconds at most.

        `alive` says whether a lead answers all the same; then the end is awaited for up to `ENDING` seconds.
        An end that the lead tells of and the records do not have after `UNWRITTEN` is the end all the same.
        """
        self._folder, self._view, self._broken = folder, view, broken
        self._poll, self._every, self._alive = poll, ask, alive
        self._tail, self._anew = Tail(folder.events), 0
        self._state = RunState()
        self._asked = time.monotonic()
        self._broke: float | None = None
        self._told: tuple[float, RunEnded] | None = None

    def run(self) -> RunState:
        """Returns the final state once the run has ended: `LOST` where its lead is gone and wrote no end."""
        try:
            while not self._look():
                time.sleep(self._poll)
        finally:
            self._tail.close()
            self._view.close(self._state)
        return self._state

    def _look(self) -> bool:
        """One look; whether it was the last."""
        word = self._ask()
        # The end may have been written before whoever wrote it went: the records are read after the question.
        records = self._tail.poll()
        self._state = fold_on(self._state, records)
        if self._tail.anew != self._anew:  # the records that follow begin at 1
            self._state, self._anew = RunState(), self._tail.anew
        if word is not None and not self._state.phase.terminal:
            self._state = self._concluded(word)
        if self._state.phase.terminal:
            self._state = with_skipped(self._state, self._tail.skipped, self._folder.events.name)
        self._view.update(self._state, records)
        return self._state.phase.terminal

    def _concluded(self, word: str | RunEnded) -> RunState:
        """The state by a word from outside the records, where that is the last one."""
        now = time.monotonic()
        if isinstance(word, RunEnded):
            self._told = self._told or (now, word)
        if self._told is not None and (isinstance(word, str) or now - self._told[0] >= UNWRITTEN):
            return unwritten(self._state, self._told[1], self._folder)
        if isinstance(word, str) and (reason := self._unless_alive(word)):
            return lost(self._state, reason, last_sign(self._folder, self._state) or time.time())
        return self._state

    def _unless_alive(self, reason: str) -> str | None:
        """None while a lead that lives may still write the end."""
        if not self._alive():
            return reason
        now = time.monotonic()
        self._broke = now if self._broke is None else self._broke
        if now - self._broke < ENDING:
            return None
        return f"{reason}; the lead still answers, but has written no end into {self._folder.path}"

    def _ask(self) -> str | RunEnded | None:
        now = time.monotonic()
        if now - self._asked < self._every:
            return None
        self._asked = now
        return self._broken()


def full(folder: RunFolder) -> bool:
    """Whether the disk of the records has no room left."""
    try:
        return shutil.disk_usage(folder.path).free < _ROOM
    except OSError:
        return False


def unwritten(state: RunState, end: RunEnded, folder: RunFolder) -> RunState:
    """The state of a run whose lead tells how it ended, and cannot write it. Nothing of it is written down."""
    why = "their disk is full" if full(folder) else "their disk takes nothing"
    note = Noted(time=end.time, message=f"{WARNING}the records lack how it ended, its lead has told it: {why}")
    tasks = _all_over(state, TaskPhase.ENDED, end.time)
    state = fold(state, Record(seq=state.seq + 1, epoch=state.epoch, event=end))
    return dataclasses.replace(state, tasks=tasks, notes=(*state.notes, note))


def lost(state: RunState, reason: str, now: float) -> RunState:
    """The state of a run that nobody leads any more. Nothing of it is written down: its records stay as they are."""
    cause = f"nobody wrote how it ended: {reason}"
    end = RunEnded(time=now, outcome=RunPhase.LOST.value, exit_code=_PLACE_FAILED, cause=cause)
    tasks = _all_over(state, TaskPhase.LOST, now)
    return dataclasses.replace(state, phase=RunPhase.LOST, ended=now, end=end, tasks=tasks)


def _all_over(state: RunState, phase: TaskPhase, now: float) -> dict[TaskId, TaskState]:
    """The tasks, where whoever is not over by the records has come to this."""
    return {
        name: task if task.phase.over else dataclasses.replace(task, phase=phase, ended=now)
        for name, task in state.tasks.items()
    }


def last_sign(folder: RunFolder, state: RunState) -> float | None:
    """When anything of the run last spoke: an event, a task's output, an agent's own word. Unix seconds.

    Whoever asks, and whenever, gets the same answer for a run that nobody leads any more.
    """
    times = [state.started, state.bound or 0.0]
    for task in state.tasks.values():
        times += [time or 0.0 for time in (task.started, task.listening, task.stepped, task.ended)]
    for log in _all_logs(folder):
        with contextlib.suppress(OSError):
            facts = log.stat()
            times += [facts.st_mtime] if facts.st_size else []
    return max(times) or None


def _all_logs(folder: RunFolder) -> list[Path]:
    """Of agents and tasks; none where the disk cannot even be read any more."""
    try:
        return [*folder.agents.glob("*.log"), *(log.path for log in folder.log_files())]
    except OSError:
        return []
