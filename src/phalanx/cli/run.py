"""`phalanx run`: start a program as a cluster on this machine and follow it to its end."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated

import cyclopts

from phalanx.cli import which
from phalanx.cli.jobflags import JobFlags
from phalanx.cli.where import Namespace

_OUTPUT = cyclopts.Group("Output", sort_key=5)


def run(
    *command: str,
    flags: Annotated[JobFlags, cyclopts.Parameter(name="*")] = JobFlags(),  # noqa: B008 - frozen
    there: Annotated[Namespace, cyclopts.Parameter(name="*")] = Namespace(),  # noqa: B008 - frozen
    detach: Annotated[bool, cyclopts.Parameter(negative=(), group=_OUTPUT)] = False,
    runs: Annotated[Path | None, cyclopts.Parameter(group=_OUTPUT)] = None,
    quiet: Annotated[bool, cyclopts.Parameter(negative=(), group=_OUTPUT)] = False,
    json: Annotated[bool, cyclopts.Parameter(negative=(), group=_OUTPUT)] = False,
) -> int:
    """Start one program as a cluster and follow it to its end.

    Everything after the script belongs to the script. A single job.yaml in its place says more than flags can.
    Exits 0 when the chief (else worker 0) has; 1 the job failed, 2 wrong input, 3 the place failed, 4 stopped.

    Examples:
      phalanx run --workers 2 train.py --epochs 3
      phalanx run --workers 2 --ps 1 train.py
      phalanx run --detach job.yaml
      phalanx run job.yaml --on kubernetes --namespace ml

    Parameters
    ----------
    command
        The script (or any command) and its arguments, or a job.yaml.
    detach
        Start the run and leave it; `phalanx attach` follows it again.
    runs
        Where run folders are made (PHALANX_RUNS, else ./runs).
    quiet
        Print how it ended and nothing else.
    json
        Print each event as a line of JSON.
    """
    from phalanx.job.declare import Declared, declare  # noqa: PLC0415 - pydantic and YAML, not for --help
    from phalanx.job.incluster import declare_in_cluster  # noqa: PLC0415 - as above
    from phalanx.job.show import note_line  # noqa: PLC0415 - as above
    from phalanx.launch import follow, launch, settled, unreported  # noqa: PLC0415 - as above
    from phalanx.observe.outlet import guarded  # noqa: PLC0415 - as above
    from phalanx.observe.report import render  # noqa: PLC0415 - as above
    from phalanx.observe.views import view_for  # noqa: PLC0415 - as above
    from phalanx.records.reader import read_plan  # noqa: PLC0415 - as above
    from phalanx.records.report import build_report  # noqa: PLC0415 - as above
    from phalanx.remote import Where  # noqa: PLC0415 - as above
    from phalanx.remote import launch as launch_there  # noqa: PLC0415 - as above
    from phalanx.states import RunPhase  # noqa: PLC0415 - as above

    where = there.where(flags.on)
    declared = (
        declare(command, flags.flags(), cwd=Path.cwd(), environ=os.environ)
        if where is None
        else declare_in_cluster(command, flags.flags(), cwd=Path.cwd())
    )
    for note in declared.notes:
        sys.stderr.write(f"phalanx: {note_line(note)}\n")
    folder = which.runs_folder(runs)
    if isinstance(declared, Declared):
        launched = launch(declared, runs=folder, environ=os.environ, attached=not detach)
    else:
        launched = launch_there(declared, where or Where(), runs=folder, attached=not detach)
    name = launched.entry.run
    out = guarded(sys.stdout, lambda why: _unheard(name, why))
    if detach:
        out.write(f"{name}\n")
        out.flush()
        try:
            state = settled(launched)
        finally:
            launched.started.let_go()
        if state.phase.terminal:
            report = build_report(state, read_plan(launched.folder), launched.folder)
            sys.stderr.write(render(report, brief=True))
            return state.end.exit_code if state.end else 3
        sys.stderr.write(f"phalanx: {name} goes on; phalanx attach {name} follows it, phalanx stop {name} ends it\n")
        return 0
    footer = f"Ctrl-C stops it; logs: phalanx logs -f {name}"
    state = follow(launched, view_for(launched.folder, out, quiet=quiet, json=json, footer=footer))
    if state.phase is not RunPhase.LOST and (missing := unreported(launched.folder)) is not None:
        sys.stderr.write(f"phalanx: {missing}\n")
    return state.end.exit_code if state.end else 3


def _unheard(run: str, why: str) -> None:
    """The view is for people; that nobody reads it any more is no reason to end a training."""
    sys.stderr.write(f"phalanx: standard output takes no more ({why}), the run goes on; phalanx logs -f {run}\n")
