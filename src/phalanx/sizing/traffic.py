"""How many bytes one step moves from one task to another."""

from __future__ import annotations

from phalanx.sizing.model import INDEX, Model

#: Bytes of a block that the C library returns to the kernel as soon as it is free (glibc's largest threshold), so that
#: each step gets it anew.
RETURNED = 32 * 2**20


def ring(model: Model, workers: int) -> float:
    """Bytes that each worker sends, and gets, in one step of MultiWorkerMirroredStrategy.

    Dense gradients by a ring: 2(N−1)/N of their bytes. Sparse ones are gathered: each worker gets the rows of all
    others, with their indices.
    """
    if workers < 2:  # noqa: PLR2004 - one alone sends nothing
        return 0.0
    return 2 * (workers - 1) / workers * model.dense + (workers - 1) * sparse(model, workers)


def sparse(model: Model, workers: int) -> float:
    """Bytes of the sparse gradients of one worker: the rows it touches, and their indices."""
    return sum(model.touched(one, workers) * (one.row + INDEX) for one in model.tables)


def anew(model: Model, workers: int) -> float:
    """Bytes of memory that the kernel hands a worker in each step for what the ring packs, gets and gathers.

    A byte for each byte, and one more for a pack that is too large to be kept until the next step.
    """
    if workers < 2:  # noqa: PLR2004 - as above
        return 0.0
    packs = 2 if model.dense > RETURNED else 1
    return packs * model.dense + (workers - 1) * sparse(model, workers)


def served(model: Model, workers: int) -> float:
    """Bytes between one worker and all parameter servers in one step, each way: variables come, gradients go."""
    return model.dense + sparse(model, workers)


def collectives(model: Model) -> int:
    """How many collectives a step makes: dense gradients are one pack; a sparse one has lengths, indices and rows."""
    dense = any(one.touched is None for one in model.variables)
    return int(dense) + 3 * len(model.tables) + model.reductions
