"""How a run stands now: what its records say, and whether anybody still leads it."""

from __future__ import annotations

import dataclasses

from phalanx.audience import standing_of_lead
from phalanx.errors import PlaceError
from phalanx.events import RunEnded
from phalanx.observe.follow import Broken, last_sign, lost, unwritten
from phalanx.protocol import people
from phalanx.records.index import Entry
from phalanx.records.lastwords import last_lines
from phalanx.records.reader import read_state
from phalanx.redact import redact
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
    known = {(one.get("task"), one.get("generation"), one.get("attempt")): one.get("step") for one in told}
    tasks = dict(state.tasks)
    for name, task in state.tasks.items():
        step = known.get((str(name), task.generation, task.attempt))
        if isinstance(step, int) and step > task.step and not task.phase.over:
            tasks[name] = dataclasses.replace(task, step=step)
    return dataclasses.replace(state, tasks=tasks)


def silence(entry: Entry) -> str:
    """Why the run counts as lost."""
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
