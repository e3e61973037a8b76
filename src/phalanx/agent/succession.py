"""What an agent does when its lead is silent: ends a frozen one of its own, asks others, or takes over itself."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Protocol

from phalanx.decide.quorum import LEASE, TURN, heirs, leads_by_now, patience, step_apart, turn
from phalanx.records.leadfile import Rule

#: Where no file tells leads apart: the epochs that all heirs of a lead have for themselves, and that each of them has.
_EPOCHS, _OWN = 100, 10

#: As many refusals of the lead's address are no moment in which it is just being taken over.
_GONE = 4


class Carrying(Protocol):
    """The part of `Carrier` that is asked."""

    #: Where a lead of this host answers: `host:port`.
    address: str

    @property
    def carries(self) -> bool:
        """Whether it keeps a lead alive now."""
        ...

    @property
    def spent(self) -> bool:
        """Whether it will start no lead any more."""
        ...

    @property
    def done(self) -> bool:
        """Whether its lead has led the run to its end."""
        ...

    def end_silent(self, epoch: int) -> None:
        """Kill its lead, if that has answered in `epoch` or has had the time to start. Its successor is started."""
        ...

    def take_over(self, epoch: int) -> None:
        """Start a lead of at least that epoch."""
        ...


class Copying(Protocol):
    """The part of `Understudy` that is asked."""

    def wanted(self, *, yes: bool) -> None:
        """Whether this host may lead next."""
        ...

    def hand_over(self) -> bool:
        """Put the copy of the records where a lead of this host finds it; False where there is none."""
        ...


class Succession:
    """Asked at each failed try to reach the lead. Knows the line of hosts that may lead, and the run's `lead.json`."""

    def __init__(
        self,
        carrier: Carrying,
        *,
        lead: str,
        lease: float = LEASE,
        turn_to: Callable[[str], None],
        rule: Callable[[], Rule | None],
        beat: Callable[[], float | None],
        understudy: Copying | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`lease`: until the lead tells. `turn_to` points the next request to another address; `rule` and `beat` read
        `lead.json`. An `understudy` there is where the hosts do not share that folder, and nobody can read it.
        """
        self._lease = lease
        self._carrier, self._turn_to, self._rule, self._beat = carrier, turn_to, rule, beat
        self._understudy = understudy
        self._clock = clock
        self._lead = self._asked = lead
        self._line: tuple[str, ...] = ()
        self._tries = 0
        self._mute: set[str] = set()  # who was asked in vain since the last answer
        self._first_beat: float | None = None
        self._refusals = 0  # of the lead's own address, since its last answer

    def learn(self, line: tuple[str, ...]) -> None:
        """The newest line: addresses of agents that may lead, lowest host first."""
        self._line = line or self._line
        if self._understudy is not None:
            self._understudy.wanted(yes=self._carrier.address in self._line and not self._carrier.carries)

    def lasts(self, lease: float) -> None:
        """For so many seconds the lead may be silent."""
        self._lease = lease

    def answered(self) -> None:
        """The lead is there."""
        if self._tries or self._asked != self._lead:
            self._lead, self._tries, self._first_beat = self._asked, 0, None
        self._refusals = 0
        self._mute.clear()

    def leads_at(self, address: str) -> None:
        """The lead has said itself where it is: what it was asked by may be another's name before long."""
        self._lead = address
        self._ask(address)

    def resigned(self, heir: str, epoch: int) -> None:
        """The lead of `epoch` goes, and names the address of the next one. That one begins; the others ask there."""
        carrier = self._carrier
        if heir == carrier.address and not carrier.carries and not carrier.spent:
            rule = self._rule()
            if self._knows_the_run(rule):
                carrier.take_over(self._next_epoch(rule, epoch))
        self._ask(heir)

    def refused(self) -> None:
        """Whom was asked last has nobody that listens."""
        self._refusals += self._asked == self._lead

    def silent(self, seconds: float, epoch: int) -> bool:
        """A try has failed, so long after the last answer of a lead of `epoch`. False: nobody is left to wait for.

        An agent keeps the address of its lead open whatever becomes of that. Where it is refused again and again the
        agent is gone, and neither the lease nor the turn of its host need be waited for.
        """
        whole, gone = seconds, self._refusals >= _GONE and not self._carrier.carries
        seconds += self._lease + self._step if gone else 0.0
        if self._carrier.done or seconds < self._lease:
            return not self._carrier.done
        self._mute.add(self._asked)
        if self._carrier.carries:
            self._ask(self._carrier.address)
            self._carrier.end_silent(epoch)
            return True
        rule, beat, own = self._rule(), self._beat(), self._carrier.address
        if self._first_beat is None:
            self._first_beat = beat
        newer = rule is not None and rule.epoch > epoch
        lives = beat is not None and beat != self._first_beat
        if lives and not newer and whole >= 2 * self._lease:
            return False  # it lives, and we are cut off: by now it has given us up
        due = turn(self._line, own, self._lead, lease=self._lease, step=self._step)
        may = due is not None and seconds >= due and not lives and not self._carrier.spent
        if may and (unasked := self._unasked()):
            self._ask(unasked[0])
            return True
        if may and self._knows_the_run(rule):
            self._carrier.take_over(self._next_epoch(rule, epoch))
            self._ask(own)
            return True
        self._ask_another(rule, seconds)
        return whole < patience(self._line, own, self._lead, lease=self._lease, step=self._step)

    def _knows_the_run(self, rule: Rule | None) -> bool:
        """Whether a lead of this host would find the records."""
        return rule is not None if self._understudy is None else self._understudy.hand_over()

    def _next_epoch(self, rule: Rule | None, epoch: int) -> int:
        """Each heir has one of its own: where no file tells them apart, two leads of one epoch would be obeyed.

        A lead whose process dies is followed by the next epoch on its own host: room for those is left.
        """
        if rule is not None:
            return max(epoch, rule.epoch) + 1
        return (epoch // _EPOCHS + 1) * _EPOCHS + len(self._earlier()) * _OWN

    def _earlier(self) -> list[str]:
        """The heirs whose turn comes before ours."""
        after = heirs(self._line, self._lead)
        own = self._carrier.address
        return after[: after.index(own)] if own in after else after

    def _unasked(self) -> list[str]:
        """Heirs before us that have not been asked since the lead fell silent: this host may have slept meanwhile."""
        return [] if self._understudy is None else [place for place in self._earlier() if place not in self._mute]

    @property
    def _step(self) -> float:
        return TURN if self._understudy is None else step_apart(self._lease)

    def _ask_another(self, rule: Rule | None, silent: float) -> None:
        """By turns: who leads by the run's folder, or may lead by now; all who may; and the old address again."""
        if self._understudy is None:
            where = [*([rule.address] if rule is not None else []), *self._line]
        else:
            where = leads_by_now(self._line, self._lead, silent, lease=self._lease, step=self._step)
        others = [place for place in dict.fromkeys([*where, self._lead]) if place != self._carrier.address]
        places = others or [self._lead]  # a host alone, whose lead is gone
        self._ask(places[self._tries % len(places)])
        self._tries += 1

    def _ask(self, address: str) -> None:
        self._asked = address
        self._turn_to(address)
