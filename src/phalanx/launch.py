"""The story of a run: declaration → outline → engine → follow → report. The only module that knows all of these."""

from __future__ import annotations

import dataclasses
import os
import signal
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

from phalanx.engine.base import Started, Submission
from phalanx.engine.local import LocalEngine
from phalanx.errors import PlaceError
from phalanx.plan.outline import Outline
from phalanx.protocol import people
from phalanx.protocol.signing import RunKey
from phalanx.records.folder import RunFolder
from phalanx.records.index import Entry, Index
from phalanx.states import RunState

if TYPE_CHECKING:
    from phalanx.observe.follow import View


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Launched:
    """A run that is on its way."""

    entry: Entry
    folder: RunFolder
    started: Started
    key: RunKey


def launch(
    outline: Outline,
    job_text: str,
    *,
    runs: Path,
    environ: Mapping[str, str],
    secrets: Mapping[str, str],
    imports: tuple[str, ...],
    attached: bool,
) -> Launched:
    """Make the run's folder, start its agents, and enter it into this user's index. Raises PhalanxError."""
    folder = RunFolder.create(runs, outline.name, time.time())
    folder.job.write_text(job_text, encoding="utf-8")
    key = RunKey.new()
    submission = Submission(
        run=folder.run,
        folder=folder.path,
        key=key,
        outline=outline,
        environ=environ,
        secrets=secrets,
        imports=imports,
        attached=attached,
    )
    started = LocalEngine().start(submission)
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
    return Launched(entry=entry, folder=folder, started=started, key=key)


def follow(launched: Launched, view: View) -> RunState:
    """Show the run until it ends. The first Ctrl-C or TERM stops it, the second kills it.

    Raises PlaceError where every process of the run is gone and nobody wrote how it ended.
    """
    from phalanx.observe.follow import Follower  # noqa: PLC0415 - not needed by a detached launch

    stopper = _Stopper(launched.entry)
    before = {number: signal.signal(number, stopper) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    try:
        return Follower(launched.folder, view, broken=launched.started.broken).run()
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        launched.started.let_go()


class _Stopper:
    """Turns the first signal into a request to stop and the second into one to kill."""

    def __init__(self, entry: Entry) -> None:
        self._entry, self._asked = entry, 0

    def __call__(self, number: int, frame: FrameType | None) -> None:
        del frame
        self._asked += 1
        hard = self._asked > 1
        name = signal.Signals(number).name
        word = "killing all tasks" if hard else "stopping all tasks (again to kill them)"
        os.write(sys.stderr.fileno(), f"\nphalanx: {name}: {word}\n".encode())
        try:
            people.stop(self._entry.lead, self._entry.token, hard=hard, by=f"{name} to the launcher")
        except PlaceError as wrong:
            os.write(sys.stderr.fileno(), f"phalanx: {wrong}\n".encode())
