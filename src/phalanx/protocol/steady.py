"""Unix time that nobody can set: what the clock said once, and what has passed since."""

from __future__ import annotations

import time
from collections.abc import Callable


class SteadyClock:
    """Called, it gives Unix seconds. Leases and deadlines by it outlive a clock that is set, forwards or backwards."""

    def __init__(
        self,
        *,
        not_before: float = 0.0,
        wall: Callable[[], float] = time.time,
        passed: Callable[[], float] = time.monotonic,
    ) -> None:
        """`not_before`: a time that others have seen already, in Unix seconds."""
        self._passed = passed
        self._start = max(wall(), not_before) - passed()

    def __call__(self) -> float:
        """Never less than before."""
        return self._start + self._passed()
