"""Why pods have not come, as the lead has noted it: said again where the run ends for want of them (R49)."""

from __future__ import annotations

from phalanx.decide.seen import Seen
from phalanx.states import RunState

#: How the note begins that says why pods have not come up.
PODS_WAIT = "pods wait: "


def told(seen: Seen) -> str:
    """A finding and what to do, in one piece."""
    return f"{seen.says}; {seen.advice}" if seen.advice else seen.says


def why_not_here(state: RunState, *, since: float = 0.0) -> str:
    """What was noted last of those who are missing, with a semicolon before it; empty where nothing was."""
    notes = [one.message for one in state.notes if one.message.startswith(PODS_WAIT) and one.time >= since]
    return f"; {notes[-1]}" if notes else ""
