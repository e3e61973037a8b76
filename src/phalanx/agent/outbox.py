"""What this agent has to tell, numbered from 1: kept until it is taken, and the newest of it longer."""

from __future__ import annotations

from typing import Any

#: At most this many events in one request; the rest follows at once.
BATCH = 200

#: How many events are kept though a lead has taken them: its successor may know less, where a full disk kept them from
#: the records. A generation's own are fewer on any host.
KEPT = 2000


class Outbox:
    """Events by number. `waiting` says how many the lead has not taken yet."""

    def __init__(self) -> None:
        """Empty."""
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

    def rewind(self, upto: int) -> None:
        """Another lead has them up to this number only: the rest is told again, as far as it is kept."""
        self._next = max(self._first, min(self._next, upto + 1))
