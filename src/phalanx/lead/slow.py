"""Collects what agents measure, and looks now and then at who makes the training slow."""

from __future__ import annotations

import collections
from collections.abc import Iterable
from typing import TypeVar

from phalanx.decide.pace import Places, Samples, paces
from phalanx.decide.persistence import Streaks, about, settle
from phalanx.decide.slowness import Look, look
from phalanx.lead.ends import Ends
from phalanx.names import TaskId
from phalanx.protocol.messages import Measured, Poll
from phalanx.sample import LinkSample, LoadSample, TaskSample
from phalanx.slowevents import SlowEvent, holding
from phalanx.states import RunPhase, RunState
from phalanx.taskstate import TaskPhase

#: Seconds that are looked at together: several stretches between samples, and short enough that a change shows.
WINDOW = 30.0
#: Seconds between two looks.
EVERY = 5.0

T = TypeVar("T", TaskSample, LoadSample, LinkSample)


class Slow:
    """The samples of one generation's last half minute; a newer generation begins with none."""

    def __init__(self) -> None:
        """Nothing is known yet."""
        self._due = 0.0
        self._forget(0)

    def _forget(self, generation: int) -> None:
        self._generation = generation
        self._steps: dict[TaskId, collections.deque[TaskSample]] = {}
        self._loads: dict[TaskId, collections.deque[LoadSample]] = {}
        self._links: dict[tuple[TaskId, TaskId], collections.deque[LinkSample]] = {}
        self._ends, self._streaks = Ends(), Streaks()

    def heard(
        self, poll: Poll, state: RunState, now: float
    ) -> tuple[tuple[LoadSample | LinkSample, ...], tuple[SlowEvent, ...]]:
        """What one agent's poll adds to what is known from outside, and what is to be said for it."""
        self.stepped(poll.samples, state.generation)
        seen = () if poll.measured is None else self.measured(poll.measured, state.generation)
        return seen, self.events(state, now)

    def measured(self, told: Measured, generation: int) -> tuple[LoadSample | LinkSample, ...]:
        """What one agent says of its tasks; returns what it adds to what is known, as samples."""
        if generation != self._generation:
            self._forget(generation)
        loads = [
            LoadSample(
                task=one.task,
                generation=one.generation,
                attempt=one.attempt,
                at=told.at,
                cpu=one.cpu,
                sent=one.sent,
                received=one.received,
                busy=told.busy,
                cpus=told.cpus,
            )
            for one in told.loads
            if one.generation == generation
        ]
        for load in loads:
            _keep(self._loads.setdefault(load.task, collections.deque()), load)
        links = self._ends.take(told) if loads else ()
        for link in links:
            _keep(self._links.setdefault(link.about, collections.deque()), link)
        return (*loads, *links)

    def stepped(self, samples: Iterable[TaskSample], generation: int) -> None:
        """How far tasks are, and how long they were in collectives."""
        if generation != self._generation:
            self._forget(generation)
        for sample in samples:
            if sample.generation == generation:
                _keep(self._steps.setdefault(sample.task, collections.deque()), sample)

    def look(self, state: RunState, now: float) -> Look:
        """As things are."""
        running = (task for task in state.tasks.values() if task.phase is TaskPhase.RUNNING)
        places = Places.of(running, state.hosts.values())
        samples = Samples(steps=self._steps, loads=self._loads, links=self._links)
        if state.generation != self._generation:
            samples = Samples()
        found = paces(samples, now)
        standing = {about(one) for one in holding(state.slow, state.generation)}
        return look(found, places, standing)

    def events(self, state: RunState, now: float) -> tuple[SlowEvent, ...]:
        """What is to be said now; looks every few seconds, and while everybody trains."""
        if now < self._due or state.phase is not RunPhase.RUNNING or state.generation != self._generation:
            return ()
        self._due = now + EVERY
        found = self.look(state, now).verdicts
        standing = holding(state.slow, state.generation)
        self._streaks, told = settle(self._streaks, found, standing, generation=state.generation, now=now)
        return told


def _keep(known: collections.deque[T], new: T) -> None:
    """In order, and no older than the window: a clock that was set back starts anew."""
    if known and new.at <= known[-1].at:
        if known[-1].at - new.at < WINDOW:
            return
        known.clear()
    known.append(new)
    while new.at - known[0].at > WINDOW:
        known.popleft()
