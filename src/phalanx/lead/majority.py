"""Whether a lead hears from hosts enough to give orders, where no folder that all share fences another lead off."""

from __future__ import annotations

from phalanx.decide.quorum import gives_orders, recently
from phalanx.lead.roll import Roll
from phalanx.protocol.signing import RefusedError
from phalanx.states import RunState


class Majority:
    """Asked before anything is decided. A lead that hears from too few for the length of a lease is done for."""

    def __init__(self, *, needed: bool) -> None:
        """`needed`: without a fence."""
        self._needed = needed
        self._alone: float | None = None  # since when too few are heard
        #: Why this lead ends; empty while it need not.
        self.refusal = ""

    def there(self, roll: Roll, state: RunState, now: float) -> bool:
        """Whether this lead may decide now.

        A host counts while the last answer that it is known to have had is recent: with as much patience as it takes
        to give one up, a lead that is cut off from most of them would give them up one by one, and have all of the rest
        behind it.
        """
        if not self._needed:
            return True
        living = sorted(host.id for host in state.hosts.values() if host.living)
        near = recently(roll.lease.seconds)
        heard = {host for host in living if host in roll.boxes and now - roll.boxes[host].follows <= near}
        if not living or gives_orders(heard=len(heard), of=len(living), lowest=living[0] in heard):
            self._alone = None
            return True
        self._alone = now if self._alone is None else self._alone
        if now - self._alone >= roll.lease.seconds:
            count = f"{len(heard)} of {len(living)} hosts"
            self.refusal = f"this lead hears from {count} only: the others may have another one, so it ends"
        return False

    def check(self) -> None:
        """Raises RefusedError once this lead is done for: who asks ends its tasks."""
        if self.refusal:
            raise RefusedError(self.refusal)
