"""What people, launchers and platforms ask of a lead: each becomes an event, once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol

from phalanx import events as ev
from phalanx.decide.elastic import of_roles
from phalanx.errors import PhalanxError, PlaceError
from phalanx.lead.generation import task_orders
from phalanx.lead.mailbox import Mailbox
from phalanx.lead.roll import Roll
from phalanx.names import TaskId
from phalanx.plan.size import check_size
from phalanx.protocol.messages import Order
from phalanx.states import RunPhase, RunState
from phalanx.taskstate import TaskPhase


class Leading(Protocol):
    """The part of `Lead` that is told."""

    @property
    def state(self) -> RunState:
        """As the records have it."""
        ...

    roll: Roll

    def living(self) -> dict[int, Mailbox]:
        """See Lead."""
        ...

    def say(self, event: ev.Event) -> None:
        """See Lead."""

    def send(self, orders: Mapping[int, Order]) -> None:
        """See Lead."""

    def fail_to_bind(self, wrong: PhalanxError) -> None:
        """See Lead."""


class People:
    """Takes wishes. To be told the same again changes nothing."""

    def __init__(self, lead: Leading, clock: Callable[[], float]) -> None:
        """`clock` is the lead's."""
        self._lead, self._clock = lead, clock

    def stop(self, *, by: str, hard: bool) -> None:
        """Somebody wants the run to end. A second request may be harder, never softer."""
        before = self._lead.state.stop
        if before is None or (hard and not before.hard):
            self._lead.say(ev.StopRequested(time=self._clock(), by=by, hard=hard))

    def scale(self, workers: int, *, by: str) -> None:
        """Somebody wants so many workers from now on. Raises InputError for a number it does not take."""
        if workers == self._lead.state.asked:  # whoever has waited for an answer asks again
            return
        check_size(self._lead.state.elastic, workers)
        self._lead.say(ev.ScaleRequested(time=self._clock(), by=by, workers=workers))

    def stacks(self, tasks: tuple[TaskId, ...], *, by: str) -> tuple[TaskId, ...]:
        """These tasks are to write what their threads do; returns those of them that run at all."""
        state = self._lead.state
        running = tuple(name for name in tasks if state.tasks[name].phase is TaskPhase.RUNNING)
        self._lead.say(ev.StacksOrdered(time=self._clock(), generation=state.generation, tasks=running, by=by))
        self._lead.send(task_orders(self._lead.state, "stacks", running))
        return running

    def note(self, message: str, *, host: int | None = None) -> None:
        """Something a person should know that changes nothing."""
        self._lead.say(ev.Noted(time=self._clock(), message=message, host=host))

    def withdraw(self, host: int, *, by: str) -> None:
        """Somebody takes a host away."""
        if host in self._lead.living() and not self._lead.state.hosts[host].leaving:
            self._lead.say(ev.HostWithdrawn(time=self._clock(), host=host, by=by))

    def lose(self, host: int, reason: str, *, name: str = "", kind: str = "", hint: str = "") -> None:
        """A launcher, or whoever watches the place, saw this host's agent end. One that had not joined yet never will,
        but for a pod, which is replaced. With a `name` only the host of that name is lost: a replacement has another.
        `kind` and `hint` where the place says more than that it is gone.
        """
        state = self._lead.state
        known = state.hosts.get(host)
        if known is not None and known.living and not state.phase.terminal:  # agents leave at the end
            if name in ("", known.joined.name):
                self._lead.roll.awaited.pop(host, None)
                self._lead.say(ev.HostLost(time=self._clock(), host=host, reason=reason, kind=kind, hint=hint))
        elif known is None and state.phase is RunPhase.JOINING and not state.stop and not of_roles(state):
            hint = f"see agents/{host}.log in the run's folder"
            self._lead.fail_to_bind(PlaceError(f"host {host} cannot join: {reason}", hint=hint))
