"""`phalanx diagnose`."""

from __future__ import annotations

import contextlib
import json as encoder
import shutil
import sys
from typing import Annotated

from cyclopts import Parameter

from phalanx.cli import which
from phalanx.decide.slowness import Look
from phalanx.errors import PlaceError
from phalanx.observe.diagnosis import looked_back, render
from phalanx.observe.ink import Ink
from phalanx.observe.standing import standing
from phalanx.plan.wire import WireError, from_wire, to_wire
from phalanx.protocol import people
from phalanx.records.index import LAST, Entry
from phalanx.states import RunState


def diagnose(
    run: which.Run = LAST,
    /,
    *,
    json: Annotated[bool, Parameter(negative=(), help="Every figure, for scripts.")] = False,
) -> int:
    """Say where the time of a run goes: computing, in collectives, on which link; and who makes it slow.

    A task that computes, sleeps or reads for longer than the others is waited for in each step: it is the one with the
    least time in collectives. What a link `carries` is counted only while something is under way.

    Examples:
      phalanx diagnose
      phalanx diagnose digits-1130-073311 --json
    """
    entry = which.find(run)
    state = standing(entry)
    look = _look(entry, state)
    if json:
        told = {"run": entry.run, "state": state.phase.value, "generation": state.generation}
        seen = [{"ended": one.ended, **to_wire(one.found)} for one in state.slow]
        print(encoder.dumps({**told, "look": to_wire(look), "seen": seen}, indent=1))
        return 0
    span = "from its start to its end" if state.phase.terminal else "the last half minute"
    print(f"{entry.run} {state.phase.value}, generation {state.generation}, {span}")
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else 160
    text = render(look, width=width, ink=Ink.of(sys.stdout))
    sys.stdout.write(text or "  nothing was measured: no host has told of a task that runs; they do every 5 s\n")
    return 0


def _look(entry: Entry, state: RunState) -> Look:
    """What the lead sees now; of a run that nobody leads any more, all of its newest generation."""
    if not state.phase.terminal:
        with contextlib.suppress(PlaceError, WireError):
            return from_wire(Look, people.slow(entry.address, entry.token), "look")
    return looked_back(state, entry.files)
