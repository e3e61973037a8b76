"""What to use, and why: both strategies reckoned for one size, and the one that fits and is faster named."""

from __future__ import annotations

import dataclasses
from typing import Literal

from phalanx.sizing import memory, servers, speed
from phalanx.sizing.memory import Memory
from phalanx.sizing.model import Model
from phalanx.sizing.place import Place
from phalanx.sizing.servers import Servers
from phalanx.sizing.speed import Speed

#: So much faster must parameter servers be: they change what is computed (each worker steps by itself).
FASTER = 1.15
#: Below this efficiency more workers are hardly worth their hosts.
POOR = 0.5
#: A smaller part of a step than this is not worth a word.
SLOW = 0.25
GB = 1e9


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Option:
    """One strategy at one size."""

    strategy: Literal["mwms", "ps"]
    workers: int
    worker: Memory
    speed: Speed
    efficiency: float
    #: Bytes that the fullest host needs, of those it has.
    host: float
    fits: bool
    servers: Servers | None = None
    ps: Memory | None = None


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Advice:
    """The recommendation in one word, its reasons as sentences, and what was reckoned."""

    strategy: Literal["none", "mwms", "ps", "neither"]
    reasons: tuple[str, ...]
    options: tuple[Option, ...]
    single: Speed


def advise(model: Model, place: Place, workers: int, *, ps: int | None = None) -> Advice:
    """Pure. `ps`: so many servers, and not the least that fits and does not brake."""
    single = speed.alone(model, place)
    options = (_mirrored(model, place, workers, single), _served(model, place, workers, ps, single))
    chosen, reasons = _choice(model, place, *options)
    held = memory.fits(memory.mirrored(model, 1).bytes, place)
    remarks = _remarks(model, options, chosen, held=held)
    return Advice(strategy=chosen, reasons=(*reasons, *remarks), options=options, single=single)


def _mirrored(model: Model, place: Place, workers: int, single: Speed) -> Option:
    worker, reached = memory.mirrored(model, workers), speed.mirrored(model, place, workers)
    need = memory.host(worker, place.on_one_host(workers))
    return Option(
        strategy="mwms",
        workers=workers,
        worker=worker,
        speed=reached,
        efficiency=speed.efficiency(reached, single, workers),
        host=need,
        fits=memory.fits(need, place),
    )


def _served(model: Model, place: Place, workers: int, ps: int | None, single: Speed) -> Option:
    chosen = servers.parted(model, ps) if ps else servers.fitting(model, place, at_least=_busy(model, place, workers))
    largest = max(servers.share(model, chosen), default=0.0)
    worker = memory.served_worker(model, workers)
    server = memory.server(model, chosen.count, largest=largest)
    reached = speed.served(model, place, workers, chosen.count)
    if place.hosts == 1:
        need = memory.host(worker, workers) + memory.host(server, chosen.count) + memory.coordinator(model).bytes
    else:  # a server has a host, or shares one with a worker or with other servers
        together = place.on_one_host(workers + chosen.count + 1)
        need = max(memory.host(server, max(together - 1, 1)), memory.host(worker, max(together, 1)))
    return Option(
        strategy="ps",
        workers=workers,
        worker=worker,
        speed=reached,
        efficiency=speed.efficiency(reached, single, workers),
        host=need,
        fits=memory.fits(need, place),
        servers=chosen,
        ps=server,
    )


def _busy(model: Model, place: Place, workers: int) -> int:
    """The fewest servers whose network is no brake."""
    best = speed.served(model, place, workers, workers).steps
    return next(
        (count for count in range(1, workers) if speed.served(model, place, workers, count).steps > 0.95 * best),
        workers,
    )


def _choice(
    model: Model, place: Place, mirrored: Option, served: Option
) -> tuple[Literal["none", "mwms", "ps", "neither"], tuple[str, ...]]:
    if mirrored.workers == 1 and mirrored.fits:
        return "none", ("one worker needs no strategy of several processes",)
    if not mirrored.fits:
        why = _too_large(model, place, mirrored)
        if served.fits and served.servers is not None and served.ps is not None:
            return "ps", (why, f"{served.servers.count} ps hold it, {served.ps.bytes / GB:.1f} GB each")
        most = f"parameter servers need {served.host / GB:.1f} GB on one host"
        return "neither", (why, f"{most}: more hosts, or more memory")
    times = max(mirrored.efficiency, served.efficiency if served.fits else 0.0) * mirrored.workers
    share = mirrored.speed.exchange * mirrored.speed.steps
    if times < 1:
        why = (
            f"one worker is faster: {mirrored.workers} do {times:.2g} times its work, as the exchange takes {share:.0%}"
        )
        return "none", (f"{why} of a step", "a larger batch, a faster network, or hosts of their own would change that")
    dense = model.dense / model.bytes if model.bytes else 1.0
    if served.fits and model.tables and served.speed.examples > FASTER * mirrored.speed.examples:
        more = f"{served.speed.examples / mirrored.speed.examples:.1f} times the examples a second"
        tables = f"{1 - dense:.0%} of the parameters are in tables, of which a step touches some rows"
        return "ps", (f"{more}: {tables}, and workers do not wait for each other",)
    links = "fast links" if share < SLOW else f"the exchange takes {share:.0%} of a step"
    return "mwms", (f"{dense:.0%} dense, {links}: all workers step together, and compute what one would",)


def _too_large(model: Model, place: Place, option: Option) -> str:
    have = f"of {place.memory / GB:.1f} GB ({memory.USABLE:.0%} may be planned for)"
    here = place.on_one_host(option.workers)
    if here > 1 and memory.fits(option.worker.bytes, place):
        return f"{here} workers on one host need {option.host / GB:.1f} GB, {have}"
    largest = max(model.variables, key=lambda one: one.bytes)
    what = f"{model.bytes / GB:.1f} GB of variables"
    if largest.bytes > model.bytes / 2:
        what = f"{largest.bytes / GB:.1f} GB {'table' if largest.touched is not None else 'variable'}"
    return f"does not fit one worker: {what}; with slots and gradients {option.worker.bytes / GB:.1f} GB, {have}"


def _remarks(model: Model, options: tuple[Option, ...], chosen: str, *, held: bool) -> list[str]:
    """`held`: whether one worker can hold the model, so that there is one to compare with."""
    said = []
    for one in options:
        if one.strategy != chosen:
            continue
        if held and one.efficiency < POOR and one.workers > 1:
            times = one.efficiency * one.workers
            said.append(f"{one.workers} workers do {times:.2f} times the work of one: a larger batch, or fewer workers")
        if one.servers is not None and one.servers.least_part is not None:
            uneven = f"one of {one.servers.count} ps would carry {one.servers.uneven:.1f} times its share"
            said.append(f"{uneven}: part the tables by {one.servers.partitioner}")
            said.append("a layer of Keras 3 cannot be parted: keep a parted table as a tf.Variable, or in tf_keras")
    if model.step is not None and model.step.loops:
        said.append("a step holds a loop whose turns nobody knows: it takes longer than reckoned; --step says how long")
    return said
