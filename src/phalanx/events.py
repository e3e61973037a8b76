"""Everything that can happen in a run, one type each. `time` is Unix seconds on the host where it happened.

The records are these, one JSON object a line: `{"seq": 7, "epoch": 1, "event": "task-exited", "time": …, …}`.
Events that belong to a task carry its generation and attempt, so that a late word from a dead one is recognised.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping
from typing import Any

from phalanx.event import Event as Event  # noqa: PLC0414 - named here for every reader of this list
from phalanx.hostevents import HostChecked as HostChecked  # noqa: PLC0414 - as above
from phalanx.hostevents import HostJoined as HostJoined  # noqa: PLC0414 - as above
from phalanx.hostevents import HostLeft as HostLeft  # noqa: PLC0414 - as above
from phalanx.hostevents import HostLost as HostLost  # noqa: PLC0414 - as above
from phalanx.hostevents import HostWithdrawn as HostWithdrawn  # noqa: PLC0414 - as above
from phalanx.hostevents import OutputsAsked as OutputsAsked  # noqa: PLC0414 - as above
from phalanx.hostevents import OutputsFound as OutputsFound  # noqa: PLC0414 - as above
from phalanx.hostevents import PreflightPassed as PreflightPassed  # noqa: PLC0414 - as above
from phalanx.hostevents import StandbysReady as StandbysReady  # noqa: PLC0414 - as above
from phalanx.names import TaskId
from phalanx.plan.size import Elastic
from phalanx.plan.wire import WireError, from_wire, to_wire
from phalanx.slowevents import SlowEnded as SlowEnded  # noqa: PLC0414 - as above
from phalanx.slowevents import SlowFound as SlowFound  # noqa: PLC0414 - as above


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class RunStarted(Event):
    """A lead has taken the run up. The first event of every run, once for each epoch."""

    run: str
    name: str
    tasks: tuple[TaskId, ...]
    strategy: str
    hosts: int
    leader: TaskId | None = None
    #: The range of its workers, where their number may change.
    elastic: Elastic | None = None
    #: Whether a task of the cluster that does not listen by the start deadline fails the run.
    must_listen: bool = False
    #: Roles outside the cluster, each with what the failure of one of its tasks means: alone, group or ignore.
    outside: Mapping[str, str] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class TaskPlace:
    """Where a generation puts a task."""

    task: TaskId
    host: int
    address: str | None = None
    rank: int | None = None
    #: The CPUs it is pinned to; none: all that its host has for it.
    cpus: tuple[int, ...] = ()


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class GenerationBound(Event):
    """Hosts and addresses are fixed; `cluster` is the SHA-256 of the shared text, empty where there is none."""

    generation: int
    places: tuple[TaskPlace, ...]
    cluster: str = ""


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class TaskEvent(Event):
    """What all events of one attempt of one task have in common."""

    task: TaskId
    host: int
    generation: int
    attempt: int = 1


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class TaskStarted(TaskEvent):
    """Its process has its identity and runs. `standby` where the interpreter had started before."""

    pid: int
    standby: bool = False


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class TaskNotStarted(TaskEvent):
    """The operating system would not start it: no such program, no permission, no memory."""

    message: str


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class TaskListening(TaskEvent):
    """TensorFlow listens on the task's port."""

    port: int


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class TaskExited(TaskEvent):
    """Its process has ended: with an exit code, or by a signal. `stopped` where we had asked it to."""

    pid: int
    code: int | None = None
    signal: int | None = None
    core: bool = False
    #: Whether the kernel killed it because there was no memory left, as its counter tells.
    oom: bool = False
    stopped: bool = False
    last_lines: tuple[str, ...] = ()
    #: The exception that ended the program, `type: message`, where it failed by one; where in its own files; and the
    #: file on its host that has all of it.
    raised: str = ""
    raised_at: str = ""
    error_file: str = ""
    #: Whether that was inside a training step; None where nobody tells.
    inside: bool | None = None
    #: The last line of its stdout, where stderr has no word of its own.
    last_output: str = ""
    cpu_seconds: float = 0.0
    max_rss: int = 0


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class TaskStepped(TaskEvent):
    """The first training step of this attempt is done; said again now and then while more are."""

    #: Steps of this attempt, from 1.
    step: int


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class CheckpointSaved(TaskEvent):
    """A checkpoint is complete: the call that wrote it has returned."""

    path: str
    #: Steps of this attempt that came before it.
    step: int


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class CheckpointRestored(TaskEvent):
    """The program has read a checkpoint, so it did not start at zero."""

    path: str


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class TaskFroze(TaskEvent):
    """Its process is stopped (state T) since `since`: nobody but us will end it (facts §3, §4)."""

    since: float


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class TaskQuiet(TaskEvent):
    """No sign of life of any kind since `since`: no output, CPU, bytes or answer."""

    since: float


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class TaskStalled(TaskEvent):
    """Its steps have stopped since `since`, though it lives. `longest`: the longest gap between two steps before."""

    since: float
    step: int
    longest: float
    #: What the runtime knows it is doing: tracing, validation, saving; empty: nothing that would explain it.
    doing: str = ""
    #: Whether it waits for its peers, as far as its connections tell: the culprit is one that does not.
    waits: bool = False
    #: Whether it is inside a training step; None where nobody tells.
    inside: bool | None = None


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class TaskAwake(TaskEvent):
    """It is neither frozen, nor quiet, nor stalled any more."""


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class TaskAsked(TaskEvent):
    """It has a SIGTERM, and not from us: somebody wants its place."""


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class TaskLeaves(TaskEvent):
    """Asked to end, it leaves before its next step, as agreed with `peers` others where it has any."""

    #: Steps of this attempt that are done.
    step: int
    peers: int = 0
    agreed: bool = True
    #: Where it has saved what it had; empty: nothing besides its own checkpoints.
    saved: str = ""
    #: Why saving failed.
    wrong: str = ""


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class TaskDone(TaskEvent):
    """Its program has come to its end at `since`, and the process is still there: a thread, a handler, a child."""

    since: float


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class StacksWritten(TaskEvent):
    """What its threads were doing lies in the run's folder at `path`."""

    path: str
    #: Where its main thread is in the program: `train.py:14 in step`; empty where nothing tells.
    at: str = ""
    #: Whether it waits inside TensorFlow, by its stacks; None where there are none.
    waits: bool | None = None


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class StacksOrdered(Event):
    """The lead has these tasks write what their threads do."""

    generation: int
    tasks: tuple[TaskId, ...]
    by: str


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class StopRequested(Event):
    """Somebody wants the run to end. `hard` skips the grace."""

    by: str
    hard: bool = False


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class StopOrdered(Event):
    """The lead tells the tasks of a generation to end: TERM, `grace` seconds, KILL."""

    generation: int
    tasks: tuple[TaskId, ...]
    grace: float
    reason: str


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class CulpritNamed(Event):
    """The first failure, its kind, and whom it took down."""

    generation: int
    #: None where no task is to blame: a host was lost, or never came.
    task: TaskId | None
    host: int | None
    #: user, platform, infrastructure or preemption.
    kind: str
    #: By what it was noticed: its exit where empty, else `start`, `silence`, `hang`, `frozen`, `finish`, `alone`
    #: or `host`.
    sign: str = ""
    cause: str
    victims: tuple[TaskId, ...] = ()
    #: Whom the same befell, by themselves.
    alike: tuple[TaskId, ...] = ()
    hint: str = ""


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class RestartOrdered(Event):
    """The whole group starts again as the next generation, at `at` or later; or only `tasks`, at their addresses."""

    #: The generation in which it failed.
    generation: int
    at: float
    why: str
    #: Whether it counts against `restart.max`; a preempted group comes back for free.
    counted: bool = True
    #: Whether it answers the same event of the world as the restart before it: several tasks fell at once.
    along: bool = False
    #: Those that start again as new attempts, while the others go on; empty: everybody, on new ports.
    tasks: tuple[TaskId, ...] = ()


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class TaskGivenUp(Event):
    """It has failed and is not started again; the training goes on without it: it only looked on."""

    generation: int
    task: TaskId
    why: str


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Resumed(Event):
    """Where the training went on, as its leader's first step proves: after a restart, or from another run."""

    generation: int
    attempt: int
    task: TaskId
    #: The checkpoint that was read; empty: the program started at zero.
    path: str
    #: Training steps that it holds; None where another run wrote it.
    step: int | None
    #: Steps that the generation before had done beyond it.
    lost: int | None


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class ScaleRequested(Event):
    """Somebody wants so many workers from now on."""

    by: str
    workers: int


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class ResizeOrdered(Event):
    """The group stops, saves, and starts again with another number of workers."""

    #: The generation that is stopped for it.
    generation: int
    before: int
    workers: int
    why: str


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class LeaderSucceeded(Event):
    """Chief, else worker 0, has exited 0: the job has succeeded, whatever others do now."""

    generation: int
    task: TaskId


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Noted(Event):
    """Something a person should know that changes nothing."""

    message: str
    task: TaskId | None = None
    host: int | None = None


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class RunEnded(Event):
    """The last event: `succeeded`, `failed`, `stopped` or `lost`, and what the launcher exits with."""

    outcome: str
    exit_code: int
    cause: str


#: Every event of this page by its name on the wire.
EVENTS: dict[str, type[Event]] = {
    re.sub(r"(?<!^)(?=[A-Z])", "-", kind.__name__).lower(): kind
    for kind in tuple(globals().values())
    if isinstance(kind, type) and issubclass(kind, Event) and kind not in (Event, TaskEvent)
}
_NAMES = {kind: name for name, kind in EVENTS.items()}


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Record:
    """An event as it stands in the records: numbered from 1 without gaps, with the lead's epoch."""

    seq: int
    epoch: int
    event: Event
    #: The host whose agent told it, and that agent's own number for it: what a later lead need not be told again.
    told: tuple[int, int] | None = None

    def to_json(self) -> dict[str, Any]:
        """One line of `events.jsonl`."""
        told = {} if self.told is None else {"told": list(self.told)}
        return {"seq": self.seq, "epoch": self.epoch, **told, **event_to_json(self.event)}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Record:
        """Read a line back. Raises WireError."""
        told = from_wire(tuple[int, int], data["told"], "told") if "told" in data else None
        return cls(seq=data.get("seq", 0), epoch=data.get("epoch", 0), event=event_from_json(data), told=told)


def event_to_json(event: Event) -> dict[str, Any]:
    """`{"event": name, …fields}`."""
    return {"event": _NAMES[type(event)], **to_wire(event)}


def event_from_json(data: dict[str, Any]) -> Event:
    """Raises WireError for a name or a field that this version does not know."""
    name = data.get("event") if isinstance(data, dict) else None
    kind = EVENTS.get(name) if isinstance(name, str) else None
    if kind is None:
        message = f"event: no such event {name!r}"
        raise WireError(message)
    return from_wire(kind, data)
