"""`phalanx report`."""

from __future__ import annotations

import json as encoder
import shutil
import sys
from typing import Annotated

from cyclopts import Parameter

from phalanx.cli import which
from phalanx.cli.where import There
from phalanx.observe.ink import Ink
from phalanx.observe.report import render
from phalanx.observe.standing import counted, standing
from phalanx.records.index import LAST
from phalanx.records.reader import read_plan
from phalanx.records.report import build_report


def report(
    run: which.Run = LAST,
    /,
    *,
    json: Annotated[bool, Parameter(negative=(), help="The whole report for scripts.")] = False,
    there: Annotated[There, Parameter(name="*")] = There(),  # noqa: B008 - frozen
) -> int:
    """Say how a run ended, why, and what to do next; or how it stands, while it goes on.

    The first failure is on top: who, why, its last lines, and who only followed.

    Examples:
      phalanx report
      phalanx report digits-1130-073311 --json
    """
    entry = which.find(run, there.where)
    made = build_report(counted(standing(entry), entry), read_plan(entry.files), entry.files)
    if json:
        print(encoder.dumps(made.to_json(), indent=1))
    else:
        width = shutil.get_terminal_size().columns if sys.stdout.isatty() else 160
        sys.stdout.write(render(made, width=width, ink=Ink.of(sys.stdout)))
    return 0
