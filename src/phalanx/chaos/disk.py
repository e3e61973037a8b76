"""A full disk for agents and lead alone: the kernel refuses each write of theirs to a file (RLIMIT_FSIZE).

They read `File too large` where a full disk says `No space left on device`; both are an OSError that their code takes
the same way. It needs no root, and what the tasks write (checkpoints, output of their own) is untouched.
"""

from __future__ import annotations

import resource
from collections.abc import Callable

from phalanx.chaos.fault import Fault
from phalanx.chaos.whereabouts import CannotError, Whereabouts
from phalanx.process import Process


def fill(fault: Fault, where: Whereabouts) -> Callable[[], None]:
    """No byte more for these; the lift gives the old limit back."""
    targets = where.ours(fault.target)
    before = [(target, _limit(target, None)) for target in targets]
    for target, (_, hard) in before:
        _limit(target, (0, hard))

    def lift() -> None:
        for target, limits in before:
            if target.alive:
                _limit(target, limits)

    return lift


def _limit(target: Process, limits: tuple[int, int] | None) -> tuple[int, int]:
    try:
        if limits is None:
            return resource.prlimit(target.pid, resource.RLIMIT_FSIZE)
        return resource.prlimit(target.pid, resource.RLIMIT_FSIZE, limits)
    except ProcessLookupError as wrong:
        raise CannotError(f"process {target.pid} has ended in this moment") from wrong
    except PermissionError as wrong:
        raise CannotError(f"process {target.pid} belongs to another user") from wrong
