"""Another number of workers, asked for as `phalanx scale` does."""

from __future__ import annotations

from phalanx.audience import audience
from phalanx.chaos.fault import Fault
from phalanx.chaos.whereabouts import CannotError, Whereabouts
from phalanx.errors import PhalanxError
from phalanx.protocol import people


def scale(fault: Fault, where: Whereabouts) -> None:
    """Ask the lead for so many workers."""
    try:
        audience(
            where.entry,
            lambda address, token: people.scale(address, token, workers=int(fault.value or 0), by="phalanx chaos"),
            say=lambda _: None,
        )
    except PhalanxError as wrong:
        raise CannotError(str(wrong), hint=wrong.hint) from wrong
