"""How much memory each task needs, in bytes of its resident set at its largest; and what a host of several needs."""

from __future__ import annotations

import dataclasses

from phalanx.sizing.model import Model
from phalanx.sizing.place import Place

MiB = 2**20
#: A process that has imported TensorFlow and runs a server or a strategy (facts §6).
TENSORFLOW = 590 * MiB
#: Of that, what processes of one host share: pages of libraries (facts §6: RSS less USS).
SHARED = 358 * MiB
#: What threads, allocators and the first step add to a process that trains.
RUNNING = 30 * MiB
#: What channels to others and their buffers add.
JOINED = 20 * MiB
#: Bytes held for each byte of dense gradients while workers reduce them, or of variables that a worker has of servers:
#: what gRPC keeps of what it sends and gets (facts §10: 1,060 MB with 50 MB; docs/benchmarks.md).
REDUCING = 7.0
#: Bytes held for each byte of sparse gradients of all workers while they are gathered.
GATHERING = 3.0
#: The part of a host's memory that may be planned for: the rest is for the system, and for what is not foreseen.
USABLE = 0.85


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Memory:
    """One task's bytes, by what they are for."""

    process: float
    #: Variables and the optimizer's slots.
    variables: float = 0.0
    #: Activations, gradients and what an update needs, where most of them are alive.
    step: float = 0.0
    #: What the exchange with others holds.
    exchange: float = 0.0
    #: The most that the program held before its first step, as when it makes its variables.
    before: float = 0.0

    @property
    def bytes(self) -> float:
        """The most that it holds at once."""
        return max(self.before, self.process + self.variables + self.step + self.exchange)


def mirrored(model: Model, workers: int) -> Memory:
    """A worker of MultiWorkerMirroredStrategy: all of the model, on each."""
    sparse = _rows(model, workers) * workers
    exchange = (JOINED + REDUCING * model.dense + GATHERING * sparse) if workers > 1 else 0.0
    return Memory(
        process=_process(model),
        variables=model.bytes + model.slots,
        step=_step(model, workers),
        exchange=exchange,
        before=model.highest,
    )


def served_worker(model: Model, workers: int) -> Memory:
    """A worker of ParameterServerStrategy: no variable stays there; dense ones are read, and their gradients sent."""
    exchange = REDUCING * model.dense + 2 * _rows(model, workers)
    return Memory(process=TENSORFLOW + RUNNING, step=_step(model, workers), exchange=exchange)


def server(model: Model, ps: int, *, largest: float | None = None) -> Memory:
    """A parameter server: its part of the variables and slots, `largest` where one variable cannot be parted."""
    kept = (model.bytes + model.slots) / ps
    if largest is not None and model.bytes:
        kept = max(kept, largest * (1 + model.slots / model.bytes))
    return Memory(process=TENSORFLOW + RUNNING, variables=kept)


def coordinator(model: Model) -> Memory:
    """The chief of ParameterServerStrategy: the program, and no variable."""
    return Memory(process=_process(model), before=model.highest - model.bytes - model.slots)


def host(task: Memory, tasks: int) -> float:
    """Bytes of a host that carries so many of this task: what they share counts once."""
    return SHARED + tasks * (task.bytes - SHARED)


def usable(place: Place) -> float:
    """Bytes of one host that may be planned for."""
    return place.memory * USABLE


def fits(need: float, place: Place) -> bool:
    """Whether one host may carry so many bytes; where nobody knows what it has, it may."""
    return not place.memory or need <= usable(place)


def _rows(model: Model, workers: int) -> float:
    """Bytes of the rows that one of so many workers touches in one step."""
    return sum(model.touched(one, workers) * one.row for one in model.tables)


def _process(model: Model) -> float:
    if model.resident is None:
        return TENSORFLOW + RUNNING
    return max(model.resident - model.bytes - model.slots, TENSORFLOW / 2) + RUNNING


def _step(model: Model, workers: int) -> float:
    if model.step is None:
        return float(sum(one.gradient for one in model.variables))
    return model.step.peak + model.step.peak_each * model.batch_of_one(workers)
