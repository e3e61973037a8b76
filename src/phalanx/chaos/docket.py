"""The faults that are not settled yet, and whose an event is: by what each can do, and only then by time. Pure."""

from __future__ import annotations

import signal
from collections.abc import Iterator

from phalanx import events as ev
from phalanx.chaos.fault import Fault
from phalanx.chaos.kinds import Aim
from phalanx.chaos.watch import Watch, breaks
from phalanx.decide.exits import evidence, says_victim
from phalanx.names import TaskId
from phalanx.states import RunPhase, RunState


class Docket:
    """The newest fault in `newest`, and before it those of which nothing came so far, but still may.

    What breaks the group is put down to one of them until all runs again: to the newest that can do such a thing, else
    to the newest. The others look on.
    """

    def __init__(self) -> None:
        """Nothing was done yet."""
        self._open: list[Watch] = []
        self._owner: Watch | None = None

    def __iter__(self) -> Iterator[Watch]:
        """The open ones, the newest last."""
        return iter(tuple(self._open))

    @property
    def newest(self) -> Watch | None:
        """The fault that was done last, while it is open."""
        return self._open[-1] if self._open else None

    @property
    def quiet(self) -> bool:
        """Whether nothing has come of any of them in its first seconds: another fault would be told apart."""
        return all(watch.late for watch in self._open)

    def add(self, watch: Watch) -> None:
        """One more was done."""
        self._open.append(watch)

    def see(self, event: ev.Event, state: RunState, now: float) -> None:
        """One more event; `state` is the one after it."""
        breaking = breaks(event)
        if breaking and self._owner is None and self._open:
            able = [watch for watch in self._open if explains(watch.told.fault, event)]
            self._owner = (able or self._open)[-1]
        fails = isinstance(event, ev.RunEnded) and event.outcome != RunPhase.SUCCEEDED.value
        for watch in self._open:
            if self._owner in (None, watch) or not (breaking or fails):
                watch.see(event, state, now)
        owner = self._owner
        if owner is not None and not owner.open:
            for watch in self._open:
                watch.overtaken(owner.told.fault, state)
        if owner is not None and not (owner.open and owner.broken):
            self._owner = None

    def wait(self, now: float, *, settle: float, patience: float) -> None:
        """Time has passed and nothing was said."""
        for watch in self._open:
            watch.wait(now, settle=settle, patience=patience)

    def take(self) -> tuple[Watch, ...]:
        """Those that are settled now, once each."""
        settled = tuple(watch for watch in self._open if not watch.open)
        self._open = [watch for watch in self._open if watch.open]
        if self._owner in settled:
            self._owner = None
        return settled


def explains(fault: Fault, event: ev.Event) -> bool:  # noqa: PLR0911 - a table of events
    """Whether the fault can be the cause of this, the first of what breaks the group, as far as the event tells."""
    aim = fault.row.aim
    match event:
        case ev.TaskExited():
            return _ends(fault, event)
        case ev.CulpritNamed(task=TaskId() as task):
            return task in fault.tasks
        case ev.CulpritNamed() | ev.HostLost():
            return aim is Aim.HOST and str(event.host) == fault.target
        case ev.RunStarted():
            return aim is Aim.LEAD
        case ev.ResizeOrdered():
            return aim is Aim.SIZE
        case ev.StopRequested():
            return aim is Aim.LAUNCHER
    return False


def _ends(fault: Fault, event: ev.TaskExited) -> bool:
    """A task that is killed dies of that alone; what comes of a link the task says itself, and so does its peer."""
    match fault.row.aim:
        case Aim.HOST:
            return str(event.host) == fault.target
        case Aim.PAIR:
            return event.signal is None and (event.task in fault.tasks or says_victim(evidence(event)))
    return fault.kind == "kill" and event.task in fault.tasks and event.signal == signal.SIGKILL
