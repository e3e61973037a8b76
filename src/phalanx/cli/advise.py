"""`phalanx advise`: which strategy, how many workers and servers, and why."""

from __future__ import annotations

import dataclasses
import json as encoder
import sys
from typing import TYPE_CHECKING, Annotated

import cyclopts

from phalanx.cli.looking import looked_at, number, option, positive
from phalanx.cli.values import read
from phalanx.errors import InputError

if TYPE_CHECKING:
    from phalanx.sizing.model import Model
    from phalanx.sizing.place import Place

_MODEL = cyclopts.Group("Model", sort_key=1)
_PLACE = cyclopts.Group("Place", sort_key=2)
_LOOK = cyclopts.Group("Look", sort_key=3)
#: Examples of one step where neither a script nor a flag says it.
_BATCH = 32
_OUTPUT = cyclopts.Group("Output", sort_key=5)


def advise(
    *command: str,
    workers: Annotated[int, number(_PLACE)] = 2,
    ps: Annotated[int | None, number(_PLACE)] = None,
    hosts: Annotated[int, number(_PLACE)] = 1,
    memory: Annotated[str | None, option(_PLACE)] = None,
    cores: Annotated[int | None, number(_PLACE)] = None,
    bandwidth: Annotated[str | None, option(_PLACE)] = None,
    parameters: Annotated[str | None, option(_MODEL)] = None,
    tables: Annotated[tuple[str, ...], option(_MODEL)] = (),
    ids: Annotated[int, number(_MODEL)] = 1,
    optimizer: Annotated[str, option(_MODEL)] = "adam",
    batch: Annotated[int | None, number(_MODEL)] = None,
    step: Annotated[str | None, option(_MODEL)] = None,
    python: Annotated[str | None, option(_LOOK)] = None,
    patience: Annotated[str, option(_LOOK)] = "2m",
    json: Annotated[bool, option(_OUTPUT)] = False,
) -> int:
    """Say which strategy fits a training, what it needs and how fast it goes, and why.

    With a script: runs it in a process of its own until its first training step, which is traced and not executed.
    Nothing is trained; checkpoints and callbacks of `fit` are left out. What else the script does before it trains
    (reads data, makes folders) it does. Without one: goes by --parameters and --tables. What the hosts are is read
    from this machine where flags do not say it. What a step takes is reckoned for CPUs; for GPUs say --step.

    Examples:
      phalanx advise --workers 4 train.py --epochs 3
      phalanx advise --parameters 25M --batch 256 --workers 8 --hosts 8 --memory 64Gi --bandwidth 10Gbit --step 120ms
      phalanx advise --tables 160Mx64 --optimizer adagrad --batch 4096 --workers 4 --hosts 6 --memory 64Gi

    Parameters
    ----------
    command
        The script and its arguments.
    workers
        For so many workers (2).
    ps
        With so many parameter servers (the fewest that hold the model and are no brake).
    hosts
        They have so many hosts (1), all alike.
    memory
        Memory of one host (this machine's).
    cores
        Cores of one host (this machine's).
    bandwidth
        From one host to another: 10Gbit or 1.25GB, a second (10Gbit). One host has none.
    parameters
        Parameters of dense layers: 25M.
    tables
        An embedding table, ROWSxCOLUMNS: 10Mx64 (may be repeated).
    ids
        Rows that one example takes from each table (1).
    optimizer
        sgd, momentum, adagrad, rmsprop, adam and their like (adam).
    batch
        Examples of one step of all workers together (the script's; else 32).
    step
        What one step takes on one worker by itself, at its part of the batch (--batch / --workers): 120ms (reckoned).
    python
        The interpreter for the script (found: see `phalanx plan`).
    patience
        The script has so long to come to its first step (2m).
    json
        Print it all as JSON.
    """
    from phalanx.agent import facts  # noqa: PLC0415 - not for --help
    from phalanx.job.units import some_seconds  # noqa: PLC0415 - as above
    from phalanx.sizing import given, words  # noqa: PLC0415 - as above
    from phalanx.sizing.verdict import advise as decide  # noqa: PLC0415 - as above

    positive(workers=workers, hosts=hosts, ids=ids, ps=ps, batch=batch)
    seconds = None if step is None else read(some_seconds, "--step", step)
    place = _place(hosts=hosts, memory=memory, cores=cores, bandwidth=bandwidth)
    if command:
        if parameters is not None or tables:
            raise InputError("a script and --parameters both say what the model is", hint="leave one of them out")
        seen = looked_at(advise, command, python, read(some_seconds, "--patience", patience))
        model, place = _of_batch(seen.model, batch, command), dataclasses.replace(place, core=seen.core)
    else:
        model = given.model(parameters=parameters, tables=tables, optimizer=optimizer, batch=batch or _BATCH, ids=ids)
    if seconds is not None:
        model = model.timed(seconds, workers)
    if facts.gpu_count() and seconds is None:
        sys.stderr.write("phalanx: there are GPUs here, and a step is reckoned for CPUs: say --step 120ms\n")
    advice = decide(model, place, workers, ps=ps)
    if json:
        print(encoder.dumps(words.as_json(advice, model, place), indent=2))
    else:
        sys.stdout.write("".join(f"{line}\n" for line in words.lines(advice, model, place)))
    return 0


def _of_batch(model: Model, batch: int | None, command: tuple[str, ...]) -> Model:
    changed = model if batch is None else model.of_batch(batch)
    if not changed.batch:
        from phalanx.decide.strayed import misplaced  # noqa: PLC0415 - not for --help

        behind = any(word.partition("=")[0] == "--batch" for word in command)
        hint = misplaced(["--batch"], "the script") if behind else "say it: --batch 256, before the script"
        raise InputError("the script does not say how large its batch is", hint=hint)
    return changed


def _place(*, hosts: int, memory: str | None, cores: int | None, bandwidth: str | None) -> Place:
    from phalanx.agent import facts  # noqa: PLC0415 - not for --help
    from phalanx.job.units import size  # noqa: PLC0415 - as above
    from phalanx.sizing import given  # noqa: PLC0415 - as above
    from phalanx.sizing.place import BANDWIDTH, RTT, Place  # noqa: PLC0415 - as above

    positive(cores=cores)
    room = read(size, "--memory", memory) if memory is not None else facts.memory_bytes()
    if memory is not None and not room:
        raise InputError(f"--memory {memory}: a host has some", hint="write 64Gi or 512GB, of one host")
    link = given.rate("--bandwidth", bandwidth) if bandwidth is not None else BANDWIDTH
    return Place(
        hosts=hosts,
        cores=cores or facts.cpu_count(),
        memory=room,
        bandwidth=link if hosts > 1 else None,
        rtt=RTT if hosts > 1 else 0.0,
    )
