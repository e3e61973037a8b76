"""`phalanx attach`."""

from __future__ import annotations

import shutil
import sys
from typing import Annotated

from cyclopts import Parameter

from phalanx.cli import which
from phalanx.cli.streams import to_nowhere
from phalanx.cli.where import There
from phalanx.observe.follow import Follower
from phalanx.observe.ink import Ink
from phalanx.observe.report import render
from phalanx.observe.standing import ASK, broken_after, standing
from phalanx.observe.views import view_for
from phalanx.records.index import LAST
from phalanx.records.reader import read_plan
from phalanx.records.report import build_report
from phalanx.remote import followed

#: 128 + SIGPIPE, as a shell says it of one whose reader has gone: how the run ends is not known yet.
_UNHEARD = 141


def attach(
    run: which.Run = LAST,
    /,
    *,
    quiet: Annotated[bool, Parameter(negative=(), help="The result alone.")] = False,
    json: Annotated[bool, Parameter(negative=(), help="Each event as a line of JSON.")] = False,
    there: Annotated[There, Parameter(name="*")] = There(),  # noqa: B008 - frozen
) -> int:
    """Follow a run to its end, and exit as it does. Ctrl-C leaves it: the run goes on.

    A run that has ended already is shown by its report; `phalanx logs` has what its tasks wrote.

    Examples:
      phalanx attach
      phalanx attach digits-1130-073311 --quiet
      phalanx attach ctr-1130-120000 --on kubernetes --namespace ml
    """
    entry = which.find(run, there.where)
    if not json and (state := standing(entry)).phase.terminal:
        report = build_report(state, read_plan(entry.files), entry.files)
        width = shutil.get_terminal_size().columns if sys.stdout.isatty() else 160
        sys.stdout.write(render(report, width=width, ink=Ink.of(sys.stdout), brief=quiet))
        return state.end.exit_code if state.end else 0
    footer = f"Ctrl-C detaches, the run goes on; to end it: phalanx stop {entry.run}"
    view = view_for(entry.files, sys.stdout, quiet=quiet, json=json, footer=footer)
    try:
        with followed(entry):
            state = Follower(entry.files, view, broken=broken_after(entry), ask=ASK).run()
    except KeyboardInterrupt:
        sys.stderr.write(f"\nphalanx: detached, the run goes on; again: phalanx attach {entry.run}\n")
        return 0
    except BrokenPipeError:
        to_nowhere()
        return _UNHEARD
    return state.end.exit_code if state.end else 0
