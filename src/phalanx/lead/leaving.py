"""Hosts that somebody takes away: told to leave once nothing of the run is there any more."""

from __future__ import annotations

from collections.abc import Mapping

from phalanx.decide.elastic import uses
from phalanx.errors import PlaceError
from phalanx.events import HostLeft
from phalanx.lead.mailbox import Mailbox
from phalanx.plan.pods import ANEW, final
from phalanx.protocol.messages import Order
from phalanx.states import RunState


def staying(state: RunState, living: Mapping[int, Mailbox]) -> dict[int, Mailbox]:
    """Those that the next generation may use."""
    return {host: box for host, box in living.items() if not state.hosts[host].leaving}


def let_go(state: RunState, living: Mapping[int, Mailbox], now: float) -> list[HostLeft]:
    """Tell those that go, once; and say which of them have heard it."""
    gone = []
    for host, box in living.items():
        if not state.hosts[host].leaving or uses(state, host):
            continue
        if box.left:
            gone.append(HostLeft(time=now, host=host))
        elif not box.leaves:
            box.put(Order(seq=0, epoch=0, kind="leave", code=PlaceError.exit_code))
    return gone


def farewell(state: RunState) -> Order:
    """What all hosts are told once the run has ended. A run that was begun anew, and came to nothing because nobody
    came, may live elsewhere: this is no end of it.
    """
    code = state.end.exit_code if state.end else 0
    anew = state.epoch > ANEW and not state.generation
    return Order(seq=0, epoch=0, kind="leave", code=code if anew else final(code))
