"""`phalanx ps`."""

from __future__ import annotations

import dataclasses
import json as encoder
import shutil
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Annotated, Any

from cyclopts import Parameter

from phalanx.cli import which
from phalanx.observe.ink import Ink
from phalanx.observe.standing import standing
from phalanx.observe.table import columns
from phalanx.observe.words import COLOURS, duration, host_name
from phalanx.records.index import Entry, Index
from phalanx.records.reader import read_end
from phalanx.states import RunState, TaskPhase

#: Ended runs older than this are shown with --all only.
RECENT = 24 * 3600.0
#: What the state of a run is called whose folder is not there.
GONE = "gone"
#: How many leads are asked at once: one that hangs must not hide the others.
_ASK_AT_ONCE = 8


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Line:
    """One run as listed."""

    entry: Entry
    state: str
    running: int
    total: int

    def to_json(self, now: float) -> dict[str, Any]:
        """For scripts; the token stays where it is."""
        return {
            "run": self.entry.run,
            "state": self.state,
            "tasks_running": self.running,
            "tasks_total": self.total,
            "created": self.entry.created,
            "age": round(now - self.entry.created, 1),
            "folder": self.entry.folder,
            "engine": self.entry.engine,
            "lead": self.entry.lead,
            "detached": self.entry.detached,
        }


def ps(
    run: which.AnyRun = None,
    /,
    *,
    all_: Annotated[bool, Parameter(name=["--all", "-a"], negative=(), help="Ended runs of any age too.")] = False,
    json: Annotated[bool, Parameter(negative=(), help="An array of runs for scripts.")] = False,
) -> int:
    """List this user's runs; with RUN, its tasks.

    Runs that go on, and those that ended within a day. `lost` means that nobody leads it any more and no end was
    written: nothing of it runs.

    Examples:
      phalanx ps
      phalanx ps last
      phalanx ps --all --json
    """
    now = time.time()
    if run is not None:
        return _tasks(which.find(run), now, json=json)
    index = Index()
    entries = [entry for entry in index.all() if all_ or now - entry.created < RECENT or not _ended(entry)]
    which.warn(index)
    with ThreadPoolExecutor(_ASK_AT_ONCE) as pool:
        lines = list(pool.map(_line, entries))
    if not all_:
        lines = [line for line in lines if line.state != GONE]
    if json:
        print(encoder.dumps([line.to_json(now) for line in lines], indent=1))
        return 0
    if not lines:
        sys.stderr.write("no runs; `phalanx ps --all` lists older ones too\n")
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
        return Line(entry=entry, state=GONE, running=0, total=0)
    state = standing(entry)
    running = 0 if state.phase.terminal else _running(state)
    return Line(entry=entry, state=state.phase.value, running=running, total=len(state.tasks))


def _ended(entry: Entry) -> bool:
    return not entry.files.path.is_dir() or read_end(entry.files) is not None


def _running(state: RunState) -> int:
    return sum(task.phase is TaskPhase.RUNNING for task in state.tasks.values())


def _row(line: Line, now: float) -> tuple[str, ...]:
    age = duration(now - line.entry.created)
    return (line.entry.run, line.state, f"{line.running}/{line.total}", age, line.entry.folder)


def _tasks(entry: Entry, now: float, *, json: bool) -> int:
    from phalanx.records.report import build_report  # noqa: PLC0415 - for this form only

    state = standing(entry)
    if json:
        print(encoder.dumps(build_report(state, None, entry.files).to_json()["tasks"], indent=1))
        return 0
    rows = [("task", "host", "state", "pid", "up", "address")]
    for task in state.tasks.values():
        up = duration((task.ended or now) - task.started) if task.started else "-"
        host = host_name(state, task.host) if task.host is not None else "-"
        pid = str(task.pid) if task.pid and not task.phase.over else "-"
        rows.append((str(task.id), host, task.phase.value, pid, up, task.address or "-"))
    print(f"{entry.run} {state.phase.value}")
    for line in columns(rows, width=shutil.get_terminal_size().columns if sys.stdout.isatty() else 1000):
        print(f"  {line}")
    return 0
