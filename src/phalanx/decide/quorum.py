"""Who leads when the lead is silent, and which lead may give orders. Times are seconds."""

from __future__ import annotations

from collections.abc import Sequence

#: A host that is silent for so long is lost to its lead, and a lead to its agents; with many hosts see `lease_for`.
LEASE = 10.0

#: A lead answers this many polls a second with time to spare for everything else; an agent asks thrice a lease.
_POLLS = 600

#: Nobody is silent for longer, however many there are.
_LONGEST = 60.0

#: For so long each host waits for the one before it in the line.
TURN = 3.0

#: A lead that has just been started may take so long to answer.
STARTING = 20.0

#: So many hosts know that they may be next; a run whose first five are lost at once has lost its lead.
LINE = 5


def lease_for(hosts: int) -> float:
    """The lease of a run with so many hosts: a lead that thousands ask needs longer for each."""
    return min(max(LEASE, 3 * hosts / _POLLS), _LONGEST)


def turn(line: Sequence[str], own: str, lead: str, *, lease: float = LEASE) -> float | None:
    """How long `lead` has to be silent until the agent at `own` takes over; None where it is not in the line.

    `line`: the addresses at which agents would lead, lowest host first. The host of the silent lead itself has the
    first turn, at the end of the `lease`.
    """
    heirs = [address for address in line if address != lead]
    return lease + TURN * (1 + heirs.index(own)) if own in heirs else None


def patience(line: Sequence[str], own: str, lead: str, *, lease: float = LEASE) -> float:
    """How long an agent waits for whoever comes after `lead` before it ends its tasks."""
    heirs = [address for address in line if address not in (lead, own)]
    return lease + TURN * (1 + len(heirs)) + STARTING if lead != own or heirs else lease


def gives_orders(*, heard: int, of: int, lowest: bool, fenced: bool) -> bool:
    """Whether a lead that hears from `heard` of its `of` agents may give orders: two leads never both may.

    With a tie the side decides that has the `lowest` host of the line. Where all leads of a run write into one
    folder, the newest has `fenced` off the others there, and numbers do not count.
    """
    return fenced or 2 * heard > of or (2 * heard == of and lowest)
