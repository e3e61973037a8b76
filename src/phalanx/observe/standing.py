"""How a run stands now: what its records say, and whether anybody still leads it."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from typing import Any

from phalanx.audience import standing_of_lead
from phalanx.errors import PlaceError
from phalanx.events import RunEnded
from phalanx.observe.follow import Broken, last_sign, lost, unwritten
from phalanx.plan.wire import from_wire
from phalanx.protocol import people
from phalanx.records.index import Entry
from phalanx.records.lastwords import last_lines
from phalanx.records.reader import read_state
from phalanx.redact import redact
from phalanx.sample import TaskSample
from phalanx.states import RunState

#: Seconds between two questions to a lead that somebody else has started, and how many in a row it may miss.
ASK = 2.0
_TRIES = 2
#: How many different last lines of agents are told.
_WORDS = 2


def standing(entry: Entry) -> RunState:
    """The state now; `LOST` where no end is written and no lead answers."""
    state = read_state(entry.files)
    if state.phase.terminal or ((lead := standing_of_lead(entry)).leads and lead.end is None):
        return state
    state = read_state(entry.files)  # it may have ended between the two looks
    if state.phase.terminal:
        return state
    if lead.end is not None:
        return unwritten(state, lead.end, entry.files)
    return lost(state, _why(entry), last_sign(entry.files, state) or entry.created)


def counted(state: RunState, entry: Entry) -> RunState:
    """The same with the steps of this second, as the agents tell the lead; the records are up to ten seconds behind."""
    if state.phase.terminal:
        return state
    try:
        told = people.steps(entry.address, entry.token)
    except (PlaceError, ValueError):
        return state
    return with_samples(state, filter(None, map(_sample, told)))


def with_samples(state: RunState, samples: Iterable[TaskSample]) -> RunState:
    """The state with the newest sample of each attempt that goes on, and its steps where those are more."""
    known = {one.about: one for one in samples}
    tasks = dict(state.tasks)
    for name, task in state.tasks.items():
        sample = known.get((name, task.generation, task.attempt))
        if sample is not None and not task.phase.over:
            tasks[name] = dataclasses.replace(task, step=max(sample.steps, task.step), sample=sample)
    return dataclasses.replace(state, tasks=tasks)


def _sample(told: dict[str, Any]) -> TaskSample | None:
    try:
        return from_wire(TaskSample, told)
    except ValueError:  # an older lead, or none of ours
        return None


def silence(entry: Entry) -> str:
    """Why the run counts as lost."""
    if "://" in entry.lead:
        return f"nothing of it goes on at {entry.lead}: it was stopped or deleted from elsewhere, or its time was over"
    return f"no lead answers at {entry.address}" if entry.lead else "this user's index does not know where it is led"


def _why(entry: Entry) -> str:
    """That, and what the agents and the lead said last: they say little, and nothing where all is well."""
    said = [lines[-1].strip() for log in sorted(entry.files.agents.glob("*.log")) if (lines := last_lines(log, 1))]
    words = list(dict.fromkeys(line for line in said if line and not line.startswith("lead of ")))[-_WORDS:]
    return "; ".join([silence(entry), *(f"an agent's last line: {redact(line)}" for line in words)])


def broken_after(entry: Entry) -> Broken:
    """A question for `Follower`: the lead is gone once it has failed to answer several times in a row."""
    failed = 0

    def broken() -> str | RunEnded | None:
        nonlocal failed
        lead = standing_of_lead(entry)
        failed = 0 if lead.leads else failed + 1
        return _why(entry) if failed >= _TRIES else lead.end

    return broken
