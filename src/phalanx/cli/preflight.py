"""`phalanx preflight`: everything that is looked at before a run starts, and no run."""

from __future__ import annotations

import json as json_text
import os
import sys
from pathlib import Path
from typing import Annotated

import cyclopts

from phalanx.cli import which
from phalanx.cli.jobflags import JobFlags

_OUTPUT = cyclopts.Group("Output", sort_key=5)


def preflight(
    *command: str,
    flags: Annotated[JobFlags, cyclopts.Parameter(name="*")] = JobFlags(),  # noqa: B008 - frozen
    runs: Annotated[Path | None, cyclopts.Parameter(group=_OUTPUT)] = None,
    json: Annotated[bool, cyclopts.Parameter(negative=(), group=_OUTPUT)] = False,
) -> int:
    """Look at everything that would stop a run, and start nothing.

    Starts an agent on each host, lets it look, and prints a line for each check. Takes the flags of `run`. Leaves no
    run behind. Exits 0 where nothing fatal was found, 2 where something was, 3 where the hosts could not be asked.

    Examples:
      phalanx preflight --workers 4 train.py
      phalanx preflight job.yaml --json

    Parameters
    ----------
    command
        The script (or any command) and its arguments, or a job.yaml.
    runs
        Where run folders would be made (PHALANX_RUNS, else ./runs).
    json
        Print the checks as JSON.
    """
    from phalanx.cli.findings import encodable  # noqa: PLC0415 - not for --help
    from phalanx.job.declare import declare  # noqa: PLC0415 - pydantic and YAML, not for --help
    from phalanx.launch import preflight as look  # noqa: PLC0415 - as above
    from phalanx.observe.checks import as_json, render  # noqa: PLC0415 - as above

    declared = declare(command, flags.flags(), cwd=Path.cwd(), environ=os.environ)
    state = look(declared, runs=which.runs_folder(runs), environ=os.environ)
    ignored = declared.outline.policies.preflight.ignore
    if json:
        print(json_text.dumps(as_json(state, ignored), indent=2))
    else:
        sys.stdout.write(encodable(render(state, ignored)))
    return state.end.exit_code if state.end else 3
