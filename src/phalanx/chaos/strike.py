"""From a kind to what is done: one row a kind."""

from __future__ import annotations

from collections.abc import Callable

from phalanx.chaos import disk, signals, size, sockets, stall, wallclock
from phalanx.chaos.fault import Fault
from phalanx.chaos.whereabouts import Whereabouts

#: Does the fault; gives back what undoes it, where anything does. Raises CannotError, and has done nothing then.
Strike = Callable[[Fault, Whereabouts], Callable[[], None] | None]

STRIKES: dict[str, Strike] = {
    "kill": signals.kill,
    "stop": signals.stop,
    "stall": stall.stall,
    "refuse": sockets.refuse,
    "half-open": sockets.half_open,
    "slow": sockets.slow,
    "clock": wallclock.jump,
    "disk": disk.fill,
    "agent": signals.kill_agent,
    "lead": signals.kill_lead,
    "launcher": signals.kill_launcher,
    "scale": size.scale,
}
