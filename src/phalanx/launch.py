"""The story of a run: declaration → outline → engine → follow → report. The only module that knows all of these."""

from __future__ import annotations

import dataclasses
import os
import signal
import time
from collections.abc import Mapping
from pathlib import Path
from types import FrameType

from phalanx.engine.base import Started, Submission
from phalanx.engine.local import LocalEngine
from phalanx.errors import InputError, PlaceError
from phalanx.job.declare import Declared
from phalanx.observe.follow import Follower, View
from phalanx.plan.outline import Secret
from phalanx.protocol import people
from phalanx.protocol.signing import RunKey
from phalanx.records.folder import RunFolder
from phalanx.records.index import Entry, Index
from phalanx.script.imports import imports_of
from phalanx.states import RunState


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Launched:
    """A run that is on its way."""

    entry: Entry
    folder: RunFolder
    started: Started


def launch(declared: Declared, *, runs: Path, environ: Mapping[str, str], attached: bool) -> Launched:
    """Make the run's folder, start its agents, and enter it into this user's index. Raises PhalanxError."""
    outline = declared.outline
    secrets = {secret.env: _value(secret, environ) for secret in outline.secrets}
    folder = RunFolder.create(runs, outline.name, time.time())
    folder.job.write_text(declared.text, encoding="utf-8")
    key = RunKey.new()
    started = LocalEngine().start(
        Submission(
            run=folder.run,
            folder=folder.path,
            key=key,
            outline=outline,
            environ={name: value for name, value in environ.items() if name != "TF_CONFIG"},
            secrets=secrets,
            imports={role.type: imports_of(role.command, Path(outline.cwd)) for role in outline.roles},
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
    )
    Index().add(entry)
    return Launched(entry=entry, folder=folder, started=started)


def follow(launched: Launched, view: View) -> RunState:
    """Show the run until it ends. The first Ctrl-C, TERM or closing terminal stops it, the second kills it."""
    stopper = _Stopper(launched.entry, view)
    before = {number: signal.signal(number, stopper) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    try:
        return Follower(launched.folder, view, broken=launched.started.broken).run()
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        launched.started.let_go()


class _Stopper:
    """Turns the first signal into a request to stop and the second into one to kill."""

    def __init__(self, entry: Entry, view: View) -> None:
        self._entry, self._view, self._asked = entry, view, 0

    def __call__(self, number: int, frame: FrameType | None) -> None:
        del frame
        self._asked += 1
        hard = self._asked > 1
        name = signal.Signals(number).name
        self._view.say(f"{name}: killing all tasks" if hard else f"{name}: stopping all tasks (again to kill them)")
        try:
            people.stop(self._entry.lead, self._entry.token, hard=hard, by=f"{name} to the launcher")
        except PlaceError as wrong:
            self._view.say(str(wrong))


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
