"""How a run stands now: what its records say, and whether anybody still leads it."""

from __future__ import annotations

from collections.abc import Callable

from phalanx.observe.follow import last_sign, lost
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
    if state.phase.terminal or leads(entry):
        return state
    state = read_state(entry.files)  # it may have ended between the two looks
    return state if state.phase.terminal else lost(state, _why(entry), last_sign(entry.files, state) or entry.created)


def leads(entry: Entry) -> bool:
    """Whether a lead answers for this run."""
    return bool(entry.lead) and people.alive(entry.lead, entry.token)


def silence(entry: Entry) -> str:
    """Why the run counts as lost."""
    return f"no lead answers at {entry.lead}" if entry.lead else "this user's index does not know where it is led"


def _why(entry: Entry) -> str:
    """That, and what the agents and the lead said last: they say little, and nothing where all is well."""
    said = [lines[-1].strip() for log in sorted(entry.files.agents.glob("*.log")) if (lines := last_lines(log, 1))]
    words = list(dict.fromkeys(line for line in said if line and not line.startswith("lead of ")))[-_WORDS:]
    return "; ".join([silence(entry), *(f"an agent's last line: {redact(line)}" for line in words)])


def broken_after(entry: Entry) -> Callable[[], str | None]:
    """A question for `Follower`: the lead is gone once it has failed to answer several times in a row."""
    failed = 0

    def broken() -> str | None:
        nonlocal failed
        failed = 0 if leads(entry) else failed + 1
        return _why(entry) if failed >= _TRIES else None

    return broken
