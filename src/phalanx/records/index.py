"""This user's runs, wherever their folders lie: one private file each under `$XDG_STATE_HOME/phalanx`."""

from __future__ import annotations

import dataclasses
import difflib
import json
import os
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path

from phalanx.errors import InputError, PlaceError, RunNotFoundError
from phalanx.plan.wire import WireError, from_wire, to_wire
from phalanx.records.folder import RunFolder
from phalanx.records.leadfile import read_rule
from phalanx.records.writer import write_atomic

#: The name by which verbs call the newest run.
LAST = "last"

_TRUST_AGAIN = "chmod 600 that file if nobody else can have read it"


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Entry:
    """Where a run is, and how to talk to its lead. `token` opens the lead, `key` lets a further host join: the file is
    for this user's eyes only.
    """

    run: str
    #: Absolute path of the run's folder.
    folder: str
    engine: str
    #: `host:port` of the first lead; empty where the run is known by its folder alone.
    lead: str
    token: str
    #: Unix seconds.
    created: float
    #: The pid of the launcher.
    launcher: int
    detached: bool = False
    #: The run's key, in hex; empty where this user cannot add hosts.
    key: str = ""

    @property
    def files(self) -> RunFolder:
        """The run's folder."""
        return RunFolder(Path(self.folder))

    @property
    def address(self) -> str:
        """Where the lead answers now, `host:port`: as the run's folder says, else where the first one was."""
        rule = read_rule(self.files) if self.lead else None
        return rule.address if rule is not None else self.lead


class Index:
    """The index of one user. Reads the disk at each question; nothing is cached."""

    def __init__(self, root: Path | None = None, environ: Mapping[str, str] = os.environ) -> None:
        """`root` replaces `$XDG_STATE_HOME/phalanx` (default `~/.local/state/phalanx`)."""
        self._runs = (root if root is not None else state_root(environ)) / "runs"
        #: Why a file was not trusted, from the last `all` or `find`.
        self.refused: tuple[str, ...] = ()

    def add(self, entry: Entry) -> None:
        """Enter a run, or what has changed about it. Raises PlaceError where the index cannot be written."""
        try:
            self._runs.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as wrong:
            raise PlaceError(
                f"the index of runs {self._runs} cannot be made: {wrong.strerror}", hint="set XDG_STATE_HOME"
            ) from wrong
        write_atomic(self._path_for(entry), json.dumps(to_wire(entry)) + "\n", 0o600)

    def all(self) -> tuple[Entry, ...]:
        """Every run, oldest first. Files that others can read are left out and named in `refused`."""
        found = [entry for entry, _ in self._read()]
        return tuple(sorted(found, key=lambda entry: (entry.created, entry.run)))

    def find(self, name: str) -> Entry:
        """The run called so: its exact id, a prefix that only one has, `last`, or a path to a run's folder.

        Raises RunNotFoundError with the names that come near; InputError where its file can be read by others.
        """
        entries = self.all()
        if name == LAST:
            if not entries:
                self._complain()
                raise RunNotFoundError("no run has been started yet", hint="phalanx run --workers 2 train.py")
            return entries[-1]
        for matches in ([e for e in entries if e.run == name], [e for e in entries if name and e.run.startswith(name)]):
            if len(matches) == 1:
                return matches[0]
            if matches:
                raise _ambiguous(name, matches)
        if (found := _by_path(name, entries)) is not None:
            return found
        self._complain(name)
        raise _unknown(name, entries)

    def forget(self, run: str) -> None:
        """Take a run out of the index; its folder stays. Idempotent."""
        for entry, path in self._read():
            if entry.run == run:
                path.unlink(missing_ok=True)

    def _path_for(self, entry: Entry) -> Path:
        """`<run>.json`; two runs of one name in two folders get two files."""
        number = 1
        while True:
            path = self._runs / (f"{entry.run}.json" if number == 1 else f"{entry.run}.{number}.json")
            other = _load(path)
            if not isinstance(other, Entry) or other.folder == entry.folder:
                return path
            number += 1

    def _read(self) -> Iterator[tuple[Entry, Path]]:
        refused = []
        for path in sorted(self._runs.glob("*.json")):
            found = _load(path)
            if isinstance(found, Entry):
                yield found, path
            elif found:
                refused.append(found)
        self.refused = tuple(refused)

    def _complain(self, name: str = "") -> None:
        """A run that was not found since its file cannot be trusted has its own message."""
        for message in self.refused:
            if f"/{name}" in message:
                raise InputError(
                    message, hint="chmod 600 that file if nobody else has read it; stop the run if someone may have"
                )


def state_root(environ: Mapping[str, str] = os.environ) -> Path:
    """`$XDG_STATE_HOME/phalanx`; a relative value is ignored, as the XDG specification asks."""
    base = environ.get("XDG_STATE_HOME", "")
    if not base.startswith("/"):
        return Path(environ.get("HOME") or Path.home()) / ".local" / "state" / "phalanx"
    return Path(base) / "phalanx"


def _load(path: Path) -> Entry | str | None:
    """The entry; why it is not trusted; or None where the file is gone or no entry."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError:
        return None
    with os.fdopen(fd, "rb") as file:
        facts = os.fstat(file.fileno())
        if facts.st_uid != os.geteuid():
            return f"{path} belongs to another user: not trusted"
        if facts.st_mode & (stat.S_IRWXG | stat.S_IRWXO):
            return f"{path} holds the token of a run and can be read by others: not trusted"
        try:
            return from_wire(Entry, json.loads(file.read()))
        except (WireError, ValueError):
            return None


def _by_path(name: str, entries: tuple[Entry, ...]) -> Entry | None:
    """A run by its folder: as the index knows it, else by the folder alone (copied from elsewhere)."""
    path = Path(name).expanduser()
    if not (path / "events.jsonl").is_file() and not (path / "job.yaml").is_file():
        return None
    path = path.absolute().resolve()
    for entry in entries:
        if Path(entry.folder).resolve() == path:
            return entry
    created = path.stat().st_mtime
    return Entry(
        run=path.name, folder=str(path), engine="", lead="", token="", created=created, launcher=0, detached=True
    )


def _ambiguous(name: str, matches: list[Entry]) -> RunNotFoundError:
    if len({entry.run for entry in matches}) == 1:
        folders = "\n  ".join(entry.folder for entry in matches)
        return RunNotFoundError(f"there are {len(matches)} runs called {name}", hint=f"give the folder:\n  {folders}")
    names = ", ".join(entry.run for entry in matches[-8:])
    return RunNotFoundError(f"{name!r} begins the name of {len(matches)} runs", hint=f"one of {names}")


def _unknown(name: str, entries: tuple[Entry, ...]) -> RunNotFoundError:
    names = [entry.run for entry in reversed(entries)]
    near = [run for run in names if name in run] or [run for run in names if _alike(name, run)]
    hint = f"did you mean {' or '.join(near[:4])}?" if near else "`phalanx ps --all` lists what this user has started"
    return RunNotFoundError(f"no run is called {name!r}", hint=hint)


def _alike(name: str, run: str) -> bool:
    """Whether `name` could be a mistyped beginning of `run`."""
    return difflib.SequenceMatcher(None, name, run[: len(name)]).ratio() > 0.7  # noqa: PLR2004 - two typos in ten
