"""`phalanx plan`: what `run` would start, before anything has."""

from __future__ import annotations

import json as json_text
import os
import socket
import sys
from pathlib import Path
from typing import Annotated

import cyclopts

from phalanx.cli import which
from phalanx.cli.jobflags import JobFlags

_OUTPUT = cyclopts.Group("Output", sort_key=5)
_AS_RUN = "Taken so that `run` and `plan` may be swapped; changes nothing here."


def plan(
    *command: str,
    flags: Annotated[JobFlags, cyclopts.Parameter(name="*")] = JobFlags(),  # noqa: B008 - frozen
    runs: Annotated[Path | None, cyclopts.Parameter(group=_OUTPUT)] = None,
    json: Annotated[bool, cyclopts.Parameter(negative=(), group=_OUTPUT)] = False,
    detach: Annotated[bool, cyclopts.Parameter(negative=(), group=_OUTPUT, help=_AS_RUN)] = False,
    quiet: Annotated[bool, cyclopts.Parameter(negative=(), group=_OUTPUT, help=_AS_RUN)] = False,
) -> int:
    """Show what `run` would start: cluster, tasks, addresses, interpreter, environment, command.

    Starts nothing and writes nothing. Ports are examples: the real ones are held when the run starts. Takes the flags
    of `run`; everything after the script belongs to the script.

    Examples:
      phalanx plan --workers 4 --ps 2 train.py
      phalanx plan job.yaml --json

    Parameters
    ----------
    command
        The script (or any command) and its arguments, or a job.yaml.
    runs
        Where run folders would be made (PHALANX_RUNS, else ./runs).
    json
        Print the whole plan as JSON, every task's TF_CONFIG included.
    """
    from phalanx.agent import facts  # noqa: PLC0415 - not for --help
    from phalanx.cli.findings import encodable  # noqa: PLC0415 - as above
    from phalanx.job.declare import declare  # noqa: PLC0415 - pydantic and YAML, not for --help
    from phalanx.job.show import as_json, as_lines  # noqa: PLC0415 - as above
    from phalanx.plan.bind import bind  # noqa: PLC0415 - as above
    from phalanx.plan.preview import preview_hosts  # noqa: PLC0415 - as above

    del detach, quiet
    declared = declare(command, flags.flags(), cwd=Path.cwd(), environ=os.environ)
    run = f"{declared.outline.name}-<time>"
    folder = which.runs_folder(runs) / run
    hosts = preview_hosts(
        declared.outline,
        name=socket.gethostname().partition(".")[0] or "localhost",
        folder=str(folder),
        machine=facts.this_machine(os.environ),
    )
    bound = bind(declared.outline, hosts, run=run, generation=1)
    if json:
        print(json_text.dumps(as_json(declared, bound), indent=2))
    else:
        sys.stdout.write(encodable("".join(f"{line}\n" for line in as_lines(declared, bound))))
    return 0
