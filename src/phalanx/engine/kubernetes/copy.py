"""A run's records and its tasks' output, as they stand in the logs of its pods, put into a run folder of this machine.

The records are one file with one line an event, in their order and each once, whichever pod told them: a lead that has
taken over tells all of them again.
"""

from __future__ import annotations

import bisect
import calendar
import contextlib
import dataclasses
import json
import os
import re
import threading
import time
from collections.abc import Callable
from pathlib import Path

from phalanx.events import TaskStarted, event_from_json
from phalanx.names import TaskId
from phalanx.plan.marks import START
from phalanx.plan.wire import WireError
from phalanx.records.folder import RunFolder, index_of
from phalanx.records.timeindex import record as index_record

_START = re.compile(r"(?P<task>\S+) g(?P<generation>[1-9]\d*)\.a(?P<attempt>[1-9]\d*)\Z", re.ASCII)
_BAR = " | "

#: Seconds for which records after a gap wait for what is missing: another pod's log may have it.
_GAP = 5.0
#: Seconds by which a container's first words may seem to be older than its start.
_SLACK = 0.5


class RecordFile:
    """`events.jsonl` of a run that is led elsewhere. For several threads."""

    def __init__(self, path: Path, *, clock: Callable[[], float] = time.monotonic) -> None:
        """Goes on after what is there."""
        self._path, self._clock = path, clock
        self._lock = threading.Lock()
        self._waiting: dict[int, tuple[int, str]] = {}
        self._gap: float | None = None
        #: The number and the epoch of the last record; the epoch with which this story of the run begins.
        self.last, self.epoch = _end_of(path)
        self._base = _base_of(path)
        #: How often the run was begun anew: nobody was left who had its records.
        self.anew = 0
        #: Records that no log had.
        self.missing = 0
        self.starts = Starts()
        self.ended = False
        for line in path.read_text(encoding="utf-8", errors="replace").splitlines() if path.exists() else ():
            self._note(line)

    def take(self, line: str) -> None:
        """One record, as it stands in a log. What is known already, or is none, is left out."""
        try:
            data = json.loads(line)
            seq, epoch = int(data["seq"]), int(data["epoch"])
        except (ValueError, KeyError, TypeError):
            return
        with self._lock:
            if seq == 1 and self.last and epoch > self.epoch:
                self._begin_anew()
            if not self.last and seq == 1:
                self._base = epoch
            if epoch >= self._base and (seq > self.last or epoch > self.epoch):
                known = self._waiting.get(seq)
                if known is None or known[0] <= epoch:
                    self._waiting[seq] = (epoch, line)
            self._flush()

    def _begin_anew(self) -> None:
        """What was told so far is kept beside; who reads the file finds another one (`records.reader.Tail`)."""
        before = f".before-{self.epoch}"
        logs = self._path.with_name("logs")
        with contextlib.suppress(OSError):
            logs.rename(logs.with_name(f"logs{before}"))
            logs.mkdir()
        with contextlib.suppress(OSError):
            self._path.rename(self._path.with_name(f"events{before}.jsonl"))
        self.last, self.epoch, self.ended = 0, 0, False
        self._waiting.clear()
        self._gap = None
        self.starts.forget()
        self.anew += 1

    def flush(self) -> None:
        """Where what is missing has not come in time, go on without it."""
        with self._lock:
            self._flush()

    def give_up_gaps(self) -> None:
        """Nothing more will come: write what waits."""
        with self._lock:
            self._gap = -1e9
            self._flush()

    def _flush(self) -> None:
        lines: list[str] = []
        while self._waiting:
            if self.last + 1 in self._waiting:
                seq = self.last + 1
            elif self._gap is None:
                self._gap = self._clock()
                break
            elif self._clock() - self._gap < _GAP:
                break
            else:
                seq = min(self._waiting)
                self.missing += max(seq - self.last - 1, 0)
            self.epoch, line = self._waiting.pop(seq)
            self.last, self._gap = seq, None
            self._note(line)
            lines.append(line)
        self._waiting = {seq: one for seq, one in self._waiting.items() if seq > self.last}
        if lines:
            fd = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
            try:
                os.write(fd, "".join(f"{line}\n" for line in lines).encode())
            finally:
                os.close(fd)

    def _note(self, line: str) -> None:
        """What the tasks' output is sorted by."""
        if '"run-ended"' in line:
            self.ended = True
        if '"task-started"' not in line:
            return
        try:
            event = event_from_json(json.loads(line))
        except (ValueError, WireError):
            return
        if isinstance(event, TaskStarted):
            self.starts.add(event)


class Starts:
    """When which attempt of a task began."""

    def __init__(self) -> None:
        """None is known yet."""
        self._known: dict[TaskId, list[tuple[float, int, int]]] = {}

    def forget(self) -> None:
        """The run begins anew."""
        self._known.clear()

    def add(self, event: TaskStarted) -> None:
        """One more."""
        bisect.insort(self._known.setdefault(event.task, []), (event.time, event.generation, event.attempt))

    def at(self, task: TaskId, when: float) -> tuple[int, int]:
        """Generation and attempt that were running then; the first where none is known."""
        found = self._known.get(task, [])
        number = bisect.bisect_right(found, (when + _SLACK, 1 << 62, 0)) - 1
        return found[max(number, 0)][1:] if found else (1, 1)


@dataclasses.dataclass(frozen=True, slots=True)
class LogLine:
    """One line of a pod's log, taken apart."""

    #: The API's time of it, as text: they are in order as text.
    stamp: str
    text: str

    @property
    def seconds(self) -> float:
        """Unix seconds."""
        return self.nanoseconds / 1e9

    @property
    def nanoseconds(self) -> int:
        """Unix nanoseconds; 0 where it has no time."""
        try:
            whole = calendar.timegm(time.strptime(self.stamp[:19], "%Y-%m-%dT%H:%M:%S"))
        except ValueError:
            return 0
        digits = self.stamp[20:].rstrip("Z").partition("+")[0]
        return whole * 10**9 + (int(digits[:9].ljust(9, "0")) if digits.isdecimal() else 0)


def parsed(line: bytes) -> LogLine:
    """`2026-11-30T12:00:00.123456789Z text`."""
    stamp, _, text = line.decode(errors="replace").partition(" ")
    return LogLine(stamp, text)


class Outputs:
    """The tasks' output, in a log of each attempt, and what else pods say, in the agents' logs. For several threads."""

    def __init__(self, folder: RunFolder, starts: Starts) -> None:
        """Nothing is open between two lines: a thousand tasks have a thousand logs."""
        self._folder, self._starts = folder, starts
        self._lock = threading.Lock()
        self._said: dict[tuple[str, TaskId], tuple[int, int]] = {}

    def take(self, pod: str, host: int | None, line: LogLine) -> None:
        """One line that is no record."""
        if line.text.startswith(START):
            self._announced(pod, line.text[len(START) :])
            return
        task = _task_of(line.text)
        if task is not None:
            generation, attempt = self._said.get((pod, task)) or self._starts.at(task, line.seconds)
            path = self._folder.log(task, generation=generation, attempt=attempt, stream="out")
            self._append(path, line.text[len(str(task)) + len(_BAR) :], line.nanoseconds)
        elif host is not None:
            self._append(self._folder.agent_log(host), line.text, None)

    def _announced(self, pod: str, text: str) -> None:
        start = _START.match(text)
        if start is not None:
            with contextlib.suppress(ValueError):
                number = int(start["generation"]), int(start["attempt"])
                self._said[pod, TaskId.parse(start["task"])] = number

    def _append(self, path: Path, text: str, nanoseconds: int | None) -> None:
        with self._lock:
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("ab") as out:
                at = out.tell()
                out.write(text.encode() + b"\n")
            if nanoseconds is not None:
                with index_of(path).open("ab") as index:
                    index.write(index_record(at, nanoseconds))


def _task_of(text: str) -> TaskId | None:
    name, bar, _ = text.partition(_BAR)
    if not bar or ":" not in name:
        return None
    try:
        return TaskId.parse(name)
    except ValueError:
        return None


class Positions:
    """How far each pod's log was read, kept beside the records, so that nothing is written twice."""

    def __init__(self, path: Path) -> None:
        """Goes on where the last follower was."""
        self._path = path
        self._lock = threading.Lock()
        try:
            found = json.loads(path.read_text())
            self._known = {str(pod): (str(stamp), int(count)) for pod, (stamp, count) in found.items()}
        except (OSError, ValueError, TypeError, AttributeError):
            self._known = {}

    def of(self, pod: str) -> tuple[str, int]:
        """The time of the last line, and how many lines of that very time there were."""
        return self._known.get(pod, ("", 0))

    def is_new(self, pod: str, line: LogLine, seen: dict[str, int]) -> bool:
        """Whether this line has not been read before; `seen` counts the lines of one time in this reading."""
        stamp, count = self.of(pod)
        seen[line.stamp] = seen.get(line.stamp, 0) + 1
        if line.stamp < stamp or (line.stamp == stamp and seen[line.stamp] <= count):
            return False
        with self._lock:
            self._known[pod] = (line.stamp, count + 1 if line.stamp == stamp else 1)
        return True

    def save(self) -> None:
        """Write them down."""
        with self._lock:
            text = json.dumps(self._known)
        scratch = self._path.with_suffix(".new")
        scratch.write_text(text)
        scratch.replace(self._path)


def _base_of(path: Path) -> int:
    """The epoch of the first record; 0 where there is none."""
    try:
        with path.open("rb") as file:
            return int(json.loads(file.readline())["epoch"])
    except (OSError, ValueError, KeyError, TypeError):
        return 0


def _end_of(path: Path) -> tuple[int, int]:
    try:
        lines = path.read_bytes().split(b"\n")
    except OSError:
        return 0, 0
    for line in reversed(lines):
        try:
            data = json.loads(line)
            return int(data["seq"]), int(data["epoch"])
        except (ValueError, KeyError, TypeError):
            continue
    return 0, 0
