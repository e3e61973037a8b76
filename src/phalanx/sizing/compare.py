"""What was measured beside what was reckoned."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from phalanx.sizing import memory as memories
from phalanx.sizing import speed as speeds
from phalanx.sizing.model import Model
from phalanx.sizing.place import Place
from phalanx.sizing.words import size


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
    #: Core seconds that all tasks used for one step.
    work: float = 0.0


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
    )


def lines(rows: Sequence[Row]) -> list[str]:
    """A table for people. Efficiency is by the first row's examples a second for each of its workers."""
    told = [
        (
            "workers",
            "steps/s",
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
            f"{row.workers}" + (f" + {row.ps} ps" if row.ps else ""),
            f"{row.steps.measured:.4g}",
            f"{row.steps.reckoned:.4g}",
            f"{row.steps.off:+.0%}",
            f"{row.examples:.4g}",
            f"{row.examples / (row.workers * base):.0%}" if base else "",
            f"{row.work * 1e3:.3g}",
            size(row.memory.measured),
            size(row.memory.reckoned),
            f"{row.memory.off:+.0%}",
        )
        for row in rows
    ]
    wide = [max(len(line[at]) for line in told) for at in range(len(told[0]))]
    return ["  ".join(cell.rjust(wide[at]) for at, cell in enumerate(line)) for line in told]


def as_json(row: Row) -> dict[str, Any]:
    """The same for scripts."""
    return {
        "workers": row.workers,
        "ps": row.ps,
        "steps_per_s": row.steps.measured,
        "steps_per_s_reckoned": row.steps.reckoned,
        "examples_per_s": row.examples,
        "core_s_per_step": row.work,
        "worker_bytes": row.memory.measured,
        "worker_bytes_reckoned": round(row.memory.reckoned),
    }
