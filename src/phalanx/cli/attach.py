"""`phalanx attach`."""

from __future__ import annotations

import sys
from typing import Annotated

from cyclopts import Parameter

from phalanx.cli import which
from phalanx.observe.follow import Follower
from phalanx.observe.standing import ASK, broken_after
from phalanx.observe.views import view_for
from phalanx.records.index import LAST


def attach(
    run: which.Run = LAST,
    /,
    *,
    quiet: Annotated[bool, Parameter(negative=(), help="The result alone.")] = False,
    json: Annotated[bool, Parameter(negative=(), help="Each event as a line of JSON.")] = False,
) -> int:
    """Follow a run to its end, and exit as it does. Ctrl-C leaves it: the run goes on.

    A run that has ended already is shown with its report.

    Examples:
      phalanx attach
      phalanx attach digits-1130-073311 --quiet
    """
    entry = which.find(run)
    footer = f"Ctrl-C detaches, the run goes on; to end it: phalanx stop {entry.run}"
    view = view_for(entry.files, sys.stdout, quiet=quiet, json=json, footer=footer)
    try:
        state = Follower(entry.files, view, broken=broken_after(entry), ask=ASK).run()
    except KeyboardInterrupt:
        sys.stderr.write(f"\nphalanx: detached, the run goes on; again: phalanx attach {entry.run}\n")
        return 0
    return state.end.exit_code if state.end else 0
