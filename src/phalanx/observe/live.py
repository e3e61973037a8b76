"""The live table of a terminal. Imported only where there is one: it brings rich along."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import TextIO

from rich.console import Console
from rich.text import Text

from phalanx.events import Record, TaskEvent
from phalanx.names import TaskId, training_order
from phalanx.observe.ink import Ink
from phalanx.observe.logtail import LastLine, attempt_logs
from phalanx.observe.progress import HEADINGS, Progress, chosen
from phalanx.observe.report import render
from phalanx.observe.screen import Screen
from phalanx.observe.table import columns, cut
from phalanx.observe.words import COLOURS, host_name, silent_for, standbys, standing_of, uptime, visible
from phalanx.records.folder import RunFolder
from phalanx.records.reader import read_plan
from phalanx.records.report import build_report
from phalanx.redact import redact
from phalanx.slowevents import holding
from phalanx.states import RunPhase, RunState
from phalanx.taskstate import TaskPhase, TaskState

#: Seconds between two pictures.
REFRESH = 0.25
#: Lines that are no tasks: header, headings, "and more", messages, footer, and one for the cursor.
_FRAME = 6
_HEADINGS = ("task", "host", "state", "up", "silent")
_LAST = "last line"
#: Characters of the last line for which some of the progress is left out.
_ROOM = 20
#: How many reasons for a slow training are shown.
_SLOW = 2
_BAD = (TaskPhase.FAILED, TaskPhase.LOST, TaskPhase.VICTIM)


class LiveView:
    """One row a task; where they do not fit, failed ones first, then those with the newest news."""

    def __init__(
        self,
        folder: RunFolder,
        out: TextIO,
        *,
        footer: str = "",
        ink: Ink | None = None,
        clock: Callable[[], float] = time.time,
        console: Console | None = None,
    ) -> None:
        """`footer` says what Ctrl-C does and how to detach."""
        self._folder, self._out, self._footer, self._ink, self._clock = folder, out, footer, ink or Ink(), clock
        self._console = console or Console(file=out, highlight=False, no_color=not self._ink.on)
        self._screen = Screen(self._console)
        self._lines: dict[TaskId, tuple[tuple[int, int], LastLine]] = {}
        self._news: dict[TaskId, float] = {}
        self._messages: list[str] = []
        self._due = 0.0
        self._picture: list[Text] = []
        self._progress = Progress(folder)

    def update(self, state: RunState, records: Sequence[Record]) -> None:
        """Draws at most four times a second, and only what has changed; at once where the terminal has."""
        for record in records:
            if isinstance(record.event, TaskEvent):
                self._news[record.event.task] = record.event.time
        now = time.monotonic()
        moved = bool(self._picture) and tuple(self._console.size) != self._screen.size
        if now < self._due and not moved:
            return
        self._due = now + REFRESH
        picture = self.picture(state)
        if picture == self._picture and not moved:
            return
        self._picture = picture
        self._screen.draw(picture)

    def say(self, message: str) -> None:
        """Shown under the table from the next picture on."""
        self._messages.append(message)
        self._due = 0.0

    def close(self, state: RunState) -> None:
        """The table goes, the report comes."""
        self._screen.clear()
        if state.phase.terminal:
            report = build_report(state, read_plan(self._folder), self._folder)
            self._out.write(render(report, width=self._console.width, ink=self._ink))
            self._out.flush()

    def picture(self, state: RunState) -> list[Text]:
        """What is drawn now, a line each, none wider than the terminal."""
        width, height = self._console.size
        slow = holding(state.slow, state.generation)[:_SLOW] if not state.phase.terminal else ()
        room = max(height - _FRAME - len(self._messages[-1:]) - len(slow), 1)
        shown = self._chosen(state, room)
        self._progress.look()
        head, *lines = columns(self._rows(state, shown, width - 1), width=width - 1)
        texts = [self._header(state, width - 1), Text(head, style="dim")]
        texts += [Text(line, style=_style(task)) for line, task in zip(lines, shown, strict=True)]
        if len(shown) < len(state.tasks):
            texts.append(Text(cut(f"… and {_others(state, shown)}", width - 1), style="dim"))
        texts += [Text(cut(f"slow: {one.says}", width - 1), style="yellow") for one in slow]
        texts += [Text(cut(message, width - 1), style="yellow") for message in self._messages[-1:]]
        if self._footer and state.stop is None and not self._messages:  # it says how to stop
            texts.append(Text(cut(self._footer, width - 1), style="dim"))
        for text in texts:
            text.no_wrap = True
        return texts

    def _header(self, state: RunState, width: int) -> Text:
        phase = state.phase.value
        if state.phase is RunPhase.JOINING:
            phase = f"waiting for hosts, {len(state.hosts)} of {state.wanted_hosts} joined"
        elapsed = uptime((state.ended or self._clock()) - state.started) if state.started else uptime(0)
        generation = f" · generation {state.generation}" if state.generation else ""
        ready = f" · {standbys(*state.standbys)}" if state.standbys[0] else ""
        told = f"{phase}{generation} · {elapsed}{self._progress.headline(state)}{ready}"
        text = Text(cut(f"{state.run or self._folder.run} · {told}", width))
        text.highlight_words([state.run or self._folder.run], style="bold")
        text.highlight_words([phase], style=COLOURS.get(state.phase.value, "cyan"))
        return text

    def _chosen(self, state: RunState, room: int) -> list[TaskState]:
        tasks = sorted(state.tasks.values(), key=lambda task: training_order(task.id))
        if len(tasks) <= room:
            return tasks
        return sorted(tasks, key=lambda task: (task.phase not in _BAD, -self._news.get(task.id, 0.0)))[:room]

    def _rows(self, state: RunState, shown: Sequence[TaskState], width: int) -> list[tuple[str, ...]]:
        """Headings and tasks. Of the progress as much as leaves some room for what the tasks say themselves."""
        rows = [(_HEADINGS, HEADINGS, _LAST), *(self._row(state, task) for task in shown)]
        taken = sum(2 + max(len(row[0][n]) for row in rows) for n in range(len(_HEADINGS)))
        told = chosen([row[1] for row in rows[1:]], width - taken - _ROOM)
        return [(*fixed, *(cells[n] for n in told), last) for fixed, cells, last in rows]

    def _row(self, state: RunState, task: TaskState) -> tuple[tuple[str, ...], tuple[str, ...], str]:
        up = ""
        if task.started is not None:
            up = uptime((task.ended or self._clock()) - task.started)
        last = self._last_line(task)
        wrote = self._lines[task.id][1].wrote if task.id in self._lines else None
        silent = silent_for(task, wrote, self._clock())
        fixed = (
            str(task.id),
            host_name(state, task.host) if task.host is not None else "",
            standing_of(task, wrote=wrote is not None),
            up,
            "" if silent is None else uptime(silent),
        )
        return fixed, self._progress.cells(task), last

    def _last_line(self, task: TaskState) -> str:
        if task.refused:
            return task.refused
        attempt = (max(task.generation, 1), task.attempt)  # a standby writes before its generation is bound
        known = self._lines.get(task.id)
        if known is None or known[0] != attempt:
            known = (attempt, LastLine(attempt_logs(self._folder, task.id, *attempt)))
            self._lines[task.id] = known
        return redact(visible(known[1].now()))


def _style(task: TaskState) -> str:
    if task.phase in (TaskPhase.FAILED, TaskPhase.LOST):
        return "red"
    if task.phase is TaskPhase.VICTIM:
        return "yellow"
    return "dim" if task.phase in (TaskPhase.WAITING, TaskPhase.ENDED) else ""


def _others(state: RunState, shown: Sequence[TaskState]) -> str:
    """`90 more: 88 running, 2 waiting`."""
    names = {task.id for task in shown}
    counts: dict[str, int] = {}
    for task in state.tasks.values():
        if task.id not in names:
            counts[task.phase.value] = counts.get(task.phase.value, 0) + 1
    return f"{sum(counts.values())} more: " + ", ".join(f"{count} {phase}" for phase, count in counts.items())
