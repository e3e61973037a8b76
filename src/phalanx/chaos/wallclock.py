"""A jump of the wall clock as agents and lead see it: see `inside.agent_main`."""

from __future__ import annotations

from phalanx.chaos.fault import Fault
from phalanx.chaos.inside.agent_main import OFFSET
from phalanx.chaos.whereabouts import CannotError, Whereabouts


def jump(fault: Fault, where: Whereabouts) -> None:
    """Add the fault's seconds to what their clocks say. A reaper has its agent's clock."""
    folder = where.shared("clock")
    by = fault.value if fault.value is not None else fault.row.usual or 0.0
    for target in where.ours(fault.target):
        path = folder / f"clock-{target.pid}"
        try:
            with path.open("r+b") as file:
                now = OFFSET.unpack(file.read(OFFSET.size))[0]
                file.seek(0)
                file.write(OFFSET.pack(now + by))
        except OSError as wrong:
            raise CannotError(f"the clock of process {target.pid} cannot be set: {wrong.strerror}") from wrong
