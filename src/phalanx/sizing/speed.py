"""How long a step takes, and how many examples a second come of it: each operation by its roof, each byte by its cost.

The tasks of a host share its cores. So a step takes the longer of two times: that of its own chain of operations, with
as many cores as they can use, and that of all the work on a host, divided by its cores.
"""

from __future__ import annotations

import dataclasses

from phalanx.sizing import traffic
from phalanx.sizing.model import FLOAT, Model
from phalanx.sizing.place import Core, Place

#: Seconds that one step costs beside its operations, by who drives it: Python, the input's next batch, the call
#: (facts §10 for `schedule`).
DRIVING = {"fit": 900e-6, "loop": 250e-6, "eager": 1500e-6, "schedule": 1.3e-3}
#: What a step reaches of its roofs: three models measured took 1.6 to 1.8 times as long (docs/benchmarks.md).
REACHED = 0.58
#: Operations shorter than this are not split among cores.
SPLIT = 100e-6
#: How often its own core time each hop of a collective on one host takes: both ends have their turn, and must wake up.
#: A ring has 2(N−1). CROWDED: with more workers than cores, where one that could go on waits for a core (facts §10).
HOP, CROWDED = 2.7, 4.6
#: Cores that one task's exchange can use, and the part of their time that it does: its tasks wait for each other's
#: pieces (facts §10).
PIPES, KEPT = 2, 0.8
#: What one closure of a coordinator costs on chief, worker and servers together, whatever it computes, in hops: for
#: each server that holds something of it, and for each variable (facts §10).
SERVER, VARIABLE = 10, 1
#: The part of them that the worker waits for, and seconds that the coordinator alone takes (not measured).
WAITING, HANDING = 0.85, 300e-6
#: What a byte that is read from a server, or sent to it, costs of one that goes around the ring and is added up, and
#: the part of a host's time that chief, workers and servers keep busy (facts §10).
PULLED, SERVED = 0.5, 0.75


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Speed:
    """Seconds of one step, and what comes of it. `steps` counts those of one worker, or under ps of all together."""

    compute: float
    exchange: float
    #: Steps a second, and examples a second of all workers together.
    steps: float
    examples: float
    #: Bytes that a worker sends in one step.
    sent: float


def alone(model: Model, place: Place) -> Speed:
    """One worker by itself on a host, without a strategy's exchange."""
    chain, _ = compute(model, 1, place.core, place.cores)
    return Speed(compute=chain, exchange=0.0, steps=1 / chain, examples=model.batch / chain, sent=0.0)


def mirrored(model: Model, place: Place, workers: int) -> Speed:
    """MultiWorkerMirroredStrategy: all step together."""
    sent = traffic.ring(model, workers)
    here = place.on_one_host(workers)
    chain, work = compute(model, workers, place.core, place.cores)
    hop = (CROWDED if here > place.cores else HOP) * place.core.hop + place.rtt / 2
    hops = 2 * (workers - 1) * hop * traffic.collectives(model) if workers > 1 else 0.0
    wire = sent / place.collective if place.collective else 0.0
    copies = sent * place.core.sent + traffic.anew(model, workers) * place.core.anew
    exchange = hops + max(wire, copies / min(place.cores / here, PIPES) / KEPT)
    busy = here * work / place.cores
    taken = max(chain, busy)
    step = taken + exchange
    return Speed(
        compute=taken,
        exchange=exchange,
        steps=1 / step,
        examples=model.batch_of_one(workers) * workers / step,
        sent=sent,
    )


def served(model: Model, place: Place, workers: int, ps: int) -> Speed:
    """ParameterServerStrategy: each worker steps by itself, as fast as it, the servers and the coordinator can."""
    sent = traffic.served(model, workers)
    chain, work = compute(model, workers, place.core, place.cores)
    bandwidth = place.bandwidth or float("inf")
    closure = _closure(model, ps) * place.core.hop
    copies = 2 * sent * place.core.sent * PULLED
    each = chain + WAITING * closure + place.rtt + max(2 * sent / bandwidth, copies / min(place.cores, PIPES))
    # On one host everybody's work is on the same cores; on several a server has its own.
    cost = work + copies + closure
    rates = [workers / each, 1 / HANDING, ps * bandwidth / sent if sent else float("inf")]
    rates.append(place.hosts * place.cores / cost * SERVED)
    steps = min(rates)
    return Speed(
        compute=chain,
        exchange=each - chain,
        steps=steps,
        examples=model.batch_of_one(workers) * steps,
        sent=sent,
    )


def _closure(model: Model, ps: int) -> int:
    """The hops of a closure beside what it computes and moves; a table is taken to be parted among all servers."""
    count = len(model.variables)
    return SERVER * (ps if model.tables else min(ps, count)) + VARIABLE * count


def compute(model: Model, workers: int, core: Core, cores: int) -> tuple[float, float]:
    """Seconds of a step's operations on one worker: one after another with so many cores, and in core seconds."""
    examples = model.batch_of_one(workers)
    driving = DRIVING[model.kind]
    if model.seconds is not None:
        taken = model.seconds * model.part_of_one(workers)
        return taken, taken * cores
    if model.step is None:
        # Forward and backward: six operations for each dense parameter and example (two, and twice two).
        work = 6.0 * model.dense / FLOAT * max(examples, 1.0) / core.flops / REACHED
        return driving + work / cores, driving + work
    chain = work = driving
    for one in model.step.operations:
        flops = one.flops + one.flops_each * examples
        moved = one.moved + one.moved_each * examples
        single = max(core.operation, flops / core.flops, moved / core.moved) / REACHED
        work += one.count * single
        chain += one.count * max(single / cores, min(single, SPLIT))
    return chain, work


def efficiency(speed: Speed, single: Speed, workers: int) -> float:
    """Examples a second of so many workers, as a part of so many times those of one alone."""
    return speed.examples / (workers * single.examples) if single.examples else 0.0
