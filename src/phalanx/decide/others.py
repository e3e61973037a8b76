"""What each of many is compared with: the middle of all the others. Pure."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping
from typing import Generic, TypeVar

T = TypeVar("T", bound=Hashable)


class Others(Generic[T]):
    """Sorted once, so that each of ten thousand is compared with the rest in no time."""

    def __init__(self, values: Mapping[T, float]) -> None:
        """By name."""
        order = sorted(values, key=lambda name: values[name])
        self._ranks = {name: rank for rank, name in enumerate(order)}
        self._sorted = [values[name] for name in order]

    def middle(self, without: Collection[T], *, low: bool = False) -> float | None:
        """Of all but these; of two middles the higher one, with `low` the lower. None where nobody is left."""
        rest = len(self._sorted) - len(without)
        if rest <= 0:
            return None
        at = (rest - 1) // 2 if low else rest // 2
        for rank in sorted(self._ranks[name] for name in without):
            at += rank <= at
        return self._sorted[at]
