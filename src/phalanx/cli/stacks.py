"""`phalanx stacks`."""

from __future__ import annotations

import json as encoder
import sys
import time
from typing import Annotated, Any

from cyclopts import Parameter

from phalanx.audience import audience
from phalanx.cli import which
from phalanx.cli.asker import patiently
from phalanx.errors import InputError, PlaceError
from phalanx.events import StacksWritten
from phalanx.observe.standing import standing
from phalanx.protocol import people
from phalanx.records.index import Entry
from phalanx.records.reader import Tail
from phalanx.remote import followed, is_remote

#: Seconds that tasks have to write them, and between two looks.
_PATIENCE, _LOOK = 4.0, 0.05


def stacks(
    *names: Annotated[str, Parameter(name="[RUN] [TASK]", help="A run (last), and tasks such as worker:0 (all).")],
    json: Annotated[bool, Parameter(negative=(), help="One JSON object a task and line.")] = False,
) -> int:
    """Print where each task is now: what its threads do lies in the run's folder afterwards.

    Nothing is stopped, and no debugger is needed. Exits 3 where a task has not answered.

    Examples:
      phalanx stacks
      phalanx stacks digits-1130-073311 worker:1
    """
    run, tasks = which.split(names)
    entry = which.find(run)
    state = standing(entry)
    if state.phase.terminal:
        raise InputError(f"{entry.run} has ended: nothing of it runs", hint=f"phalanx report {entry.run}")
    wanted = which.known(tasks, state, entry) if tasks else ()
    named = [str(task) for task in wanted]
    asked = audience(
        entry, lambda address, token: people.stacks(address, token, tasks=named, by="phalanx stacks"), say=patiently
    )
    missing = [str(task) for task in asked["tasks"]]
    if not missing:
        raise InputError("none of these tasks runs", hint=f"phalanx ps {entry.run}")
    with followed(entry):
        found = _written(entry, int(asked["seq"]), missing)
    for word in found:
        _print(entry, word, json=json)
    if missing:
        raise PlaceError(
            f"no stacks within {_PATIENCE:g} s of {', '.join(missing)}", hint=f"phalanx events {entry.run}"
        )
    return 0


def _written(entry: Entry, after: int, missing: list[str]) -> list[StacksWritten]:
    """The words of the tasks in `missing`, which loses them."""
    found: list[StacksWritten] = []
    deadline = time.monotonic() + _PATIENCE
    tail = Tail(entry.files.events)
    try:
        while missing and time.monotonic() < deadline:
            for record in tail.poll():
                event = record.event
                if record.seq > after and isinstance(event, StacksWritten) and str(event.task) in missing:
                    missing.remove(str(event.task))
                    found.append(event)
            time.sleep(_LOOK)
    finally:
        tail.close()
    return sorted(found, key=lambda event: event.task)


def _print(entry: Entry, event: StacksWritten, *, json: bool) -> None:
    path = f"{event.path} of the run's folder in its pod" if is_remote(entry) else entry.files.path / event.path
    if json:
        data: dict[str, Any] = {"task": str(event.task), "path": str(path), "at": event.at, "waits": event.waits}
        print(encoder.dumps(data, separators=(",", ":")))
        return
    inside = ", waiting inside TensorFlow" if event.waits else ""
    where = f"at {event.at}{inside}" if event.at else f"no Python stacks{inside}"
    print(f"{event.task}  {where}\n  {path}")
    sys.stdout.flush()
