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


def step_apart(lease: float) -> float:
    """Between two turns where nothing tells an heir that the one before it leads already: it has to find out itself.

    Agents last hear of a lead within a third of the lease of each other, and an address that lets nothing through
    takes a fifth of it to try.
    """
    return 0.8 * lease


def heirs(line: Sequence[str], lead: str) -> list[str]:
    """Those of the line that come after `lead`, in their order."""
    return [address for address in line if address != lead]


def turn(line: Sequence[str], own: str, lead: str, *, lease: float = LEASE, step: float = TURN) -> float | None:
    """How long `lead` has to be silent until the agent at `own` takes over; None where it is not in the line.

    `line`: the addresses at which agents would lead, lowest host first; `step` lies between two turns. The host of the
    silent lead itself has the first turn, at the end of the `lease`.
    """
    after = heirs(line, lead)
    return lease + step * (1 + after.index(own)) if own in after else None


def leads_by_now(line: Sequence[str], lead: str, silent: float, *, lease: float, step: float) -> list[str]:
    """Those whose turn may have come after so many seconds of silence, the newest first: others have last heard of
    `lead` a little earlier.
    """
    return heirs(line, lead)[: max(0, int((silent - 0.6 * lease) // step))][::-1]


def patience(line: Sequence[str], own: str, lead: str, *, lease: float = LEASE, step: float = TURN) -> float:
    """How long an agent waits for whoever comes after `lead` before it ends its tasks."""
    others = [address for address in heirs(line, lead) if address != own]
    return lease + step * (1 + len(others)) + STARTING if lead != own or others else lease


def recently(lease: float) -> float:
    """For so long after its last question a host counts as heard: twice the time between two of them.

    An agent asks thrice a lease. All hosts that are cut off at one moment fall silent within a third of a lease, and
    so the last of them does not count any more when the first is given up.
    """
    return 0.6 * lease


def gives_orders(*, heard: int, of: int, lowest: bool) -> bool:
    """Whether a lead that hears from `heard` of its `of` agents may give orders: two leads never both may.

    With a tie the side decides that hears the `lowest` host. Where all leads of a run write into one folder the newest
    has fenced off the others there, and nobody need be counted.
    """
    return 2 * heard > of or (2 * heard == of and lowest)
