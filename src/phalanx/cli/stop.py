"""`phalanx stop`."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable, Sequence
from typing import Annotated

from cyclopts import Parameter

from phalanx.audience import audience, leads
from phalanx.cli import which
from phalanx.cli.asker import asker, patiently
from phalanx.cli.where import There
from phalanx.errors import InputError, PlaceError, RunNotFoundError
from phalanx.events import Record, RunEnded, StopOrdered, StopRequested, TaskExited
from phalanx.observe.follow import Broken, Follower
from phalanx.observe.standing import ASK, broken_after, standing
from phalanx.observe.words import NAMED, describe
from phalanx.protocol import people
from phalanx.records.index import LAST, Entry, Index
from phalanx.records.reader import read_end, read_state
from phalanx.remote import cleared, followed, interrupt, is_remote
from phalanx.states import RunPhase, RunState

#: Seconds between two questions to a lead whose records nobody can read.
_LOOK = 0.1


def stop(  # noqa: PLR0911 - one return an end
    run: which.AnyRun = None,
    /,
    *,
    now: Annotated[bool, Parameter(negative=(), help="KILL at once, without a grace to save in.")] = False,
    wait: Annotated[bool, Parameter(negative="--no-wait", help="Return when it has ended.", show_default=False)] = True,
    there: Annotated[There, Parameter(name="*")] = There(),  # noqa: B008 - frozen
) -> int:
    """End a run: every task gets TERM, a grace to save in, and KILL.

    Without RUN: the only one that goes on. A run that has ended already is no mistake. Where its lead does not answer,
    its successor is waited for. In a cluster all objects of the run are deleted once it has ended. Exits 0 once the
    run has ended, 3 where nobody leads it.

    Examples:
      phalanx stop
      phalanx stop digits-1130-073311 --now
      phalanx stop ctr-1130-120000 --on kubernetes --namespace ml
    """
    entry = which.known_as(run or LAST, there.where) if run is not None or there.where is not None else _only()
    if is_remote(entry):
        return _in_cluster(entry, now=now, wait=wait)
    if not entry.files.path.is_dir():
        return _unrecorded(entry, now=now, wait=wait)
    state = read_state(entry.files)
    if state.phase.terminal:
        print(f"{entry.run} has ended already: {_result(state)}")
        return 0
    before = state.seq
    if not entry.lead:
        raise PlaceError(f"{entry.run} is not in this user's index: nobody here knows where its lead is")
    try:
        audience(entry, _order(hard=now), say=patiently)
    except PlaceError as wrong:
        return _unanswered(entry, wrong)
    if not wait:
        print(f"{entry.run} is being {'killed' if now else 'stopped'}; phalanx attach {entry.run}")
        return 0
    view = _Endings(before)
    try:
        state = Follower(entry.files, view, broken=_insisting(entry, view, hard=now), ask=ASK).run()
    except KeyboardInterrupt:
        sys.stderr.write(f"\nphalanx: not waiting; {entry.run} is still being stopped (--now kills it)\n")
        return 0
    print(f"{entry.run} has ended: {_result(state)}")
    return 3 if state.phase is RunPhase.LOST else 0


def _in_cluster(entry: Entry, *, now: bool, wait: bool) -> int:
    """Ends a run in a cluster, by its lead or, where that cannot be asked, by its Jobs; then nothing of it is left."""
    state = read_state(which.caught_up(entry).files)
    if not state.phase.terminal:
        try:
            audience(entry, _order(hard=now), say=patiently)
        except PlaceError as wrong:
            sys.stderr.write(f"phalanx: {wrong}; its pods are told to end\n")
            interrupt(entry, by=asker("stop"))
        if not wait:
            print(f"{entry.run} is being {'killed' if now else 'stopped'}; phalanx attach {entry.run}")
            return 0
        view = _Endings(state.seq)
        try:
            with followed(entry):
                state = Follower(entry.files, view, broken=broken_after(entry), ask=ASK).run()
        except KeyboardInterrupt:
            sys.stderr.write(f"\nphalanx: not waiting; {entry.run} is still being stopped (--now kills it)\n")
            return 0
    cleared(entry, hard=now)
    print(f"{entry.run} has ended: {_result(state)}; nothing of it is left in its namespace")
    return 3 if state.phase is RunPhase.LOST else 0


def _order(*, hard: bool) -> Callable[[str, str], None]:
    """The order, for any lead that is asked."""
    return lambda address, token: people.stop(address, token, hard=hard, by=asker("stop"))


def _insisting(entry: Entry, view: _Endings, *, hard: bool) -> Broken:
    """As `broken_after`, and gives the order again while the records do not have it: its lead may have died with it."""
    broken, order = broken_after(entry), _order(hard=hard)

    def insist() -> str | RunEnded | None:
        word = broken()
        if word is None and not view.heard(hard=hard):
            with contextlib.suppress(PlaceError):
                order(entry.address, entry.token)
        return word

    return insist


def _unrecorded(entry: Entry, *, now: bool, wait: bool) -> int:
    """Ends a run whose folder was deleted: its lead still listens, and is asked until it has gone."""
    try:
        audience(entry, _order(hard=now), say=patiently)
    except PlaceError as wrong:
        if isinstance(wrong, people.LeadUnreachableError) and not leads(entry):
            raise RunNotFoundError(
                f"the folder of {entry.run} is gone ({entry.folder}), and no lead answers: nothing of it runs",
                hint="`phalanx ps` lists the runs that go on",
            ) from wrong
        raise
    try:
        while wait:
            people.state(entry.address, entry.token)
            time.sleep(_LOOK)
    except PlaceError:
        print(f"{entry.run} has ended; its folder is gone, and its records with it")
        return 0
    except KeyboardInterrupt:
        sys.stderr.write(f"\nphalanx: not waiting; {entry.run} is still being stopped (--now kills it)\n")
        return 0
    print(f"{entry.run} is being {'killed' if now else 'stopped'}; its folder is gone")
    return 0


class _Endings:
    """A view of how the tasks end, from the record after `seq` on."""

    def __init__(self, seq: int) -> None:
        self._seq = seq
        self._stop: StopRequested | None = None

    def heard(self, *, hard: bool) -> bool:
        """Whether the records have such an order."""
        return self._stop is not None and self._stop.hard >= hard

    def update(self, state: RunState, records: Sequence[Record]) -> None:
        self._stop = state.stop
        news = [r.event for r in records if r.seq > self._seq and isinstance(r.event, TaskExited | StopOrdered)]
        ends = [event for event in news if isinstance(event, TaskExited)]
        for event in news:
            if isinstance(event, TaskExited) and len(ends) > NAMED:
                continue
            print(f"  {describe(event, state)}")
        if len(ends) > NAMED:
            print(f"  {len(ends)} tasks have ended")
        if news:
            sys.stdout.flush()

    def say(self, message: str) -> None:
        """Nobody has a word of its own here."""

    def close(self, state: RunState) -> None:
        """The verb says how it ended."""


def _result(state: RunState) -> str:
    if state.end is None:
        return state.phase.value
    return f"{state.phase.value}, {state.end.cause.removeprefix(f'{state.end.outcome}: ')}"


def _only() -> Entry:
    """The one run that goes on. Raises InputError where there is none, or more than one."""
    index = Index()
    going = [e for e in index.all() if read_end(e.files) is None and leads(e)]
    which.warn(index)
    if not going:
        raise InputError("no run goes on", hint="`phalanx ps` lists those that have ended today")
    if len(going) > 1:
        names = ", ".join(entry.run for entry in going[-NAMED:])
        raise InputError(f"{len(going)} runs go on", hint=f"say which: {names}")
    return going[0]


def _unanswered(entry: Entry, wrong: PlaceError) -> int:
    """The lead may have ended the run while it was asked; else nobody is there to end it."""
    state = standing(entry)
    if state.phase.terminal and state.phase is not RunPhase.LOST:
        print(f"{entry.run} has ended: {_result(state)}")
        return 0
    raise PlaceError(
        f"{entry.run} cannot be asked to stop: {wrong}",
        hint="without a lead each host ends its tasks by itself within seconds; `phalanx ps` shows what it knows",
    ) from wrong
