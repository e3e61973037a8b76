"""`phalanx events`."""

from __future__ import annotations

import json as encoder
import sys
from collections.abc import Sequence
from typing import Annotated

from cyclopts import Parameter

from phalanx.cli import which
from phalanx.events import Record
from phalanx.observe.follow import Follower
from phalanx.observe.standing import ASK, broken_after
from phalanx.observe.words import describe, stamp
from phalanx.records.index import LAST
from phalanx.records.reader import Tail, fold_on, with_skipped
from phalanx.redact import redact
from phalanx.remote import followed
from phalanx.states import RunState


def events(
    run: which.Run = LAST,
    /,
    *,
    follow: Annotated[bool, Parameter(name=["--follow", "-f"], negative=(), help="Until the run has ended.")] = False,
    json: Annotated[bool, Parameter(negative=(), help="As the records hold them, one JSON object a line.")] = False,
) -> int:
    """Print what has happened in a run: one line an event, with the time on the host where it happened.

    Examples:
      phalanx events
      phalanx events -f --json last
    """
    entry = which.find(run)
    lines = _Lines(json=json)
    if follow:
        with followed(entry):
            Follower(entry.files, lines, broken=broken_after(entry), ask=ASK).run()
        return 0
    tail = Tail(entry.files.events)
    records = tail.poll()
    tail.close()
    lines.update(fold_on(RunState(), records), records)
    for note in with_skipped(RunState(), tail.skipped, entry.files.events.name).notes:
        sys.stderr.write(f"phalanx: {note.message}\n")
    return 0


class _Lines:
    """A view of events alone."""

    def __init__(self, *, json: bool) -> None:
        self._json = json

    def update(self, state: RunState, records: Sequence[Record]) -> None:
        for record in records:
            if self._json:
                print(encoder.dumps(record.to_json(), separators=(",", ":")))
            else:
                when = stamp(int(record.event.time * 1_000_000_000))
                print(f"{when} {record.seq:>4} {redact(describe(record.event, state, record.epoch))}")
        if records:
            sys.stdout.flush()

    def say(self, message: str) -> None:
        """Nobody has a word of its own here."""

    def close(self, state: RunState) -> None:
        if state.end is not None and state.end.outcome == "lost":
            sys.stderr.write(f"phalanx: {state.end.cause}\n")
