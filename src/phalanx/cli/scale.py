"""`phalanx scale`."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

from phalanx.audience import audience
from phalanx.cli import which
from phalanx.cli.asker import asker, patiently
from phalanx.cli.values import whole
from phalanx.cli.where import There
from phalanx.decide.elastic import workers as running
from phalanx.protocol import people


def scale(
    run: which.Run,
    workers: Annotated[int, Parameter(help="How many workers from now on.", converter=whole)],
    /,
    *,
    there: Annotated[There, Parameter(name="*")] = There(),  # noqa: B008 - frozen
) -> int:
    """Give a run another number of workers: they stop where all can save, and start again as the next generation.

    The run must have been started with a range (`--min-workers`, `--max-workers`, or `min` and `max` of the worker
    role). What is asked for stays until the next `scale`: a host that comes later makes it no larger.

    For example:
      phalanx run --workers 2 --max-workers 4 train.py
      phalanx scale last 4
    """
    entry, state = which.going(run, there.where)
    by = asker("scale")
    audience(entry, lambda address, token: people.scale(address, token, workers=workers, by=by), say=patiently)
    now = running(state.tasks)
    print(f"{entry.run}: {workers} workers asked for, {now} run now; phalanx attach {entry.run} shows the change")
    return 0
