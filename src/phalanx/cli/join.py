"""`phalanx join`."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from typing import Annotated

from cyclopts import Parameter

from phalanx.audience import audience
from phalanx.cli import which
from phalanx.cli.asker import asker, patiently
from phalanx.cli.values import whole
from phalanx.decide.elastic import living_hosts, resize, workers
from phalanx.errors import InputError, PlaceError
from phalanx.launch import join as start
from phalanx.protocol import people
from phalanx.records.index import LAST, Entry
from phalanx.records.reader import read_plan, read_state
from phalanx.states import RunState

#: Seconds that the agent has to be known to the lead, and between two looks.
_PATIENCE, _LOOK = 30.0, 0.1


def join(
    run: which.Run = LAST,
    /,
    *,
    host: Annotated[
        int | None, Parameter(help="Its number (that of a lost host, else a new one).", converter=whole)
    ] = None,
) -> int:
    """Bring one more host to a run: an agent here, in place of a lost one or beside the others. Ctrl-C takes it away.

    An elastic run (`--max-workers`) grows onto it after a cool-down; any other takes it where a host is missing. The
    tasks that come to it get the environment of this command. Returns when the run has ended.

    For example:
      phalanx join last
      phalanx join digits-1130-073311 --host 1
    """
    entry, state = which.going(run)
    if state.generation and not _has_room(state):
        hint = "start it with --max-workers to let it grow"
        raise InputError(f"{entry.run} has all the hosts that it can use", hint=hint)
    if not entry.lead:
        raise PlaceError(f"{entry.run} is not in this user's index: nobody here knows where its lead is")
    known = audience(entry, people.state, say=patiently)["hosts"]
    number = _number(known) if host is None else host
    if known.get(str(number)):
        raise InputError(f"host {number} of {entry.run} has an agent already", hint="leave --host out")
    agent = start(entry, host=number, environ=os.environ)
    try:
        deadline = time.monotonic() + _PATIENCE
        while audience(entry, people.state, say=patiently)["hosts"].get(str(number)) != agent.pid:
            if agent.poll() is not None or time.monotonic() > deadline:
                raise PlaceError(f"host {number} could not join", hint=f"see {entry.files.agent_log(number)}")
            time.sleep(_LOOK)
        print(f"host {number} has joined {entry.run}{_taken_up(entry)}; Ctrl-C takes it away again", flush=True)
        return agent.wait()
    except KeyboardInterrupt:
        return _take_away(entry, number, agent)
    finally:
        if agent.poll() is None:
            agent.kill()
            agent.wait()


def _take_away(entry: Entry, host: int, agent: subprocess.Popen[bytes]) -> int:
    """The run stops where it can and lets the agent go; a second Ctrl-C does not wait for that."""
    sys.stderr.write(f"\nphalanx: host {host} leaves {entry.run} once it has stopped (again to leave at once)\n")
    try:
        by = asker("join")
        audience(entry, lambda address, token: people.withdraw(address, token, host=host, by=by), say=patiently)
        return agent.wait()
    except (PlaceError, KeyboardInterrupt):
        return 0


def _taken_up(entry: Entry) -> str:
    """When the run grows onto it, where that is not at once; empty where nobody here can tell."""
    plan, now = read_plan(entry.files), time.time()
    due = resize(read_state(entry.files), plan.outline.policies, now) if plan is not None else None
    return f" and gets workers in {due - now:.0f} s (cool-down)" if isinstance(due, float) else ""


def _has_room(state: RunState) -> bool:
    """Whether one more host would run anything: one is missing, or workers may be more."""
    living = living_hosts(state)
    if living < state.wanted_hosts:
        return True
    elastic, now = state.elastic, workers(state.tasks)
    return elastic is not None and (elastic.size(living + 1, state.asked) or now) > now


def _number(known: dict[str, int]) -> int:
    """The lowest number whose agent is gone, else the next one."""
    gone = [int(number) for number, living in known.items() if not living]
    return min(gone, default=1 + max(map(int, known), default=-1))
