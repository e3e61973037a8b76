"""The logs of a run as they grow: whole lines of each task, and the last line alone."""

from __future__ import annotations

import collections
import contextlib
import dataclasses
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from phalanx.names import TaskId
from phalanx.noise import is_noise, telling
from phalanx.records.folder import LogFile, RunFolder
from phalanx.states import RunState

#: At most this much of one file at a time, so that a flood in one task does not hide the others.
STEP = 1 << 20
#: A line longer than this is given in pieces.
LONGEST = 1 << 16
#: A stream with more unseen than `BEHIND` bytes goes on `NEAR` its end: a view that lags shows the past.
BEHIND, NEAR = 4 << 20, 64 << 10
#: Seconds that one look at all logs may take, and the last look of all.
LOOK, LAST_LOOK = 0.25, 0.5
_LAST = 8192


class GrowingFile:
    """A log that is being written. It is open only while it is read: a thousand tasks have two thousand logs."""

    def __init__(self, path: Path) -> None:
        """Starts at the beginning; the file may come into being later."""
        self._path = path
        self._at = 0  # the first byte that has not been given yet
        self._seen = 0  # the size at which there was nothing more to give

    def read(self, *, last: bool = False) -> bytes:
        """New whole lines, at most `STEP` bytes; with `last` the unended line at the end as well. Empty: no news.

        A line longer than `LONGEST` may come in pieces. Costs one system call where nothing is new.
        """
        size = size_of(self._path)
        if size <= (self._at if last else self._seen):
            return b""
        try:
            with self._path.open("rb", buffering=0) as log:
                log.seek(self._at)
                data = log.read(STEP)
        except OSError:
            return b""  # the run's folder was taken away in this moment
        whole = data.rfind(b"\n") + 1
        if (not whole and len(data) >= LONGEST) or (last and len(data) < STEP):
            whole = len(data)
        self._at += whole
        self._seen = self._at if len(data) == STEP else size
        return data[:whole]

    def skip(self, behind: int) -> int:
        """Where more than `behind` bytes are unseen, go on at a line `NEAR` the end. How many bytes were left out."""
        size = size_of(self._path)
        if size - self._at <= max(behind, NEAR):
            return 0
        place = size - NEAR
        with contextlib.suppress(OSError), self._path.open("rb", buffering=0) as log:
            log.seek(place)
            place += log.read(NEAR).find(b"\n") + 1
        skipped = place - self._at
        self._at = place
        return skipped


def size_of(path: Path) -> int:
    """Bytes in the file; 0 where there is none."""
    return _facts(path)[0]


def _facts(path: Path) -> tuple[int, float]:
    """Bytes, and the time of the last write in Unix seconds; zeros where there is no file."""
    try:
        facts = os.stat(path)  # noqa: PTH116 - asked twenty times a second for each log
    except OSError:
        return 0, 0.0
    return facts.st_size, facts.st_mtime


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Chunk:
    """Some whole lines of one stream of one attempt."""

    log: LogFile
    data: bytes
    #: How many bytes before these were left out, since the view was too far behind.
    skipped: int = 0


class RunOutput:
    """The output of all tasks of a run, in the order in which it is found. Opens new attempts as they come."""

    def __init__(self, folder: RunFolder, *, clock: Callable[[], float] = time.monotonic) -> None:
        """Nothing is read yet. `clock` is what a look is measured by."""
        self._folder, self._clock = folder, clock
        self._files: collections.deque[tuple[LogFile, GrowingFile]] = collections.deque()
        self._seen: dict[TaskId, tuple[int, int]] = {}

    def new(self, state: RunState, *, last: bool = False) -> Iterator[Chunk]:
        """What has come since; with `last` until there is nothing more, unended lines too.

        A flood is not shown whole: a look ends after `LOOK` seconds and the next one begins where it ended, a stream
        that is more than `BEHIND` goes on near its end, and so does each one after `LAST_LOOK` seconds of the last.
        """
        self._find(state)
        until = self._clock() + (LAST_LOOK if last else LOOK)
        for _ in range(len(self._files)):
            if not last and self._clock() > until:
                return
            log, file = self._files[0]
            self._files.rotate(-1)
            while True:
                skipped = file.skip(BEHIND if self._clock() <= until else NEAR)
                data = file.read(last=last)
                if data or skipped:
                    yield Chunk(log=log, data=data, skipped=skipped)
                if not data or not last:
                    break

    def _find(self, state: RunState) -> None:
        for task in state.tasks.values():
            attempt = (task.generation, task.attempt)
            if task.generation and self._seen.get(task.id) != attempt:
                self._seen[task.id] = attempt
                for log in attempt_logs(self._folder, task.id, *attempt):
                    self._files.append((log, GrowingFile(log.path)))


def attempt_logs(folder: RunFolder, task: TaskId, generation: int, attempt: int) -> tuple[LogFile, LogFile]:
    """Stdout and stderr of one attempt, whether they are there yet or not."""
    return tuple(  # type: ignore[return-value]  # two streams, two files
        LogFile(
            task=task,
            generation=generation,
            attempt=attempt,
            stream=stream,
            path=folder.log(task, generation=generation, attempt=attempt, stream=stream),
        )
        for stream in ("out", "err")
    )


class LastLine:
    """The newest telling line of one attempt, from whichever stream wrote last. Two stats where nothing is new."""

    def __init__(self, logs: tuple[LogFile, LogFile]) -> None:
        """`logs` need not be there yet."""
        self._paths = [log.path for log in logs]
        self._sizes = [0, 0]
        self._text = ""
        #: When one of them was last written, in Unix seconds, as of the last `now`; None where nothing was.
        self.wrote: float | None = None

    def now(self) -> str:
        """The line as a terminal would show it last; empty before the first. Noise only before anything else."""
        for number, path in enumerate(self._paths):
            grown, when = _facts(path)
            if grown != self._sizes[number]:
                self._sizes[number] = grown
                self.wrote = max(self.wrote or 0.0, when)
                found = _last_line(path, grown)
                if found and (not self._text or not is_noise(found) or is_noise(self._text)):
                    self._text = found
        return self._text


def _last_line(path: Path, size: int) -> str:
    try:
        with path.open("rb", buffering=0) as log:
            log.seek(max(0, size - _LAST))
            text = log.read(_LAST).decode(errors="replace")
    except OSError:
        return ""
    pieces = (piece.strip() for piece in reversed(text.replace("\r", "\n").split("\n")))
    return next(iter(telling(piece for piece in pieces if piece)), "")
