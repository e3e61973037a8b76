"""How many bytes one step moves from one task to another."""

from __future__ import annotations

from phalanx.sizing.model import INDEX, Model


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


def served(model: Model, workers: int) -> float:
    """Bytes between one worker and all parameter servers in one step, each way: variables come, gradients go."""
    return model.dense + sparse(model, workers)


def collectives(model: Model) -> int:
    """How many collectives a step makes: dense gradients are one pack; a sparse one has lengths, indices and rows."""
    dense = any(one.touched is None for one in model.variables)
    return int(dense) + 3 * len(model.tables) + model.reductions
