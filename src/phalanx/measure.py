"""The story of a bench: look at the script, run it for some steps at each size, and put what was reckoned beside it."""

from __future__ import annotations

import contextlib
import dataclasses
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from phalanx.agent.crowd import spent_by
from phalanx.errors import JobFailedError, PlaceError, StoppedError
from phalanx.events import Record
from phalanx.job.declare import declare
from phalanx.job.flags import Flags
from phalanx.launch import Launched, follow, launch
from phalanx.names import TaskId, many
from phalanx.observe.follow import View
from phalanx.observe.standing import counted
from phalanx.protocol import people
from phalanx.scratch import scratch
from phalanx.states import RunPhase, RunState
from phalanx.taskstate import TaskPhase

#: Steps that are not counted: the first are slow. Seconds between two looks at the counters.
WARM, _LOOK = 10, 0.25

Say = Callable[[str], None]


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Measured:
    """What one size did. Memory is the most that any task of a role held, in bytes of its resident set."""

    workers: int
    ps: int
    #: Steps a second: of the leader, which steps with all (MWMS) or hands out the steps of all (ps).
    steps: float
    memory: Mapping[str, int]
    #: Core seconds that all tasks together used for one step. Where others use the machine too, this is what stays.
    work: float


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Wanted:
    """How long each size is run: at least so many steps, and so many seconds."""

    steps: int = 50
    seconds: float = 5.0
    #: Until the last of those steps; then the size has failed.
    patience: float = 300.0


def measure(
    command: Sequence[str], flags: Flags, wanted: Wanted, *, cwd: Path, environ: Mapping[str, str], say: Say
) -> Measured:
    """Run one size in a folder that is thrown away, until its steps are done. Raises PhalanxError where it fails.

    A {checkpoint} of the command leads into that folder too; nothing else that the script writes is held back.
    """
    with scratch("phalanx-bench-") as folder:
        (folder / "checkpoint").mkdir()
        flags = dataclasses.replace(flags, checkpoint=str(folder / "checkpoint"), max_restarts=0, standbys=0)
        declared = declare(tuple(command), flags, cwd=cwd, environ=environ)
        launched = launch(declared, runs=folder / "runs", environ=environ, attached=True, indexed=False)
        view = _Counting(launched, wanted)
        state = follow(launched, view)
        found = _judged(state, view, wanted)
        workers = flags.workers or 1
        say(f"{many(workers, 'worker')}: {found:.4g} steps/s")
        return Measured(workers=workers, ps=flags.ps or 0, steps=found, memory=dict(view.memory), work=view.work())


class _Count(NamedTuple):
    """When (Unix seconds), the steps by then, and the core seconds; or what lies between two counts."""

    seconds: float = 0.0
    steps: int = 0
    used: float = 0.0


class _Counting(View):
    """Counts while the run is followed, and has it stopped when that is enough."""

    def __init__(self, launched: Launched, wanted: Wanted) -> None:
        self._launched, self._wanted = launched, wanted
        self._looked = self._began = time.monotonic()
        self._first: _Count | None = None
        #: From the first count to the last.
        self._span = _Count()
        #: Role → bytes.
        self.memory: dict[str, int] = {}
        #: Whether the time was over first, and whether the run was asked to stop from here.
        self.late = self.stopped = False

    def found(self) -> float | None:
        """Steps a second between the first and the last count; None where they are too few."""
        return self._span.steps / self._span.seconds if self._span.steps >= self._wanted.steps else None

    def work(self) -> float:
        """Core seconds of one step, of all tasks together."""
        return self._span.used / self._span.steps if self._span.steps else 0.0

    def update(self, state: RunState, records: Sequence[Record]) -> None:
        """At each look."""
        del records
        now = time.monotonic()
        if state.phase.terminal or self.stopped or now < self._looked + _LOOK:
            return
        self._looked = now
        self._remember(state)
        self._count(state)
        self.late = now > self._began + self._wanted.patience
        if self.late or self._enough():
            self._stop()

    def _count(self, state: RunState) -> None:
        tasks = counted(state, self._launched.entry).tasks
        leader = tasks.get(TaskId("chief", 0)) or tasks.get(TaskId("worker", 0))
        sample = leader.sample if leader is not None else None
        if sample is not None and sample.steps >= WARM:
            used = sum(spent_by(task.pid) for task in tasks.values() if task.pid is not None)
            first = self._first = self._first or _Count(sample.at, sample.steps, used)
            self._span = _Count(sample.at - first.seconds, sample.steps - first.steps, used - first.used)

    def _enough(self) -> bool:
        return self._span.steps >= self._wanted.steps and self._span.seconds >= self._wanted.seconds

    def _remember(self, state: RunState) -> None:
        for task in state.tasks.values():
            if task.pid is not None and task.phase is TaskPhase.RUNNING:
                held = _high_water(task.pid)
                self.memory[task.id.type] = max(self.memory.get(task.id.type, 0), held)

    def _stop(self) -> None:
        entry = self._launched.entry
        with contextlib.suppress(PlaceError):
            people.stop(entry.address, entry.token, hard=True, by="phalanx bench")
            self.stopped = True

    def say(self, message: str) -> None:
        """Nobody looks."""

    def close(self, state: RunState) -> None:
        """Nothing was opened."""


def _high_water(pid: int) -> int:
    """Bytes of the largest resident set that it has had; 0 where it is gone."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text(encoding="ascii", errors="replace").splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM:")), 0)


def _judged(state: RunState, view: _Counting, wanted: Wanted) -> float:
    """Steps a second. Raises PhalanxError where there is nothing to tell, or somebody wants no more of it."""
    if state.phase is RunPhase.STOPPED and not view.stopped:
        raise StoppedError(f"{_cause(state)}; nothing was measured at this size")
    found = view.found()
    if found is None:
        hint = "phalanx run it once at this size, or ask for fewer --steps"
        raise JobFailedError(_why(state, view, wanted), hint=hint)
    return found


def _cause(state: RunState) -> str:
    return state.end.cause if state.end is not None and state.end.cause else state.phase.value


def _why(state: RunState, view: _Counting, wanted: Wanted) -> str:
    if view.late:
        return f"it did not do {wanted.steps} steps within {wanted.patience:g} s"
    if state.phase is RunPhase.SUCCEEDED:
        return f"it ended before {wanted.steps} steps could be counted"
    return f"it failed: {_cause(state)}"
