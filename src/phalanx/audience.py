"""How people reach whoever leads a run: also while a lead that was lost or frozen has its successor on the way."""

from __future__ import annotations

import contextlib
import dataclasses
import time
from collections.abc import Callable
from typing import TypeVar

from phalanx.decide.quorum import LINE, TURN, lease_for
from phalanx.errors import PlaceError
from phalanx.events import RunEnded
from phalanx.protocol import people
from phalanx.protocol.people import LeadBarredError, LeadMuteError, LeadUnreachableError
from phalanx.records.index import Entry
from phalanx.records.leadfile import last_beat
from phalanx.records.reader import read_end, read_state

#: Seconds between two tries.
_AGAIN = 0.5
#: Seconds that a successor may take to start, after it was its turn.
_START = 10.0

T = TypeVar("T")


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Standing:
    """What there is to be heard of a run's lead."""

    #: It has answered.
    answers: bool
    #: It has, or there will soon be one that does.
    leads: bool
    #: How it says that the run has ended, whether the records have it or not.
    end: RunEnded | None = None


def standing_of_lead(entry: Entry) -> Standing:
    """Asks once; never raises."""
    if not entry.lead:
        return Standing(answers=False, leads=False)
    try:
        told = people.state(entry.address, entry.token)
    except LeadUnreachableError as wrong:
        return Standing(answers=False, leads=succession(entry, wrong) > 0)
    return Standing(answers=True, leads=True, end=people.end_of(told))


def leads(entry: Entry) -> bool:
    """Whether a lead answers for this run, or is about to."""
    return standing_of_lead(entry).leads


def succession(entry: Entry, wrong: LeadUnreachableError) -> float:
    """Seconds for which a successor may still come to the lead that did not answer so; 0 where none will.

    A lead that is frozen, or whose successor starts on the same host, is connected to and does not answer. Where
    nobody listens, another host may take over.
    """
    with contextlib.suppress(PlaceError):
        if (carrier := people.carrier_of(entry.address)) is not None:
            return carrier.patience(entry.address)
    beat = last_beat(entry.files)
    if beat is None:
        return 0.0
    hosts = sum(host.living for host in read_state(entry.files).hosts.values())
    if hosts < (1 if isinstance(wrong, LeadMuteError) else 2):
        return 0.0
    age = time.time() - beat
    longest = lease_for(hosts) + TURN * min(hosts, LINE) + _START
    return max(longest - age, 0.0) if age >= 0 else 0.0


def audience(entry: Entry, ask: Callable[[str, str], T], *, say: Callable[[str], None]) -> T:
    """What the lead answers to `ask(address, token)`, which may be called again: it is, while a successor may come.

    `say` hears once that one is waited for. Raises what `ask` raises; LeadUnreachableError once nobody will come.
    """
    told: float | None = None
    while True:
        begun = time.monotonic()
        try:
            return ask(entry.address, entry.token)
        except LeadBarredError:
            raise
        except LeadUnreachableError as wrong:
            left = succession(entry, wrong)
            if "://" in entry.address and told is not None:
                left -= begun - told
            if left <= 0 or read_end(entry.files) is not None:
                raise
        if told is None:
            say(f"the lead of {entry.run} does not answer; its successor is awaited, for up to {left:.0f} s")
            told = begun
        time.sleep(max(begun + _AGAIN - time.monotonic(), 0.0))
