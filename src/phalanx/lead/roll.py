"""The hosts of one lead: whose agents it has met, whom it still awaits from the lead before it, and who is silent."""

from __future__ import annotations

from phalanx.decide.quorum import LINE
from phalanx.events import HostLost
from phalanx.lead.lease import Lease
from phalanx.lead.mailbox import Mailbox
from phalanx.protocol.messages import Join
from phalanx.protocol.signing import RefusedError
from phalanx.states import RunState


class Roll:
    """Says nothing by itself: the state tells which hosts live, and is handed in."""

    def __init__(self, state: RunState, *, hosts: int, epoch: int, now: float) -> None:
        """`state`: what the leads before this one have left; `hosts`: how many the job has."""
        self.boxes: dict[int, Mailbox] = {}
        self.lease = Lease(hosts, now)
        #: Hosts that an earlier lead knew: until when their agents may join again.
        self.awaited = {host.id: now + self.lease.seconds for host in state.hosts.values() if host.living}
        self._epoch = epoch
        self._line: dict[int, str] = {}  # by host, in their order

    def enter(self, message: Join, now: float) -> Mailbox:
        """An agent's first word to this lead."""
        box = Mailbox(message, epoch=self._epoch, heard=now, lease=self.lease.seconds)
        self.boxes[message.host.id] = box
        if message.lead:
            self._line = dict(sorted({**self._line, message.host.id: message.lead}.items())[:LINE])
        return box

    def box(self, host: int, instance: str, state: RunState) -> Mailbox:
        """That of this very agent. Raises RefusedError where it has not joined, or is given up."""
        box = self.boxes.get(host)
        if box is None or box.join.instance != instance:
            raise RefusedError(f"host {host} has not joined with this agent")
        if not state.hosts[host].living:
            raise RefusedError(f"host {host} was given up: {state.hosts[host].lost}")
        return box

    def living(self, state: RunState) -> dict[int, Mailbox]:
        """Those of the hosts that are expected to answer."""
        return {host: box for host, box in self.boxes.items() if state.hosts[host].living}

    def line(self, state: RunState) -> tuple[str, ...]:
        """Where the lowest hosts would lead, should this lead fall silent; empty where the line of the lead before this
        one is still the better one: while hosts of it are awaited, two that have come would each take itself for the
        first.

        Asked at each join, of thousands: all hosts are looked at again only where one of the line itself is gone.
        """
        if self.awaited:
            return ()
        if not all(state.hosts[host].living for host in self._line):
            able = [host for host, box in sorted(self.living(state).items()) if box.join.lead]
            self._line = {host: self.boxes[host].join.lead for host in able[:LINE]}
        return tuple(self._line.values())

    def silent(self, state: RunState, now: float) -> list[HostLost]:
        """Those whose lease is over, and those that have not come in time; nobody is awaited for ever."""
        self.excuse(now)
        late = [host for host, deadline in self.awaited.items() if now >= deadline]
        for host in late:
            del self.awaited[host]
        mute = [host for host, box in self.living(state).items() if now >= box.deadline]
        return [
            *(HostLost(time=now, host=host, reason="its agent no longer answers") for host in mute),
            *(HostLost(time=now, host=host, reason="its agent has not joined the new lead") for host in late),
        ]

    def excuse(self, now: float) -> None:
        """What hosts have said while this process did not listen is still on its way."""
        if stuck := self.lease.tick(now):
            for box in self.boxes.values():
                box.excuse(stuck)
            self.awaited = {host: deadline + stuck for host, deadline in self.awaited.items()}

    def next_deadline(self, state: RunState) -> float | None:
        """When somebody's patience ends, if nothing is heard before."""
        return min([*(box.deadline for box in self.living(state).values()), *self.awaited.values()], default=None)
