"""`phalanx logs`."""

from __future__ import annotations

import dataclasses
import json as encoder
import sys
import time
from collections.abc import Callable, Sequence
from typing import Annotated

from cyclopts import Parameter

from phalanx.cli import which
from phalanx.cli.values import whole
from phalanx.cli.where import There
from phalanx.errors import InputError
from phalanx.events import Record
from phalanx.names import TaskId
from phalanx.observe import timeline
from phalanx.observe.follow import Follower
from phalanx.observe.ink import Ink
from phalanx.observe.logtail import GrowingFile, attempt_logs
from phalanx.observe.since import parse_since
from phalanx.observe.standing import ASK, broken_after
from phalanx.observe.timeline import Line
from phalanx.observe.words import host_name, stamp, visible
from phalanx.records.folder import LogFile, RunFolder
from phalanx.records.reader import read_state
from phalanx.redact import redact
from phalanx.remote import followed
from phalanx.states import RunState

_BOTH = ("out", "err")

Print = Callable[[Line], None]


def logs(
    *names: Annotated[str, Parameter(name="[RUN] [TASK]", help="A run (last), and tasks such as worker:0 (all).")],
    follow: Annotated[bool, Parameter(name=["--follow", "-f"], negative=(), help="Until the run has ended.")] = False,
    merged: Annotated[bool, Parameter(negative=(), help="One timeline of all tasks, with times.")] = False,
    since: Annotated[str | None, Parameter(help="Lines from then on: 90s, 5m, 2h, 1d ago, or a date.")] = None,
    err: Annotated[bool, Parameter(negative=(), help="Standard error alone.")] = False,
    out: Annotated[bool, Parameter(negative=(), help="Standard output alone.")] = False,
    generation: Annotated[int | None, Parameter(help="An older generation (the newest).", converter=whole)] = None,
    json: Annotated[bool, Parameter(negative=(), help="One JSON object a line.")] = False,
    raw: Annotated[bool, Parameter(negative=(), help="Exact bytes of one stream of each task.")] = False,
    there: Annotated[There, Parameter(name="*")] = There(),  # noqa: B008 - frozen
) -> int:
    """Print what tasks have written: both streams of each, in the order in which they came.

    Several tasks come one after the other, the first failure on top; with -f and --merged line by line under their
    names. What looks like a credential is taken out, but not with --raw, which prints standard output (with --err
    standard error) byte for byte.

    Examples:
      phalanx logs
      phalanx logs -f worker:1
      phalanx logs digits-1130-073311 --merged --since 5m
      phalanx logs chief:0 --raw > chief.out
    """
    for one, other in (("--err", "--out"), ("--raw", "--json"), ("--raw", "--merged"), ("--raw", "--since")):
        given = {"--err": err, "--out": out, "--raw": raw, "--json": json, "--merged": merged, "--since": since}
        if given[one] and given[other]:
            raise InputError(f"{one} and {other} exclude each other")
    run, tasks = which.split(names)
    entry = which.find(run, there.where)
    state = read_state(entry.files)
    chosen = _Chosen(
        folder=entry.files,
        tasks=which.known(tasks, state, entry),
        generation=generation,
        streams=("err",) if err else ("out",) if out or raw else _BOTH,
    )
    chosen.check(state)
    start = parse_since(since, time.time()) if since is not None else None
    say = _printer(chosen.tasks, times=merged, names=merged or len(chosen.tasks) > 1, json=json)
    if follow:
        view = _FollowRaw(chosen) if raw else _FollowLines(chosen, say, start)
        with followed(entry):
            Follower(entry.files, view, broken=broken_after(entry), ask=ASK).run()
    elif raw:
        _FollowRaw(chosen).update(state, ())
    elif merged or json:
        for line in timeline.merged(chosen.files(state), since=start):
            say(line)
    else:
        _one_by_one(chosen, state, start)
    return 0


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class _Chosen:
    """Which logs were asked for."""

    folder: RunFolder
    tasks: tuple[TaskId, ...]
    #: None for the newest.
    generation: int | None
    streams: tuple[str, ...]

    def check(self, state: RunState) -> None:
        """Raises InputError for a generation that the run has not had."""
        newest = max(state.generation, *(log.generation for log in self.folder.log_files()), 1)
        if self.generation is not None and not 1 <= self.generation <= newest:
            has = "generation 1 only" if newest == 1 else f"generations 1 to {newest}"
            raise InputError(f"{state.run or self.folder.run} has {has}", hint="without --generation: the newest")

    def files(self, state: RunState, task: TaskId | None = None) -> list[LogFile]:
        """Those that are there, and those that the newest attempt is about to make."""
        found: dict[LogFile, None] = {}
        generation = self.generation or max(state.generation, 1)
        for name in self.tasks if task is None else (task,):
            known = state.tasks.get(name)
            coming = attempt_logs(self.folder, name, known.generation, known.attempt) if known else ()
            for log in (*self.folder.log_files(name), *coming):
                if log.generation == generation and log.stream in self.streams:
                    found[log] = None
        return list(found)


def _printer(tasks: Sequence[TaskId], *, times: bool, names: bool, json: bool) -> Print:
    ink = Ink.of(sys.stdout)
    pad = max((len(str(task)) for task in tasks), default=0)
    heads = {task: ink.task(f"{str(task).ljust(pad)} | ", n) if names else "" for n, task in enumerate(tasks)}

    def as_json(line: Line) -> None:
        log, text = line.log, redact(line.text)
        data = {"time": stamp(line.ns), "task": str(log.task), "generation": log.generation, "attempt": log.attempt}
        print(encoder.dumps({**data, "stream": log.stream, "line": text}))

    def as_text(line: Line) -> None:
        when = f"{ink(stamp(line.ns), 'dim')} " if times else ""
        print(f"{when}{heads[line.log.task]}{redact(visible(line.text))}")

    return as_json if json else as_text


def _one_by_one(chosen: _Chosen, state: RunState, since: int | None) -> None:
    """Task by task, the first to fail before the others."""
    first = state.culprit.task if state.culprit else None
    ink = Ink.of(sys.stdout)
    say = _printer(chosen.tasks, times=False, names=False, json=False)
    for number, task in enumerate(sorted(chosen.tasks, key=lambda task: task != first)):
        if len(chosen.tasks) > 1:
            known = state.tasks.get(task)
            where = f" on {host_name(state, known.host)}" if known and known.host is not None else ""
            phase = f" {known.phase.value}" if known else ""
            role = ", first" if task == first else ""
            print(("\n" if number else "") + ink(f"==> {task}{where}{phase}{role} <==", "bold"))
        for line in timeline.merged(chosen.files(state, task), since=since):
            say(line)


class _FollowLines:
    """A view of the logs alone, as they grow."""

    def __init__(self, chosen: _Chosen, say: Print, since: int | None) -> None:
        self._chosen, self._say = chosen, say
        self._growing = timeline.Growing(since=since)
        self._state: RunState | None = None
        self._files: list[LogFile] = []

    def update(self, state: RunState, records: Sequence[Record]) -> None:
        if self._state is None or records:
            self._state, self._files = state, self._chosen.files(state)
        now = time.time_ns()
        new = False
        for line in self._growing.new(self._files, now=now, last=state.phase.terminal):
            self._say(line)
            new = True
        if new:
            sys.stdout.flush()

    def say(self, message: str) -> None:
        """Nobody has a word of its own here."""

    def close(self, state: RunState) -> None:
        """Nothing is open between two looks."""


class _FollowRaw:
    """A view of exact bytes: one log after the other, each from its beginning."""

    def __init__(self, chosen: _Chosen) -> None:
        self._chosen = chosen
        self._files: dict[LogFile, GrowingFile] = {}

    def update(self, state: RunState, records: Sequence[Record]) -> None:
        if records or not self._files:
            for log in self._chosen.files(state):
                self._files.setdefault(log, GrowingFile(log.path))
        for file in self._files.values():
            while data := file.read(last=True):
                sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()

    def say(self, message: str) -> None:
        """Nobody has a word of its own here."""

    def close(self, state: RunState) -> None:
        """As above."""
