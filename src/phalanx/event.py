"""What all that can happen has in common; `events` is the list of it."""

from __future__ import annotations

import dataclasses


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Event:
    """What all have in common."""

    time: float
