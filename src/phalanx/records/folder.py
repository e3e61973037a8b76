"""The folder of one run: where everything lies, and how a new one gets its name."""

from __future__ import annotations

import dataclasses
import errno
import re
import time
from pathlib import Path

from phalanx.errors import InputError, PhalanxError, PlaceError
from phalanx.names import TaskId, training_order

#: The longest name part of a run id: with date, time and a number it stays below the 63 of a DNS label.
NAME_LENGTH = 40

_TASK_FOLDER = re.compile(r"(?P<type>[a-z][a-z0-9_-]*)_(?P<index>0|[1-9][0-9]*)\Z")
_LOG = re.compile(r"g(?P<generation>[1-9][0-9]*)\.a(?P<attempt>[1-9][0-9]*)\.(?P<stream>out|err)\Z")
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EROFS)


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class LogFile:
    """One stream of one attempt of one task: exact bytes, and a time index beside them."""

    task: TaskId
    generation: int
    attempt: int
    #: `out` or `err`.
    stream: str
    path: Path

    @property
    def index(self) -> Path:
        """Which byte came when: read it with `records.timeindex`."""
        return index_of(self.path)


@dataclasses.dataclass(frozen=True, slots=True)
class RunFolder:
    """Paths of one run. Nothing is opened or made until asked for; `create` makes a new one."""

    path: Path

    @classmethod
    def create(cls, runs: Path, name: str, now: float) -> RunFolder:
        """Make `runs/<name>-<MMDD>-<HHMMSS>` in local time, `-2`, `-3`… where that exists; `runs` too, if missing.

        Raises InputError where `runs` cannot hold folders of this user, PlaceError where its disk is full or broken.
        Leaves nothing behind then.
        """
        base = f"{slug(name)}-{time.strftime('%m%d-%H%M%S', time.localtime(now))}"
        try:
            runs = runs.absolute()
            runs.mkdir(parents=True, exist_ok=True)
            folder = cls(_mkdir_new(runs, base))
            folder._furnish()
        except OSError as wrong:
            raise _refusal(runs, wrong) from wrong
        return folder

    def _furnish(self) -> None:
        """The inner folders, and a proof that the disk takes data: a full one still makes empty folders."""
        probe = self.path / ".space"
        made: list[Path] = []
        try:
            for folder in (self.logs, self.tasks, self.agents):
                folder.mkdir()
                made.append(folder)
            probe.write_bytes(b"\0" * 65536)
        except OSError:
            probe.unlink(missing_ok=True)
            for folder in [*made, self.path]:
                folder.rmdir()
            raise
        probe.unlink()

    @property
    def run(self) -> str:
        """The run's id: the folder's own name."""
        return self.path.name

    @property
    def job(self) -> Path:
        """What was declared."""
        return self.path / "job.yaml"

    @property
    def plan(self) -> Path:
        """What the newest generation runs."""
        return self.path / "plan.json"

    @property
    def events(self) -> Path:
        """What happened: one record a line."""
        return self.path / "events.jsonl"

    @property
    def lead(self) -> Path:
        """Who leads the run now: read it with `records.leadfile`."""
        return self.path / "lead.json"

    @property
    def report(self) -> Path:
        """What it means; there once the run has ended."""
        return self.path / "report.json"

    @property
    def logs(self) -> Path:
        """A folder for each task."""
        return self.path / "logs"

    @property
    def tasks(self) -> Path:
        """A folder for each task's own files: `{task_dir}`."""
        return self.path / "tasks"

    @property
    def task_samples(self) -> Path:
        """How far each task was, again and again: read it with `records.samples`."""
        return self.path / "metrics" / "tasks.jsonl"

    @property
    def link_samples(self) -> Path:
        """What tasks have sent each other; the same."""
        return self.path / "metrics" / "links.jsonl"

    @property
    def load_samples(self) -> Path:
        """What tasks have used, seen from outside; the same."""
        return self.path / "metrics" / "loads.jsonl"

    @property
    def agents(self) -> Path:
        """The agents' own words, a file a host."""
        return self.path / "agents"

    @property
    def lead_log(self) -> Path:
        """The lead's own words."""
        return self.path / "lead.log"

    def agent_log(self, host: int) -> Path:
        """The own words of the agent on that host."""
        return self.agents / f"{host}.log"

    def task_dir(self, task: TaskId) -> Path:
        """The task's own folder, `{task_dir}` in its command."""
        return self.tasks / task.folder

    def log(self, task: TaskId, *, generation: int, attempt: int, stream: str) -> Path:
        """Where one attempt's output goes; `stream` is `out` or `err`."""
        return self.logs / task.folder / f"g{generation}.a{attempt}.{stream}"

    def log_files(self, task: TaskId | None = None) -> tuple[LogFile, ...]:
        """The logs that are there: in training order, then by generation and attempt, `out` before `err`."""
        if task is None:
            tasks = sorted((t for t in map(_task_of, _names(self.logs)) if t is not None), key=training_order)
            return tuple(log for each in tasks for log in self.log_files(each))
        found = (self._log_file(task, name) for name in _names(self.logs / task.folder))
        logs = [log for log in found if log is not None]
        return tuple(sorted(logs, key=lambda log: (log.generation, log.attempt, log.stream == "err")))

    def _log_file(self, task: TaskId, name: str) -> LogFile | None:
        match = _LOG.match(name)
        if match is None:
            return None
        return LogFile(
            task=task,
            generation=int(match["generation"]),
            attempt=int(match["attempt"]),
            stream=match["stream"],
            path=self.logs / task.folder / name,
        )


def index_of(log: Path) -> Path:
    """The time index that lies beside a log."""
    return log.with_name(log.name + ".idx")


def slug(name: str) -> str:
    """`name` as it may stand in file names, host names and labels: lower case, digits, `-`; begins with a letter."""
    text = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:NAME_LENGTH].strip("-")
    if not text:
        return "run"
    return text if text[0].isalpha() else f"r{text}"[:NAME_LENGTH].strip("-")


def _mkdir_new(runs: Path, base: str) -> Path:
    """Exclusive mkdir: two launchers in one second get two folders."""
    number = 1
    while True:
        path = runs / (base if number == 1 else f"{base}-{number}")
        try:
            path.mkdir()
        except FileExistsError:
            number += 1
        else:
            return path


def _refusal(runs: Path, wrong: OSError) -> PhalanxError:
    kind = PlaceError if wrong.errno in _FULL else InputError
    return kind(
        f"the folder for runs {runs} cannot be used: {wrong.strerror}",
        hint="choose another one with --runs DIR or PHALANX_RUNS",
    )


def _names(folder: Path) -> list[str]:
    try:
        return sorted(entry.name for entry in folder.iterdir())
    except PermissionError:
        raise
    except OSError:  # it is not there, or its disk is broken: what the records tell is told all the same
        return []


def _task_of(folder: str) -> TaskId | None:
    match = _TASK_FOLDER.match(folder)
    return TaskId(match["type"], int(match["index"])) if match else None
