"""Models that the tests of sizing share."""

from __future__ import annotations

from phalanx.sizing.model import INDEX, Model, Operation, Step, Variable
from phalanx.sizing.place import Place

GiB, MB = 2**30, 10**6


def dense(size: int = 50 * MB, *, slots: int = 0, batch: int = 64) -> Model:
    return Model(variables=(Variable(name="kernel", bytes=size),), slots=slots * size, batch=batch)


def recommender(*, rows: int = 160_000_000, slots: int = 1, touched: int = 4096, batch: int = 4096) -> Model:
    """A table of 64 numbers a row (41 GB), and 8 MB of dense layers."""
    table = Variable(name="table", bytes=rows * 256, rows=rows, touched=touched)
    layers = Variable(name="kernel", bytes=8 * MB)
    return Model(variables=(table, layers), slots=slots * (table.bytes + layers.bytes), batch=batch)


def looked_at() -> Model:
    """One whose step is known: a matrix product for each example, and an update."""
    step = Step(
        operations=(Operation(flops_each=1e6, moved_each=1e4), Operation(count=3, moved=1e6)), peak=2e6, peak_each=1e4
    )
    return Model(variables=(Variable(name="kernel", bytes=MB),), slots=2 * MB, batch=64, resident=600 * MB, step=step)


def hosts(count: int, memory: int = 64 * GiB, *, cores: int = 8, bandwidth: float = 1.25e9) -> Place:
    return Place(hosts=count, cores=cores, memory=memory, bandwidth=bandwidth, rtt=1e-4)


HERE = Place(hosts=1, cores=2, memory=24 * GiB)
A_ROW = 256 + INDEX
