"""What was measured beside what was reckoned."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from phalanx.names import many
from phalanx.sizing import memory as memories
from phalanx.sizing import speed as speeds
from phalanx.sizing.model import Model
from phalanx.sizing.place import Place
from phalanx.sizing.words import columns, size

#: A load above this part of the cores takes time from what is measured.
BUSY = 0.5
#: Reckoned steps/s so far above the measured ones want a word, where the run has used less than this of the cores.
FAR, IDLE = 1.0, 0.5
#: What the figures do not say by themselves.
NOTES = (
    "by core time: the most steps/s that the cores allow for the core time of a step, did nobody else use them",
    "off: reckoned, by measured. Callbacks, validation and saving are in what is measured and not in what is reckoned",
)


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Pair:
    """One figure: reckoned, and measured."""

    reckoned: float
    measured: float

    @property
    def off(self) -> float:
        """By which part of the measured one it is off."""
        return self.reckoned / self.measured - 1 if self.measured else 0.0


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Row:
    """One size. `steps` a second; `examples` a second by what was measured; `memory` of a worker, in bytes."""

    workers: int
    ps: int | None
    steps: Pair
    memory: Pair
    examples: float
    #: Core seconds that all tasks used for one step, and the cores there are.
    work: float = 0.0
    cores: int = 1

    @property
    def used(self) -> float:
        """Which part of the cores' time the run took."""
        return self.steps.measured * self.work / self.cores

    @property
    def unshared(self) -> float:
        """The steps a second that the cores would allow, did nobody else use them; 0: not known."""
        return self.cores / self.work if self.work else 0.0


def beside(
    model: Model, place: Place, workers: int, ps: int | None, *, steps: float, memory: Mapping[str, int], work: float
) -> Row:
    """`steps` and `memory` (role → bytes) are what was measured, and so is `work` (core seconds a step)."""
    held = memory.get("worker", 0)
    if ps is None:
        reckoned, need = speeds.mirrored(model, place, workers), memories.mirrored(model, workers)
        together = workers
    else:
        reckoned, need = speeds.served(model, place, workers, ps), memories.served_worker(model, workers)
        together = 1
    return Row(
        workers=workers,
        ps=ps,
        steps=Pair(reckoned=reckoned.steps, measured=steps),
        memory=Pair(reckoned=need.bytes, measured=held),
        examples=steps * together * model.batch_of_one(workers),
        work=work,
        cores=place.cores,
    )


def lines(rows: Sequence[Row]) -> list[str]:
    """A table for people. Efficiency is by the first row's examples a second for each of its workers."""
    told = [
        (
            "workers",
            "steps/s",
            "by core time",
            "reckoned",
            "off",
            "examples/s",
            "efficiency",
            "core ms/step",
            "memory",
            "reckoned",
            "off",
        )
    ]
    base = rows[0].examples / rows[0].workers if rows else 0.0
    told += [
        (
            _size(row),
            f"{row.steps.measured:.4g}",
            f"{row.unshared:.4g}" if row.work else "",
            f"{row.steps.reckoned:.4g}",
            _off(row.steps),
            f"{row.examples:.4g}",
            f"{row.examples / (row.workers * base):.0%}" if base else "",
            f"{row.work * 1e3:.3g}",
            size(row.memory.measured),
            size(row.memory.reckoned),
            _off(row.memory),
        )
        for row in rows
    ]
    waits = [_waits(row) for row in rows if row.steps.off >= FAR and 0 < row.used < IDLE]
    return [*columns(told, str.rjust), *NOTES, *waits]


def _size(row: Row) -> str:
    return f"{row.workers}" + (f" + {row.ps} ps" if row.ps else "")


def _off(pair: Pair) -> str:
    return f"{pair.off:+.0%}" if pair.off < FAR else f"{pair.off + 1:.3g} times"


def _waits(row: Row) -> str:
    """Why the reckoning is far off where the run has hardly used the cores."""
    waited = "it waited for what is not reckoned: its input, a disk, callbacks, or others on this machine"
    return f"{_size(row)}: the run used {row.used:.0%} of the cores, so {waited}"


def busy(load: float, cores: int) -> str:
    """What to say of a machine that others use, by its load before anything has started; empty where it is idle."""
    if load <= BUSY * cores:
        return ""
    others = f"this machine is busy (load {load:.1f} on {many(cores, 'core')}) before anything has started"
    return f"{others}: steps/s are lower than on an idle one, and `off` is larger; go by core time"


def as_json(row: Row) -> dict[str, Any]:
    """The same for scripts."""
    return {
        "workers": row.workers,
        "ps": row.ps,
        "steps_per_s": row.steps.measured,
        "steps_per_s_reckoned": row.steps.reckoned,
        "examples_per_s": row.examples,
        "core_s_per_step": row.work,
        "steps_per_s_by_core_time": row.unshared or None,
        "worker_bytes": row.memory.measured,
        "worker_bytes_reckoned": round(row.memory.reckoned),
    }
