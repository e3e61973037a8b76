"""What is trained, and what one step of it costs: from a look at a script, or from what a person says of it."""

from __future__ import annotations

import dataclasses
from typing import Literal

#: Bytes of one float32, and of one int64 index of a sparse gradient.
FLOAT, INDEX = 4, 8


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Variable:
    """One trained variable. All sizes are in bytes."""

    name: str
    bytes: int
    #: Rows of its first axis.
    rows: int = 1
    #: Rows that one step touches on one worker, with repeats; None: the gradient is as large as the variable.
    touched: int | None = None

    @property
    def gradient(self) -> int:
        """Bytes of what one worker sends of it: rows and their indices where it is sparse."""
        return self.bytes if self.touched is None else self.touched * (self.row + INDEX)

    @property
    def row(self) -> int:
        """Bytes of one row."""
        return self.bytes // max(self.rows, 1)


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Operation:
    """One kind of operation of a step: a part that is there anyway, and a part for each example."""

    count: int = 1
    flops: float = 0.0
    flops_each: float = 0.0
    #: Bytes read and written.
    moved: float = 0.0
    moved_each: float = 0.0


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Step:
    """What one training step does on one worker."""

    operations: tuple[Operation, ...]
    #: The most bytes of tensors alive at once: a part that is there anyway, and a part for each example.
    peak: float = 0.0
    peak_each: float = 0.0
    #: It holds a loop whose turns nobody counted, so that it takes longer than is reckoned.
    loops: bool = False


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Model:
    """A model and its training."""

    variables: tuple[Variable, ...]
    #: Bytes that the optimizer keeps beside the variables.
    slots: int
    #: Examples of one step: of all workers together where `spread` is "global", of each where it is "worker".
    batch: int
    spread: Literal["global", "worker"] = "global"
    #: Who drives the steps: `fit`, a loop around a tf.function, a loop without one, a coordinator's `schedule`.
    kind: Literal["fit", "loop", "eager", "schedule"] = "loop"
    #: How often a step asks the strategy for a sum or a mean beside its gradients: the loss, a metric.
    reductions: int = 1
    #: Bytes that the process held before its first step, the variables among them; None where nobody has looked.
    resident: int | None = None
    #: The most that it held on the way there.
    highest: int = 0
    #: None where nobody has looked.
    step: Step | None = None
    #: Seconds that one worker takes for `batch` examples, where a person has timed it: see `timed`.
    seconds: float | None = None

    @property
    def bytes(self) -> int:
        """Bytes of all trained variables."""
        return sum(one.bytes for one in self.variables)

    @property
    def parameters(self) -> int:
        """How many numbers are trained, as float32."""
        return self.bytes // FLOAT

    @property
    def tables(self) -> tuple[Variable, ...]:
        """The variables of which a step touches some rows only, largest first."""
        return tuple(sorted((one for one in self.variables if one.touched is not None), key=lambda one: -one.bytes))

    @property
    def dense(self) -> int:
        """Bytes of the variables whose gradient is as large as themselves."""
        return sum(one.bytes for one in self.variables if one.touched is None)

    def batch_of_one(self, workers: int) -> float:
        """Examples that each of so many workers takes in one step."""
        return self.batch / workers if self.spread == "global" else float(self.batch)

    def part_of_one(self, workers: int) -> float:
        """The same, as a part of `batch`."""
        return self.batch_of_one(workers) / self.batch if self.batch else 1.0

    def touched(self, variable: Variable, workers: int) -> float:
        """Rows of it that one of so many workers touches in one step."""
        return (variable.touched or 0) * self.part_of_one(workers)

    def timed(self, seconds: float, workers: int) -> Model:
        """The same, where one of so many workers was timed by itself at its part of the batch."""
        return dataclasses.replace(self, seconds=seconds / self.part_of_one(workers))

    def of_batch(self, batch: int) -> Model:
        """The same, with another batch: a step touches as many rows for each example."""
        part = batch / self.batch if self.batch else 1.0
        variables = tuple(
            one if one.touched is None else dataclasses.replace(one, touched=round(one.touched * part))
            for one in self.variables
        )
        return dataclasses.replace(self, batch=batch, variables=variables)
