"""`phalanx ps`."""

from __future__ import annotations

import collections
import dataclasses
import json as encoder
import shutil
import sys
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Annotated, Any

from cyclopts import Parameter

from phalanx.cli import which
from phalanx.cli.where import There
from phalanx.errors import PlaceError
from phalanx.observe.ink import Ink
from phalanx.observe.logtail import attempt_logs
from phalanx.observe.progress import HEADINGS, Progress
from phalanx.observe.standing import counted, standing
from phalanx.observe.table import columns
from phalanx.observe.words import COLOURS, duration, host_name, silent_for, standbys, standing_of
from phalanx.protocol import people
from phalanx.records.index import Entry, Index
from phalanx.records.lastwords import last_written
from phalanx.records.reader import read_end
from phalanx.remote import caught_up, listed
from phalanx.slowevents import holding
from phalanx.taskstate import TaskPhase, TaskState, total_steps

#: Ended runs older than this are shown with --all only.
RECENT = 24 * 3600.0
#: What the state of a run is called whose folder is not there, and which nobody leads.
GONE = "gone"
_RUNNING = TaskPhase.RUNNING.value
#: Phases that have a plainer word where they are counted.
_WORDS = {TaskPhase.SUCCEEDED.value: "done"}
#: How many leads are asked at once: one that hangs must not hide the others.
_ASK_AT_ONCE = 8


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Line:
    """One run as listed."""

    entry: Entry
    state: str
    #: Whether it goes on.
    going: bool
    #: How many tasks are in each phase, by `states.TaskPhase` value.
    tasks: Mapping[str, int]
    #: Whether its folder was deleted: then nothing but its lead tells of it.
    gone: bool = False

    @property
    def counts(self) -> str:
        """`1/2 running` of a run that goes on; `2 done`, `1 failed, 1 victim` of one that has ended."""
        if self.gone:
            return "-"
        if self.going:
            return f"{self.tasks.get(_RUNNING, 0)}/{sum(self.tasks.values())} running"
        return ", ".join(f"{count} {_WORDS.get(phase, phase)}" for phase, count in self.tasks.items()) or "none"

    def to_json(self, now: float) -> dict[str, Any]:
        """For scripts; the token stays where it is."""
        return {
            "run": self.entry.run,
            "state": self.state,
            "tasks": dict(self.tasks),
            "tasks_running": self.tasks.get(_RUNNING, 0) if self.going else 0,
            "tasks_total": sum(self.tasks.values()),
            "created": self.entry.created,
            "age": round(now - self.entry.created, 1),
            "folder": self.entry.folder,
            "folder_gone": self.gone,
            "engine": self.entry.engine,
            "lead": self.entry.address,
            "detached": self.entry.detached,
        }


def ps(
    run: which.AnyRun = None,
    /,
    *,
    all_: Annotated[bool, Parameter(name=["--all", "-a"], negative=(), help="Ended runs of any age too.")] = False,
    running: Annotated[bool, Parameter(negative=(), help="Only the runs that go on.")] = False,
    json: Annotated[bool, Parameter(negative=(), help="An array of runs for scripts.")] = False,
    there: Annotated[There, Parameter(name="*")] = There(),  # noqa: B008 - frozen
) -> int:
    """List this user's runs; with RUN, its tasks.

    Runs that ended within a day, and below them those that go on. `lost` means that nobody leads it any more and no
    end was written: nothing of it runs. `silent` is how long ago a running task last wrote anything; `step` counts
    to this second, from the beginning of the run (`+`: of this start); `comm` is the part of the time that passes in
    collectives, waiting for peers included: whoever has least of it is the one that the others wait for.

    Examples:
      phalanx ps
      phalanx ps last
      phalanx ps --running
      phalanx ps --all --json
    """
    now = time.time()
    if run is not None:
        return _tasks(which.find(run, there.where), now, json=json)
    index = Index()
    if there.where is not None:
        listed(there.where)
    entries = [entry for entry in index.all() if all_ or now - entry.created < RECENT or not _ended(entry)]
    which.warn(index)
    with ThreadPoolExecutor(_ASK_AT_ONCE) as pool:
        lines = list(pool.map(_line, entries))
    if not all_:
        lines = [line for line in lines if line.state != GONE]
    if running:
        lines = [line for line in lines if line.going]
    lines.sort(key=lambda line: line.going)  # where the eye is, right above the prompt
    if json:
        print(encoder.dumps([line.to_json(now) for line in lines], indent=1))
        return 0
    if not lines:
        sys.stderr.write("no run goes on\n" if running else "no runs; `phalanx ps --all` lists older ones too\n")
        return 0
    ink = Ink.of(sys.stdout)
    head, *rows = columns(
        [("run", "state", "tasks", "age", "folder"), *(_row(line, now) for line in lines)], width=1000
    )
    print(ink(head, "dim"))
    for line, row in zip(lines, rows, strict=True):
        print(row.replace(f" {line.state} ", f" {ink(line.state, COLOURS.get(line.state, 'cyan'))} ", 1))
    return 0


def _line(entry: Entry) -> Line:
    if not entry.files.path.is_dir():
        phase = _led(entry)
        return Line(entry=entry, state=phase or GONE, going=bool(phase), tasks={}, gone=True)
    state = standing(caught_up(entry))
    phases = collections.Counter(task.phase.value for task in state.tasks.values())
    return Line(entry=entry, state=state.phase.value, going=not state.phase.terminal, tasks=phases)


def _led(entry: Entry) -> str:
    """The phase of a run as its lead tells it; empty where none answers."""
    if not entry.lead:
        return ""
    try:
        return str(people.state(entry.address, entry.token).get("phase", "running"))
    except (PlaceError, ValueError):
        return ""


def _ended(entry: Entry) -> bool:
    return entry.files.path.is_dir() and read_end(entry.files) is not None


def _row(line: Line, now: float) -> tuple[str, ...]:
    age = duration(now - line.entry.created)
    folder = f"{line.entry.folder} (folder gone)" if line.gone else line.entry.folder
    return (line.entry.run, line.state, line.counts, age, folder)


def _tasks(entry: Entry, now: float, *, json: bool) -> int:
    from phalanx.records.report import build_report  # noqa: PLC0415 - for this form only

    state = counted(standing(entry), entry)
    progress = Progress(entry.files, recent=True)
    progress.look()
    progress.take(task.sample for task in state.tasks.values() if task.sample is not None)
    if json:
        print(encoder.dumps(build_report(state, None, entry.files).to_json()["tasks"], indent=1))
        return 0
    told = [progress.cells(task)[1:] for task in state.tasks.values()]
    more = [n for n in range(len(HEADINGS) - 1) if any(cells[n] for cells in told)]
    rows = [("task", "host", "state", "pid", "up", "silent", "step", *(HEADINGS[1:][n] for n in more), "address")]
    for task, cells in zip(state.tasks.values(), told, strict=True):
        up = duration((task.ended or now) - task.started) if task.started else "-"
        host = host_name(state, task.host) if task.host is not None else "-"
        pid = str(task.pid) if task.pid and not task.phase.over else "-"
        wrote = last_written(attempt_logs(entry.files, task.id, max(task.generation, 1), task.attempt))
        silent = silent_for(task, wrote, now)
        word = standing_of(task, wrote=wrote is not None)
        silence = "-" if silent is None else duration(silent)
        rows.append(
            (
                str(task.id),
                host,
                word,
                pid,
                up,
                silence,
                _step(task),
                *(cells[n] or "-" for n in more),
                task.address or "-",
            )
        )
    ready = f" · {standbys(*state.standbys)}" if state.standbys[0] and not state.phase.terminal else ""
    print(f"{entry.run} {state.phase.value}{progress.headline(state)}{ready}")
    for line in columns(rows, width=shutil.get_terminal_size().columns if sys.stdout.isatty() else 1000):
        print(f"  {line}")
    if not state.phase.terminal:
        for slow in holding(state.slow, state.generation):
            print(f"  slow: {slow.says}")
    return 0


def _step(task: TaskState) -> str:
    """Training steps of the run; with a `+`, those of this start alone, where nobody knows how many came before."""
    if not task.step:
        return "-"
    total = total_steps(task, task.step)
    return f"+{task.step}" if total is None else str(total)
