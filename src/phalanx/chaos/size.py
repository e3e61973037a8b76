"""Another number of workers, asked for as `phalanx scale` does."""

from __future__ import annotations

from phalanx.chaos.fault import Fault
from phalanx.chaos.whereabouts import CannotError, Whereabouts
from phalanx.errors import PhalanxError
from phalanx.protocol import people


def scale(fault: Fault, where: Whereabouts) -> None:
    """Ask the lead for so many workers."""
    try:
        people.scale(where.entry.address, where.entry.token, workers=int(fault.value or 0), by="phalanx chaos")
    except PhalanxError as wrong:
        raise CannotError(str(wrong), hint=wrong.hint) from wrong
