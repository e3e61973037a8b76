"""From readings of one task to the words that change something: frozen, quiet, stalled, awake. Pure."""

from __future__ import annotations

import dataclasses
from typing import Protocol

#: In one look a connection must have carried more than this to be training: heartbeats are some 250 bytes in five
#: seconds each (facts §11).
HEARTBEAT = 512
#: Of one core: who uses more than this computes, and does not wait. A worker in a collective uses 0.001.
BUSY = 0.1
#: Seconds between two looks: no gap in the traffic can be seen more finely.
_BETWEEN = 1.0
#: Looks with traffic after which a task whose steps nobody counts is taken to train: its start is some bursts only.
_TRAINS = 10
#: How much longer than the longest gap so far a gap must be before it is worth a word.
_UNUSUAL = 2.0
#: The most that the patience for silence grows to, in seconds: who pauses often is not told of every time.
_LONGEST = 60.0


class Sign(Protocol):
    """What the runtime inside the process tells."""

    @property
    def step(self) -> int | None:
        """Steps of this attempt so far; None while there is none, or none is counted."""
        ...

    @property
    def stepped(self) -> float | None:
        """When the newest was done, in Unix seconds."""
        ...

    @property
    def longest(self) -> float:
        """The longest gap between two of them, in seconds."""
        ...

    @property
    def doing(self) -> str:
        """A pause that it knows of: tracing, validation, saving."""
        ...

    @property
    def inside(self) -> bool | None:
        """Whether it is in a training step; None while there was none."""
        ...


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Reading:
    """One look at a task, from outside and, where the runtime rides along, from inside."""

    #: Unix seconds.
    now: float
    frozen: bool = False
    #: CPU seconds of its processes so far, and how often its main thread was given a core.
    cpu: float = 0.0
    ran: int = 0
    #: When it last wrote a byte.
    output: float | None = None
    #: The most that one of its connections carried since the look before, both ways.
    carried: int = 0
    #: Whether its server answers; None where it was not asked, or the answer is not there yet.
    answers: bool | None = None
    #: Whether its main thread waits for others of the process; None where the kernel does not tell.
    waits: bool | None = None
    listens: bool = False
    #: Whether we have had its stacks written since the look before: that wakes it, and costs it time.
    disturbed: bool = False
    sign: Sign | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class Froze:
    """Stopped by a signal."""

    since: float


@dataclasses.dataclass(frozen=True, slots=True)
class Quiet:
    """No sign of any kind."""

    since: float


@dataclasses.dataclass(frozen=True, slots=True)
class Stalled:
    """It lives, and its steps have stopped; `step` 0 where nobody counts them."""

    since: float
    step: int
    longest: float
    doing: str
    waits: bool
    inside: bool | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class Awake:
    """None of them any more."""


Word = Froze | Quiet | Stalled | Awake


class Pulse:
    """Remembers what was read of one attempt, and says what is new. Feed it about once a second."""

    def __init__(self, started: float, *, patience: float) -> None:
        """`patience`: seconds without a sign, or without a step, before a word is said."""
        self._patience = self._tolerance = patience
        self._last: Reading | None = None
        self._alive = started  # the newest sign of any kind
        self._progress: float | None = None  # the newest step, or training's traffic where steps are unknown
        self._step, self._longest, self._bursts = 0, 0.0, 0
        self._idle: tuple[float, float] = (started, 0.0)  # since when without progress, and the CPU time then
        self._frozen: float | None = None
        self._said: Froze | Quiet | Stalled | None = None
        self._said_at = started

    @property
    def wants_answer(self) -> bool:
        """Whether cheap signs have been missing for so long that its server is worth a question."""
        return self._last is not None and self._last.now - self._alive >= self._tolerance / 2

    @property
    def suspects(self) -> bool:
        """Whether the last look saw it stopped, and the next one should come soon."""
        return self._frozen is not None and not isinstance(self._said, Froze)

    def see(self, look: Reading) -> Word | None:
        """What is new with this look."""
        before, self._last = self._last, look
        if look.frozen:
            return self._stopped(look)
        continued, self._frozen = self._frozen is not None, None
        if continued or (before is not None and self._shows_life(before, look)):
            self._alive = look.now
        moved = self._moved(look)
        word = self._judge(look)
        if word is not None:
            if word != self._said:
                self._said, self._said_at = word, look.now
                return word
            return None
        if isinstance(self._said, Stalled) and not moved:
            return None  # it answers again after a silence, and still does no step
        if self._said is None:
            return None
        if isinstance(self._said, Quiet):
            self._tolerance = min(self._tolerance * 2, max(_LONGEST, self._patience))
        self._said = None
        return Awake()

    def _stopped(self, look: Reading) -> Word | None:
        """Twice in a row: the reaper stops what it ends, for a moment."""
        if self._frozen is None:
            self._frozen = look.now
            return None
        if isinstance(self._said, Froze):
            return None
        self._said = Froze(self._frozen)
        return self._said

    def _shows_life(self, before: Reading, look: Reading) -> bool:
        sign, old = look.sign, before.sign
        return (
            (not look.disturbed and (look.cpu > before.cpu or look.ran > before.ran))
            or look.carried > HEARTBEAT
            or look.answers is True
            or (look.output or 0.0) > (before.output or 0.0)
            or (sign is not None and (sign.step or 0) > ((old.step or 0) if old is not None else 0))
        )

    def _moved(self, look: Reading) -> bool:
        """Whether training went on since the look before."""
        sign = look.sign
        if sign is not None and sign.step and sign.stepped is not None:
            moved, at = sign.step > self._step, sign.stepped
            self._step, self._longest = sign.step, max(sign.longest, 0.0)
        else:
            moved, at = look.carried > HEARTBEAT, look.now
            if moved:
                self._bursts += 1
                if self._progress is not None and self._bursts > _TRAINS:
                    self._longest = max(self._longest, look.now - self._progress - _BETWEEN)
        if moved or (self._progress is None and not look.listens):
            self._idle = look.now, look.cpu
        if moved:
            self._progress = at
        return moved

    def _judge(self, look: Reading) -> Quiet | Stalled | None:
        # Who has a server is silent only when that does not answer either.
        sure = not look.listens or look.answers is False or isinstance(self._said, Quiet)
        if sure and look.now - self._alive >= self._tolerance:
            return Quiet(self._alive)
        since = self._progress
        if since is None:
            if not look.listens:
                return None  # it starts: the lead waits for it to listen
            since = self._idle[0]
        if look.now - since <= max(self._patience, _UNUSUAL * self._longest):
            return None
        doing = look.sign.doing if look.sign is not None else ""
        inside = look.sign.inside if look.sign is not None else None
        stalled = Stalled(since, self._step, round(self._longest, 3), doing, self._waits(look), inside)
        said = self._said
        if isinstance(said, Stalled) and said.step == stalled.step and self._too_soon(look, said, stalled):
            return said
        return stalled

    def _too_soon(self, look: Reading, said: Stalled, stalled: Stalled) -> bool:
        """What it does and whether it waits may flicker: neither is said again at every look."""
        same = (said.doing, said.waits, said.inside) == (stalled.doing, stalled.waits, stalled.inside)
        return same or (said.doing == stalled.doing and look.now - self._said_at < self._patience)

    def _waits(self, look: Reading) -> bool:
        since, cpu = self._idle
        if look.now > since and (look.cpu - cpu) / (look.now - since) > BUSY:
            return False
        return look.waits is not False
