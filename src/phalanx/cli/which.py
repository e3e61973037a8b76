"""Which run and which of its tasks a verb is about."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from phalanx.audience import leads
from phalanx.errors import InputError, RunNotFoundError
from phalanx.names import TaskId, training_order
from phalanx.records.index import LAST, Entry, Index
from phalanx.records.reader import read_state
from phalanx.remote import Where, adopt
from phalanx.remote import caught_up as caught_up  # noqa: PLC0414 - for verbs that find a run otherwise
from phalanx.states import RunState

Run = Annotated[
    str, Parameter(name="RUN", help="A run's name or the beginning of it, `last`, or its folder.", show_default=False)
]


AnyRun = Annotated[
    str | None,
    Parameter(name="RUN", help="A run's name or the beginning of it, `last`, or its folder.", show_default=False),
]


def runs_folder(asked: Path | None) -> Path:
    """Where run folders are made: the one asked for, else PHALANX_RUNS, else ./runs."""
    return Path.cwd() / (asked or os.environ.get("PHALANX_RUNS") or "runs")


def find(run: str, where: Where | None = None) -> Entry:
    """The run, with a folder to read; with `where` one of a cluster that nobody here need know.

    One in a cluster is brought up to date. Raises RunNotFoundError.
    """
    entry = known_as(run, where)
    if not entry.files.path.is_dir():
        other = "`phalanx ps --all` lists the other runs"
        hint = f"its lead still answers: phalanx stop {entry.run}" if leads(entry) else other
        raise RunNotFoundError(f"the folder of {entry.run} is gone: {entry.folder}", hint=hint)
    return caught_up(entry)


def known_as(run: str, where: Where | None = None) -> Entry:
    """The run, whether its folder is still there or not. Raises RunNotFoundError."""
    if where is not None:
        return adopt(run, where)
    index = Index()
    entry = index.find(run)
    warn(index)
    return entry


def going(run: str, where: Where | None = None) -> tuple[Entry, RunState]:
    """The run and how it stands, where it goes on. Raises RunNotFoundError, InputError for one that has ended."""
    entry = find(run, where)
    state = read_state(entry.files)
    if state.phase.terminal:
        raise InputError(f"{entry.run} has ended already", hint="phalanx run starts another")
    return entry, state


def warn(index: Index) -> None:
    """Say which files of the index are not trusted."""
    for message in index.refused:
        sys.stderr.write(f"phalanx: warning: {message}\n")


def split(words: Sequence[str]) -> tuple[str, tuple[TaskId, ...]]:
    """`[RUN] [TASK…]` told apart by form: a task has a colon. Without RUN it is the last one. Raises InputError."""
    runs: list[str] = []
    tasks: list[TaskId] = []
    for word in words:
        try:
            tasks.append(TaskId.parse(word))
        except ValueError:
            if ":" in word and not Path(word).exists():
                raise InputError(
                    f"{word!r} is no task", hint="a task is written TYPE:INDEX, such as worker:0"
                ) from None
            runs.append(word)
    if len(runs) > 1:
        raise InputError(f"{runs[0]!r} and {runs[1]!r} both look like a run", hint="a task is written TYPE:INDEX")
    return (runs[0] if runs else LAST), tuple(tasks)


def known(tasks: Sequence[TaskId], state: RunState, entry: Entry) -> tuple[TaskId, ...]:
    """These tasks, or all of the run. Raises InputError for one that it does not have."""
    there = sorted({*state.tasks, *(log.task for log in entry.files.log_files())}, key=training_order)
    for task in tasks:
        if task not in there:
            names = ", ".join(map(str, there[:8])) + (", …" if len(there) > 8 else "")  # noqa: PLR2004 - a line's worth
            raise InputError(f"{entry.run} has no {task}", hint=f"it has {names}" if there else "it has no tasks yet")
    return tuple(dict.fromkeys(tasks)) or tuple(there)
