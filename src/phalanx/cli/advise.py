"""`phalanx advise`: which strategy, how many workers and servers, and why."""

from __future__ import annotations

import dataclasses
import json as encoder
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import cyclopts

from phalanx.cli import measuring
from phalanx.cli.looking import looked_at, number, option, positive
from phalanx.cli.values import read
from phalanx.errors import InputError

if TYPE_CHECKING:
    from phalanx.network.measured import Measured
    from phalanx.sizing.model import Model
    from phalanx.sizing.place import Place

_MODEL = cyclopts.Group("Model", sort_key=1)
_PLACE = cyclopts.Group("Place", sort_key=2)
_MEASURE = cyclopts.Group("Measuring hosts", sort_key=3)
_LOOK = cyclopts.Group("Look", sort_key=4)
#: Examples of one step where neither a script nor a flag says it.
_BATCH = 32
#: Workers where nobody says it and no hosts are measured.
_WORKERS = 2
_OUTPUT = cyclopts.Group("Output", sort_key=5)


def advise(
    *command: str,
    workers: Annotated[int | None, number(_PLACE)] = None,
    ps: Annotated[int | None, number(_PLACE)] = None,
    hosts: Annotated[int | None, number(_PLACE)] = None,
    memory: Annotated[str | None, option(_PLACE)] = None,
    cores: Annotated[int | None, number(_PLACE)] = None,
    bandwidth: Annotated[str | None, option(_PLACE)] = None,
    measure: Annotated[str | None, option(_MEASURE)] = None,
    through: Annotated[str, option(_MEASURE)] = measuring.THROUGH,
    probe_time: Annotated[str, option(_MEASURE)] = measuring.SECONDS,
    ports: Annotated[str | None, option(_MEASURE)] = None,
    save: Annotated[Path | None, option(_MEASURE)] = None,
    measured: Annotated[Path | None, option(_MEASURE)] = None,
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
    from this machine where flags do not say it; --measure finds out how much several of them carry to each other, and
    does so without a training as well. What a step takes is reckoned for CPUs; for GPUs say --step.

    Examples:
      phalanx advise --workers 4 train.py --epochs 3
      phalanx advise --parameters 25M --batch 256 --workers 8 --hosts 8 --memory 64Gi --bandwidth 10Gbit --step 120ms
      phalanx advise --tables 160Mx64 --optimizer adagrad --batch 4096 --workers 4 --hosts 6 --memory 64Gi
      phalanx advise --measure n[1-4] --save hosts.json train.py

    Parameters
    ----------
    command
        The script and its arguments.
    workers
        For so many workers (2; one on each host that was measured).
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
    measure
        Measure these hosts, by pairs and all at once: n1,n2 or n[1-4], with NAME=ADDRESS where the others need another.
    through
        What runs a command on {host}, without a question (ssh -o BatchMode=yes -o ConnectTimeout=10 {host}).
    probe_time
        So long for each round of pairs (500ms).
    ports
        Hosts call each other at ports A-B only, for firewalls (any).
    save
        Write what was measured to this file.
    measured
        Take it from that file again.
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
    from phalanx.sizing import given, network, words  # noqa: PLC0415 - as above
    from phalanx.sizing.verdict import advise as decide  # noqa: PLC0415 - as above

    positive(workers=workers, hosts=hosts, ids=ids, ps=ps, batch=batch)
    seconds = None if step is None else read(some_seconds, "--step", step)
    course = measuring.course(
        measure=measure, through=through, seconds=probe_time, ports=ports, save=save, measured=measured, hosts=hosts
    )
    _place(found=None, workers=1, hosts=hosts or 1, memory=memory, cores=cores, bandwidth=bandwidth)
    trains = bool(command or parameters is not None or tables)
    if command and (parameters is not None or tables):
        raise InputError("a script and --parameters both say what the model is", hint="leave one of them out")
    model = None
    if not command and (trains or course is None):
        model = given.model(parameters=parameters, tables=tables, optimizer=optimizer, batch=batch or _BATCH, ids=ids)
    waiting = read(some_seconds, "--patience", patience)
    found = course() if course is not None else None
    workers = workers or (len(found.hosts) if found is not None else _WORKERS)
    place = _place(found=found, workers=workers, hosts=hosts or 1, memory=memory, cores=cores, bandwidth=bandwidth)
    if command:
        if found is not None and not json:
            sys.stdout.write("".join(f"{line}\n" for line in network.lines(found)))
            sys.stdout.flush()
        seen = looked_at(advise, command, python, waiting)
        model, place = _of_batch(seen.model, batch, command), dataclasses.replace(place, core=seen.core)
    told: list[str] = [] if found is None or command else network.lines(found)
    as_json: dict[str, Any] = {} if found is None else {"network": network.as_json(found)}
    if model is not None:
        if seconds is not None:
            model = model.timed(seconds, workers)
        if facts.gpu_count() and seconds is None:
            sys.stderr.write("phalanx: there are GPUs here, and a step is reckoned for CPUs: say --step 120ms\n")
        advice = decide(model, place, workers, ps=ps)
        if found is not None:
            advice = dataclasses.replace(advice, reasons=(*advice.reasons, *network.reasons(found, place)))
        told += words.lines(advice, model, place)
        as_json = words.as_json(advice, model, place) | as_json
    sys.stdout.write(encoder.dumps(as_json, indent=2) + "\n" if json else "".join(f"{line}\n" for line in told))
    return 0


def _of_batch(model: Model, batch: int | None, command: tuple[str, ...]) -> Model:
    changed = model if batch is None else model.of_batch(batch)
    if not changed.batch:
        from phalanx.decide.strayed import misplaced  # noqa: PLC0415 - not for --help

        behind = any(word.partition("=")[0] == "--batch" for word in command)
        hint = misplaced(["--batch"], "the script") if behind else "say it: --batch 256, before the script"
        raise InputError("the script does not say how large its batch is", hint=hint)
    return changed


def _place(
    *,
    found: Measured | None,
    workers: int,
    hosts: int,
    memory: str | None,
    cores: int | None,
    bandwidth: str | None,
) -> Place:
    """What was measured, what this machine is where nothing was, and above all what flags say."""
    from phalanx.agent import facts  # noqa: PLC0415 - not for --help
    from phalanx.job.units import size  # noqa: PLC0415 - as above
    from phalanx.sizing import given, network  # noqa: PLC0415 - as above
    from phalanx.sizing.place import BANDWIDTH, RTT, Place  # noqa: PLC0415 - as above

    positive(cores=cores)
    room = read(size, "--memory", memory) if memory is not None else None
    if memory is not None and not room:
        raise InputError(f"--memory {memory}: a host has some", hint="write 64Gi or 512GB, of one host")
    link = given.rate("--bandwidth", bandwidth) if bandwidth is not None else None
    if found is not None:
        place = network.place(found, workers)
    else:
        several = hosts > 1
        place = Place(
            hosts=hosts,
            cores=facts.cpu_count(),
            memory=facts.memory_bytes(),
            bandwidth=BANDWIDTH if several else None,
            rtt=RTT if several else 0.0,
        )
    if link is not None and place.bandwidth is not None:
        place = dataclasses.replace(place, bandwidth=link, ring=None)
    return dataclasses.replace(place, cores=cores or place.cores, memory=room or place.memory)
