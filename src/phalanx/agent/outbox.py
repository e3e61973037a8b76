"""What this agent has to tell, numbered from 1: kept until it is taken, the newest of it longer, all of it on disk."""

from __future__ import annotations

from typing import Any, Protocol

#: At most this many events in one request; the rest follows at once.
BATCH = 200

#: How many events are kept in memory though a lead has taken them: its successor may know less, where a full disk kept
#: them from the records. A generation's own are fewer on any host. What is older is read from the journal.
KEPT = 2000


class Journal(Protocol):
    """See `agent.journal.Journal`."""

    def put(self, event: dict[str, Any]) -> None:
        """One more."""

    async def read(self, first: int, last: int) -> list[dict[str, Any]]:
        """The events of these numbers; fewer, or none, where they are not there."""
        ...


class Outbox:
    """Events by number. `waiting` says how many the lead has not taken yet."""

    def __init__(self, journal: Journal | None = None) -> None:
        """Empty. Without a `journal` only memory keeps what was taken."""
        self._journal = journal
        self._events: list[dict[str, Any]] = []
        self._first = 1  # the number of the oldest event kept
        self._next = 1  # the number of the first event that is not taken

    @property
    def waiting(self) -> int:
        """How many have not been taken."""
        return self._first + len(self._events) - self._next

    def put(self, event: dict[str, Any]) -> None:
        """One more."""
        self._events.append(event)
        if self._journal is not None:
            self._journal.put(event)

    def batch(self) -> tuple[int, tuple[dict[str, Any], ...]]:
        """The number of the first event not taken, and as many from there as go into one request."""
        start = self._next - self._first
        return self._next, tuple(self._events[start : start + BATCH])

    def taken(self, upto: int) -> None:
        """The lead has them up to this number."""
        self._next = min(max(self._next, upto + 1), self._first + len(self._events))
        spare = self._next - self._first - KEPT
        if spare >= KEPT:  # seldom: a list is slow at its front
            del self._events[:spare]
            self._first += spare

    async def rewind(self, upto: int) -> None:
        """Another lead has them up to this number only: the rest is told again, as far as it is kept."""
        first = self._first
        if upto + 1 < first and self._journal is not None:
            older = await self._journal.read(upto + 1, first - 1)
            if self._first == first:
                self._events[:0] = older
                self._first -= len(older)
        self._next = max(self._first, min(self._next, upto + 1))
