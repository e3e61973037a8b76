"""Advice as lines for people, and as JSON."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from phalanx.names import many
from phalanx.sizing.model import Model
from phalanx.sizing.place import Place
from phalanx.sizing.verdict import Advice, Option

_UNITS = ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB"))
_NAMES = {"mwms": "MultiWorkerMirroredStrategy", "ps": "ParameterServerStrategy"}
_ANSWERS = {"none": "train with one worker", "neither": "neither fits", **_NAMES}


def size(number: float) -> str:
    """`1.2 GB`, `340 kB`: three digits at most, in powers of ten."""
    for unit, name in _UNITS:
        if number >= unit:
            shown = number / unit
            return f"{shown:.1f} {name}" if shown < 100 else f"{shown:.0f} {name}"  # noqa: PLR2004 - three digits
    return f"{number:.0f} B"


def columns(rows: Sequence[Sequence[str]], just: Callable[[str, int], str]) -> list[str]:
    """Each row as one line, with every column as wide as its widest cell. `just`: `str.ljust` or `str.rjust`."""
    wide = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(map(just, row, wide)).rstrip() for row in rows]


def lines(advice: Advice, model: Model, place: Place) -> list[str]:
    """What there is, both ways, and the answer with its reasons."""
    told = [_model(model), _place(place), ""]
    told += [*_table(advice), *_compared(advice, model)]
    told += ["", f"advice: {_ANSWERS[advice.strategy]}", *(f"  - {reason}" for reason in advice.reasons)]
    return told


def as_json(advice: Advice, model: Model, place: Place) -> dict[str, Any]:
    """The same; all sizes in bytes, times in seconds."""
    return {
        "advice": advice.strategy,
        "reasons": list(advice.reasons),
        "model": {
            "parameters": model.parameters,
            "bytes": model.bytes,
            "slots": model.slots,
            "batch": model.batch,
            "batch_of": model.spread,
            "tables": [
                {"name": one.name, "bytes": one.bytes, "rows": one.rows, "touched": one.touched} for one in model.tables
            ],
        },
        "place": {
            "hosts": place.hosts,
            "cores": place.cores,
            "memory": place.memory,
            "bandwidth": place.bandwidth,
            "ring": place.ring,
            "rtt": place.rtt,
        },
        "alone": {"steps_per_s": advice.single.steps, "examples_per_s": advice.single.examples},
        "options": [_option(one) for one in advice.options],
    }


def _option(one: Option) -> dict[str, Any]:
    told: dict[str, Any] = {
        "strategy": one.strategy,
        "workers": one.workers,
        "fits": one.fits,
        "worker_bytes": round(one.worker.bytes),
        "host_bytes": round(one.host),
        "sent_per_step": round(one.speed.sent),
        "compute_s": one.speed.compute,
        "exchange_s": one.speed.exchange,
        "steps_per_s": one.speed.steps,
        "examples_per_s": one.speed.examples,
        "efficiency": one.efficiency,
    }
    if one.servers is not None and one.ps is not None:
        told |= {"ps": one.servers.count, "ps_bytes": round(one.ps.bytes), "partitioner": one.servers.partitioner}
    return told


def _model(model: Model) -> str:
    tables = sum(one.bytes for one in model.tables)
    share = f", {tables / model.bytes:.0%} of them in {many(len(model.tables), 'table')}" if tables else ""
    of = "of all workers together" if model.spread == "global" else "of each worker"
    slots = f", optimizer {size(model.slots)}" if model.slots else ""
    return f"model:  {size(model.bytes)} of parameters{share}{slots}; batch {model.batch} {of}"


def _place(place: Place) -> str:
    link = f", {size(place.bandwidth)}/s between them" if place.bandwidth else ""
    if place.ring:
        link += f" and {size(place.ring)}/s round the ring"
    return f"place:  {many(place.hosts, 'host')} of {many(place.cores, 'core')} and {size(place.memory)}{link}"


def _table(advice: Advice) -> list[str]:
    rows = [("", "memory of a worker", "sent a step", "steps/s", "examples/s", "efficiency", "fits")]
    rows += [
        (
            f"{one.strategy}, {many(one.workers, 'worker')}" + (f", {one.servers.count} ps" if one.servers else ""),
            size(one.worker.bytes),
            size(one.speed.sent),
            f"{one.speed.steps:.3g}",
            f"{one.speed.examples:.3g}",
            f"{one.efficiency:.0%}",
            "yes" if one.fits else "no",
        )
        for one in advice.options
    ]
    return columns(rows, str.ljust)


def _compared(advice: Advice, model: Model) -> list[str]:
    """What to compare: a step of a worker by itself is no step of all together."""
    workers = advice.options[0].workers
    if workers == 1:
        return []
    each = model.batch_of_one(workers)
    together = f"a step of mwms is of all workers together ({each * workers:.0f} examples)"
    return [f"compare examples/s: {together}, one of ps of one worker by itself ({each:.0f})"]
