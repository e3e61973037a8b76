"""The story of a run: declaration → outline → engine → follow → report. The only module that knows all of these."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import FrameType

from phalanx.engine.base import Started, Submission
from phalanx.engine.local import LocalEngine
from phalanx.errors import InputError, PhalanxError, PlaceError
from phalanx.events import Record, RunEnded
from phalanx.job.declare import Declared
from phalanx.observe.follow import Follower, View, full
from phalanx.plan.outline import Outline, Secret
from phalanx.plan.own import found_here
from phalanx.protocol import people
from phalanx.protocol.signing import RunKey
from phalanx.records.folder import RunFolder
from phalanx.records.index import Entry, Index
from phalanx.records.reader import read_plan, read_state
from phalanx.script.imports import imports_of
from phalanx.states import RunPhase, RunState

#: Seconds that agents have to leave once their run has ended.
PATIENCE = 5.0

#: Seconds that a detached run is watched while it starts, and between two looks.
START, LOOK = 60.0, 0.05


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Launched:
    """A run that is on its way."""

    entry: Entry
    folder: RunFolder
    started: Started
    #: Seconds between TERM and KILL when somebody stops it.
    grace: float


def launch(
    declared: Declared,
    *,
    runs: Path,
    environ: Mapping[str, str],
    attached: bool,
    home: Path | None = None,
    indexed: bool = True,
) -> Launched:
    """Make the run's folder, start its agents, and enter it into this user's index. Raises PhalanxError.

    `home`: another folder to start the agents from, as `phalanx chaos` prepares one. Not `indexed`: no verb finds
    it, as befits a run that is thrown away.
    """
    launched = _start(declared, runs=runs, environ=environ, attached=attached, home=home)
    try:
        if indexed:
            Index().add(launched.entry)
    except PhalanxError:
        launched.started.kill()  # a run that no verb could find is not left behind
        raise
    return launched


def preflight(declared: Declared, *, runs: Path, environ: Mapping[str, str]) -> RunState:
    """Start the agents, let them look, and return what they found. No task starts, and no run is left behind."""
    outline = declared.outline
    policies = dataclasses.replace(
        outline.policies, preflight=dataclasses.replace(outline.policies.preflight, on=True, only=True)
    )
    # Without the runtime no interpreter is started early: none will be needed.
    outline = dataclasses.replace(outline, policies=policies, runtime=False)
    there = runs.exists()
    launched = _start(declared._replace(outline=outline), runs=runs, environ=environ, attached=True)
    try:
        return follow(launched, _Unseen())
    finally:
        shutil.rmtree(launched.folder.path, ignore_errors=True)
        if not there:
            with contextlib.suppress(OSError):
                runs.rmdir()


def _start(
    declared: Declared, *, runs: Path, environ: Mapping[str, str], attached: bool, home: Path | None = None
) -> Launched:
    outline = declared.outline
    engine = LocalEngine(home)
    secrets = _values(outline, environ)
    folder = RunFolder.create(runs, outline.name, time.time())
    folder.job.write_text(declared.text, encoding="utf-8")
    key = RunKey.new()
    started = engine.start(
        Submission(
            run=folder.run,
            folder=folder.path,
            key=key,
            outline=outline,
            environ=_without_config(environ),
            secrets=secrets,
            imports={role.type: imports_of(found_here(role.command), Path(outline.cwd)) for role in outline.roles},
            attached=attached,
        )
    )
    entry = Entry(
        run=folder.run,
        folder=str(folder.path),
        engine="local",
        lead=started.lead,
        token=key.people_token(),
        created=time.time(),
        launcher=os.getpid(),
        detached=not attached,
        key=key.hex(),
    )
    return Launched(entry=entry, folder=folder, started=started, grace=outline.policies.grace.stop)


def settled(launched: Launched) -> RunState:
    """Wait until its tasks have started or it has ended, at most a minute: for who leaves it alone then."""
    deadline = time.monotonic() + START
    while True:
        state = read_state(launched.folder)
        early = state.phase in (RunPhase.JOINING, RunPhase.STARTING)
        if not early or launched.started.broken() or time.monotonic() > deadline:
            return state
        time.sleep(LOOK)


def join(entry: Entry, *, host: int, environ: Mapping[str, str], home: Path | None = None) -> subprocess.Popen[bytes]:
    """Start one more agent here for a run that goes on; its tasks get this environment. Raises PhalanxError.

    `home`: as in `launch`.
    """
    plan = read_plan(entry.files)
    if plan is None or not entry.key:
        raise PlaceError(f"{entry.run} cannot be joined from here: its plan or its key is not at hand")
    outline = plan.outline
    submission = Submission(
        run=entry.run,
        folder=Path(entry.folder),
        key=RunKey.from_hex(entry.key),
        outline=outline,
        environ=_without_config(environ),
        secrets=_values(outline, environ),
        attached=False,
    )
    return LocalEngine(home).join(submission, host=host, lead=entry.address)


class _Unseen:
    """A view of what is told when it is over."""

    def update(self, state: RunState, records: Sequence[Record]) -> None:
        """Nobody looks."""

    def say(self, message: str) -> None:
        """What the launcher has to say itself."""
        sys.stderr.write(f"phalanx: {message}\n")

    def close(self, state: RunState) -> None:
        """Nothing was opened."""


def follow(launched: Launched, view: View) -> RunState:
    """Show the run until it ends. The first Ctrl-C, TERM or closing terminal stops it, the second kills it."""
    stopper = _Stopper(launched, view)
    watch = _Watch(launched, stopper)
    before = {
        number: signal.signal(number, stopper)
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
        if signal.getsignal(number) is not signal.SIG_IGN  # nohup, or a script's background job
    }
    try:
        return Follower(launched.folder, view, broken=watch, alive=watch.lead_lives).run()
    finally:
        launched.started.finish(PATIENCE)
        for number, handler in before.items():
            signal.signal(number, handler)
        launched.started.let_go()


def unreported(folder: RunFolder) -> str | None:
    """Why a run that has ended has no `report.json`, in words for people; None where it has."""
    if folder.report.exists():
        return None
    why = "its disk is full" if full(folder) else "its disk took nothing"
    return f"report.json could not be written: {why}; `phalanx report {folder.run}` tells it from the events"


class _Watch:
    """Asked now and then while a run is followed: tells the lead of agents that have ended, and says when all have."""

    def __init__(self, launched: Launched, orders: _Stopper) -> None:
        self._launched, self._orders = launched, orders
        self._told: set[int] = set()

    def __call__(self) -> str | RunEnded | None:
        for word in self._launched.started.news():
            self._orders.say(word)
        for host, reason in self._launched.started.lost().items():
            if host not in self._told:
                entry = self._launched.entry
                with contextlib.suppress(PlaceError):  # none answers now: the next one is told
                    people.lost(entry.address, entry.token, host=host, reason=reason)
                    self._told.add(host)
        self._orders.repeat()
        broken = self._launched.started.broken()
        return self._else(broken) if broken is not None else None

    def _else(self, broken: str) -> str | RunEnded | None:
        """Our agents are gone: what its lead says of the end, or that others carry the run on (`phalanx join`)."""
        entry = self._launched.entry
        try:
            told = people.state(entry.address, entry.token)
        except PlaceError:
            return broken
        end = people.end_of(told)
        return end if end is not None or any(told["hosts"].values()) else broken

    def lead_lives(self) -> bool:
        """Whether somebody still writes how the run ends."""
        return people.alive(self._launched.entry.address, self._launched.entry.token)


class _Stopper:
    """Turns the first signal into a request to stop and the second into one to kill."""

    def __init__(self, launched: Launched, view: View) -> None:
        self._launched, self._view, self._asked = launched, view, 0
        self._name = ""
        self._unheard = False

    def __call__(self, number: int, frame: FrameType | None) -> None:
        del frame
        self._asked += 1
        hard = self._asked > 1
        self._name = signal.Signals(number).name
        grace = self._launched.grace
        soft = f"stopping all tasks within {grace:g} s (again to kill them)"
        self._view.say(f"{self._name}: {'killing all tasks' if hard else soft}")
        try:
            self._order()
        except PlaceError as wrong:
            ends = "killing everything of this run" if hard else "asking until it does, or its successor"
            self._view.say(f"{wrong}; {ends}")
            if hard:
                self._launched.started.kill()

    def say(self, message: str) -> None:
        """To whoever looks on."""
        self._view.say(message)

    def repeat(self) -> None:
        """Ask again what no lead has taken note of."""
        if self._unheard:
            with contextlib.suppress(PlaceError):
                self._order()

    def _order(self) -> None:
        entry, self._unheard = self._launched.entry, True
        by = f"{self._name} to the launcher"
        try:
            people.stop(entry.address, entry.token, hard=self._asked > 1, by=by)
        except PlaceError:
            if self._asked > 1 or not self._launched.started.stop(by):
                raise
        self._unheard = False


def _without_config(environ: Mapping[str, str]) -> dict[str, str]:
    """What every task starts from: a TF_CONFIG of the user's own is no part of it."""
    return {name: value for name, value in environ.items() if name != "TF_CONFIG"}


def _values(outline: Outline, environ: Mapping[str, str]) -> dict[str, str]:
    """The secrets' values by the variable they are delivered in. Raises InputError."""
    return {secret.env: _value(secret, environ) for secret in outline.secrets}


def _value(secret: Secret, environ: Mapping[str, str]) -> str:
    kind, _, where = secret.source.partition(":")
    if kind == "env":
        if where not in environ:
            raise InputError(f"secret {secret.name}: {where} is not set in this environment", hint=f"export {where}=…")
        return environ[where]
    try:
        return Path(where).read_text(encoding="utf-8").rstrip("\n")
    except (OSError, UnicodeDecodeError) as wrong:
        raise InputError(f"secret {secret.name}: {where} cannot be read: {wrong}") from wrong
