"""`phalanx bench`: a script for some steps at several sizes, beside what was reckoned."""

from __future__ import annotations

import json as encoder
import os
import re
import sys
from pathlib import Path
from typing import Annotated

import cyclopts

from phalanx.cli.looking import looked_at, number, option, positive
from phalanx.cli.values import read
from phalanx.errors import InputError

_SIZE = cyclopts.Group("Size", sort_key=1)
_TRAINING = cyclopts.Group("Training", sort_key=4)
_OUTPUT = cyclopts.Group("Output", sort_key=5)


def bench(
    *command: str,
    workers: Annotated[str, option(_SIZE)] = "1,2",
    ps: Annotated[int | None, number(_SIZE)] = None,
    steps: Annotated[int, number(_TRAINING)] = 50,
    seconds: Annotated[str, option(_TRAINING)] = "5s",
    patience: Annotated[str, option(_TRAINING)] = "5m",
    python: Annotated[str | None, option(_TRAINING)] = None,
    json: Annotated[bool, option(_OUTPUT)] = False,
) -> int:
    """Run a script for some steps at several sizes, and print what that took beside what `phalanx advise` reckons.

    Trains on this machine, one size after the other, and stops each by force when its steps are done. Runs lie in a
    folder that is thrown away, {checkpoint} of the command too; what else the script writes, it writes.
    Exits 0 when every size was measured, 4 when it was stopped.

    Examples:
      phalanx bench --workers 1,2,4 train.py --ckpt {checkpoint}
      phalanx bench --workers 2,4 --ps 1 --steps 500 train.py

    Parameters
    ----------
    command
        The script and its arguments.
    workers
        The sizes, by comma (1,2).
    ps
        With so many parameter servers, and a chief.
    steps
        At least so many steps of each size (50), after ten that are not counted.
    seconds
        For at least so long (5s).
    patience
        A size that has not done its steps by then has failed (5m).
    python
        The interpreter for the script (found: see `phalanx plan`).
    json
        Print it all as JSON.
    """
    from phalanx.agent import facts  # noqa: PLC0415 - not for --help
    from phalanx.job.flags import Flags  # noqa: PLC0415 - as above
    from phalanx.job.units import some_seconds  # noqa: PLC0415 - as above
    from phalanx.measure import Wanted, measure  # noqa: PLC0415 - as above
    from phalanx.sizing.compare import as_json, beside, busy, lines  # noqa: PLC0415 - as above
    from phalanx.sizing.place import Place  # noqa: PLC0415 - as above

    if not command:
        raise InputError("there is nothing to bench", hint="name a script: phalanx bench --workers 1,2 train.py")
    positive(steps=steps, ps=ps)
    wanted = Wanted(
        steps=steps,
        seconds=read(some_seconds, "--seconds", seconds),
        patience=read(some_seconds, "--patience", patience),
    )
    sizes = _sizes(workers)
    if others := busy(os.getloadavg()[0], facts.cpu_count()):
        _say(others)
    seen = looked_at(bench, command, python, wanted.patience)
    place = Place(cores=facts.cpu_count(), memory=facts.memory_bytes(), core=seen.core)
    rows = []
    for size in sizes:
        flags = Flags(workers=size, ps=ps, python=python)
        found = measure(
            command,
            flags,
            wanted,
            cwd=Path.cwd(),
            environ=os.environ,
            say=_say,
        )
        rows.append(beside(seen.model, place, size, ps, steps=found.steps, memory=found.memory, work=found.work))
    if json:
        print(encoder.dumps([as_json(row) for row in rows], indent=2))
    else:
        sys.stdout.write("".join(f"{line}\n" for line in lines(rows)))
    return 0


def _sizes(text: str) -> list[int]:
    if not re.fullmatch(r"[1-9]\d{0,3}(,[1-9]\d{0,3})*", text, re.ASCII):
        raise InputError(f"--workers {text}: not numbers by comma", hint="write --workers 1,2,4")
    return [int(one) for one in text.split(",")]


def _say(text: str) -> None:
    sys.stderr.write(f"phalanx: {text}\n")
