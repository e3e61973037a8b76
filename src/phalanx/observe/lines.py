"""Views for a pipe or a file: plain lines, events alone, the result alone."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TextIO

from phalanx.events import (
    CheckpointRestored,
    CheckpointSaved,
    Event,
    HostChecked,
    Record,
    RunEnded,
    RunStarted,
    TaskAwake,
    TaskDone,
    TaskExited,
    TaskLeaves,
    TaskListening,
    TaskStalled,
    TaskStepped,
)
from phalanx.names import TaskId, training_order
from phalanx.observe.ink import Ink
from phalanx.observe.logtail import Chunk, RunOutput
from phalanx.observe.report import render
from phalanx.observe.words import clock, describe, size, visible
from phalanx.records.folder import RunFolder
from phalanx.records.reader import read_plan
from phalanx.records.report import build_report
from phalanx.redact import redact
from phalanx.states import RunState

#: Who speaks where no task does.
SELF = "phalanx"
#: A file is no terminal: the report may be as wide as it needs.
_WIDTH = 160
#: What a task does that does no step, and is well; whoever does it for too long is blamed, and that is said.
_PAUSES = ("finished", "validation")


class LinesView:
    """One line for each change of state, and each line of output under its task's name: `worker:0 | step 3`."""

    def __init__(self, folder: RunFolder, out: TextIO, *, ink: Ink | None = None, width: int = _WIDTH) -> None:
        """`out` takes everything, flushed after each look."""
        self._folder, self._out, self._ink, self._width = folder, out, ink or Ink(), width
        self._output = RunOutput(folder)
        self._order: dict[TaskId, int] = {}
        self._pad = len(SELF)
        self._messages: list[str] = []
        self._pauses: set[TaskId] = set()  # of those a pause went without saying, and so does its end

    def update(self, state: RunState, records: Sequence[Record]) -> None:
        """What a task wrote before its end stands above its end, as it came."""
        if not self._order and state.tasks:
            self._order = {task: n for n, task in enumerate(sorted(state.tasks, key=training_order))}
            self._pad = max(len(str(task)) for task in [SELF, *state.tasks])
        self._told()
        ends = next((n for n, record in enumerate(records) if isinstance(record.event, TaskExited)), len(records))
        self._events(state, records[:ends])
        for chunk in self._output.new(state, last=state.phase.terminal):
            self._chunk(chunk)
        self._events(state, records[ends:])
        self._out.flush()

    def say(self, message: str) -> None:
        """Written at the next look: a signal handler must not write into a write."""
        self._messages.append(message)

    def close(self, state: RunState) -> None:
        """The report, where the run has ended."""
        self._told()
        if state.phase.terminal:
            report = build_report(state, read_plan(self._folder), self._folder)
            self._out.write("\n" + render(report, width=self._width, ink=self._ink))
            self._out.flush()

    def _told(self) -> None:
        while self._messages:
            self._out.write(f"{SELF.ljust(self._pad)} | {self._messages.pop(0)}\n")

    def _events(self, state: RunState, records: Sequence[Record]) -> None:
        for record in records:
            if self._is_a_pause(record.event) or _goes_without_saying(record.event, state):
                continue
            text = redact(describe(record.event, state, record.epoch))
            if isinstance(record.event, RunStarted):
                text += f"; folder {self._folder.path}"
            self._out.write(f"{self._ink(f'{SELF.ljust(self._pad)} | {clock(record.event.time)} {text}', 'bold')}\n")

    def _is_a_pause(self, event: Event) -> bool:
        """Whether somebody does no step because he validates or has come to his end; or goes on after that."""
        if isinstance(event, TaskStalled):
            known = event.doing in _PAUSES
            (self._pauses.add if known else self._pauses.discard)(event.task)
            return known
        if isinstance(event, TaskAwake) and event.task in self._pauses:
            self._pauses.discard(event.task)
            return True
        return False

    def _chunk(self, chunk: Chunk) -> None:
        """Prefixes a whole chunk at once: a flood must not cost a regular expression a line."""
        if chunk.skipped:
            self._left_out(chunk)
        if not chunk.data:
            return
        name = str(chunk.log.task).ljust(self._pad) + " | "
        prefix = self._ink.task(name, self._order.get(chunk.log.task, 0))
        text = redact(chunk.data.decode(errors="replace").removesuffix("\n"))
        if "\r" in text or "\x1b" in text or not text.replace("\n", "").replace("\t", "").isprintable():
            text = "\n".join(visible(line) for line in text.split("\n"))
        self._out.write(prefix + text.replace("\n", "\n" + prefix) + "\n")

    def _left_out(self, chunk: Chunk) -> None:
        out = f"{size(chunk.skipped)} of {chunk.log.task}'s output left out here"
        text = f"{out}, it writes faster than can be shown; all of it: {chunk.log.path}"
        self._out.write(f"{self._ink(f'{SELF.ljust(self._pad)} | {text}', 'bold')}\n")


def _goes_without_saying(event: Event, state: RunState) -> bool:
    """What every healthy task or host does, and often: the records have it, a person would drown in it."""
    if isinstance(event, CheckpointSaved | CheckpointRestored | TaskLeaves):
        return event.task != state.leader
    if isinstance(event, HostChecked):
        return not event.faults
    return isinstance(event, TaskListening | TaskStepped | TaskDone)


class JsonView:
    """Each event as one line of JSON, as it stands in the records."""

    def __init__(self, out: TextIO) -> None:
        """Nothing but events goes to `out`."""
        self._out, self._ended = out, False

    def update(self, state: RunState, records: Sequence[Record]) -> None:
        """Write what is new."""
        del state
        for record in records:
            self._out.write(json.dumps(record.to_json(), separators=(",", ":")) + "\n")
            self._ended = self._ended or isinstance(record.event, RunEnded)
        if records:
            self._out.flush()

    def say(self, message: str) -> None:
        """Events say it too."""

    def close(self, state: RunState) -> None:
        """Where the records have no last event, its reader gets one."""
        if state.end is not None and not self._ended:
            record = Record(seq=state.seq, epoch=state.epoch, event=state.end)
            self._out.write(json.dumps(record.to_json(), separators=(",", ":")) + "\n")
            self._out.flush()


class QuietView:
    """Nothing until the end, and then the result alone: one line for success, cause and next step else."""

    def __init__(self, folder: RunFolder, out: TextIO, *, ink: Ink | None = None) -> None:
        """See the class."""
        self._folder, self._out, self._ink = folder, out, ink or Ink()

    def update(self, state: RunState, records: Sequence[Record]) -> None:
        """Says nothing."""

    def say(self, message: str) -> None:
        """Says nothing."""

    def close(self, state: RunState) -> None:
        """The result."""
        if state.phase.terminal:
            report = build_report(state, read_plan(self._folder), self._folder)
            self._out.write(render(report, ink=self._ink, brief=True))
            self._out.flush()
