"""The logs of a run as they grow: whole lines of each task, and the last line alone."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterator
from pathlib import Path

from phalanx.names import TaskId
from phalanx.records.folder import LogFile, RunFolder
from phalanx.states import RunState

#: At most this much of one file at a time, so that a flood in one task does not hide the others.
STEP = 1 << 20
#: A line longer than this is given in pieces.
LONGEST = 1 << 16
_LAST = 2048


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
        with self._path.open("rb", buffering=0) as log:
            log.seek(self._at)
            data = log.read(STEP)
        whole = data.rfind(b"\n") + 1
        if (not whole and len(data) >= LONGEST) or (last and len(data) < STEP):
            whole = len(data)
        self._at += whole
        self._seen = self._at if len(data) == STEP else size
        return data[:whole]


def size_of(path: Path) -> int:
    """Bytes in the file; 0 where there is none."""
    try:
        return os.stat(path).st_size  # noqa: PTH116 - asked twenty times a second for each log
    except FileNotFoundError:
        return 0


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Chunk:
    """Some whole lines of one stream of one attempt."""

    log: LogFile
    data: bytes


class RunOutput:
    """The output of all tasks of a run, in the order in which it is found. Opens new attempts as they come."""

    def __init__(self, folder: RunFolder) -> None:
        """Nothing is read yet."""
        self._folder = folder
        self._files: dict[Path, tuple[LogFile, GrowingFile]] = {}
        self._seen: dict[TaskId, tuple[int, int]] = {}

    def new(self, state: RunState, *, last: bool = False) -> Iterator[Chunk]:
        """What has come since; with `last` until there is nothing more, unended lines too."""
        self._find(state)
        for log, file in self._files.values():
            data = file.read(last=last)
            while data:
                yield Chunk(log=log, data=data)
                data = file.read(last=last) if last else b""

    def _find(self, state: RunState) -> None:
        for task in state.tasks.values():
            attempt = (task.generation, task.attempt)
            if task.generation and self._seen.get(task.id) != attempt:
                self._seen[task.id] = attempt
                for log in attempt_logs(self._folder, task.id, *attempt):
                    self._files[log.path] = (log, GrowingFile(log.path))


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
    """The newest line of one attempt, from whichever stream wrote last. Costs two stats where nothing is new."""

    def __init__(self, logs: tuple[LogFile, LogFile]) -> None:
        """`logs` need not be there yet."""
        self._paths = [log.path for log in logs]
        self._sizes = [0, 0]
        self._text = ""

    def now(self) -> str:
        """The line as a terminal would show it last; empty before the first."""
        for number, path in enumerate(self._paths):
            grown = size_of(path)
            if grown != self._sizes[number]:
                self._sizes[number] = grown
                self._text = _last_line(path, grown) or self._text
        return self._text


def _last_line(path: Path, size: int) -> str:
    with path.open("rb", buffering=0) as log:
        log.seek(max(0, size - _LAST))
        text = log.read(_LAST).decode(errors="replace")
    pieces = (piece.strip() for piece in reversed(text.replace("\r", "\n").split("\n")))
    return next((piece for piece in pieces if piece), "")
