"""What agents and the lead tell each other. Bodies are JSON, written by `plan.wire`.

POST /v1/join     Join    → Joined    once an agent and epoch: a new lead is told again who there is
POST /v1/orders   Poll    → Orders    long poll: answered when there is an order, or empty after `wait`
POST /v1/events   Report  → Taken     as things happen; the agent keeps them until they are taken
POST /v1/records  Copy    → Copied    long poll of those who may lead next, where hosts share no folder: the records
"""

from __future__ import annotations

import base64
import dataclasses
import json
import zlib
from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Any, TypeVar

from phalanx.names import TaskId
from phalanx.plan.checklist import Checklist
from phalanx.plan.host import Host
from phalanx.plan.own import found_here
from phalanx.plan.wire import WireError, from_wire, to_wire
from phalanx.sample import TaskSample

#: Raised when an older agent and a newer lead could misunderstand each other.
VERSION = 1

T = TypeVar("T")


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Join:
    """An agent introduces its host. Joining again with the same `instance` changes nothing."""

    version: int
    run: str
    #: Random, one per agent process: a second agent for the same host is refused.
    instance: str
    host: Host
    pid: int
    #: As in Poll: what a lead that takes over finds made ready already.
    prepared: int = 0
    next_ports: tuple[int, ...] = ()
    #: `host:port` at which this agent would lead; empty where it never would.
    lead: str = ""


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Joined:
    """The lead knows the host now. `lease` is how long it waits for a sign of life, in seconds."""

    epoch: int
    lease: float
    #: Events of this agent up to this number are in the records: a lead that took over knows no later ones.
    taken: int = 0
    #: The lead's clock, in Unix seconds.
    now: float = 0.0
    #: Where agents that have joined so far would lead, lowest host first: whom to ask when this lead is silent.
    line: tuple[str, ...] = ()
    #: `host:port` by which this lead is reached; empty: as it was.
    lead: str = ""


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class StartTask:
    """One task of this host."""

    id: TaskId
    argv: tuple[str, ...]
    env: Mapping[str, str]
    port: int | None = None
    #: Whether that port is for a program of any kind, not for the task's server in the cluster.
    lent: bool = False
    attempt: int = 1
    tail: str | None = None
    head: str | None = None
    #: The CPUs it is pinned to; none: all.
    cpus: tuple[int, ...] = ()
    #: The leader of its group listens first: others that start before it back off for a second (facts §6).
    first: bool = False
    #: Whether the next generation has a task with the same command, so that an interpreter may wait for it.
    again: bool = True


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Order:
    """What the lead wants of one agent. Numbered from 1 within an epoch.

    `kind` is `prepare`, `go`, `stop`, `stacks`, `last` (no other generation follows), `outputs` or `leave`.
    """

    seq: int
    epoch: int
    kind: str
    generation: int = 0
    #: prepare: the tasks, and the shared beginning of TF_CONFIG, packed.
    tasks: tuple[StartTask, ...] = ()
    head: str = ""
    cwd: str = ""
    #: prepare: what to look at before the tasks may start; None: nothing.
    check: Checklist | None = None
    #: prepare: seconds without a sign of life, or without a step, before the agent says so.
    patience: float = 5.0
    #: stop, stacks: which of them; stop: the seconds between TERM and KILL. go: which; empty: every task prepared.
    ids: tuple[TaskId, ...] = ()
    grace: float = 0.0
    #: outputs: what to look for, relative to the job's folder.
    outputs: tuple[str, ...] = ()
    #: leave: the exit code of the run, or of the place where only this host goes.
    code: int = 0

    def placed(self, folder: str) -> Order:
        """The same, where our own programs are files of this host, and commands without a folder start in that one."""
        tasks = tuple(dataclasses.replace(task, argv=found_here(task.argv)) for task in self.tasks)
        return dataclasses.replace(self, tasks=tasks, cwd=str(PurePosixPath(folder, self.cwd)))


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Load:
    """What one attempt has used so far, seen from outside. As `sample.LoadSample`."""

    task: TaskId
    generation: int
    attempt: int
    cpu: float
    sent: int = 0
    received: int = 0


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class End:
    """One task's end of a connection between two of them.

    Who calls knows whom; who is called knows only the port that the other calls from. The lead puts the two together.
    """

    task: TaskId
    #: Whom it has called; None where it was called.
    peer: TaskId | None = None
    #: The port of the one that has called.
    port: int
    #: As in `sample.LinkSample`, of this connection alone.
    sent: int
    busy: float | None = None
    rtt: float | None = None


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Measured:
    """What the tasks of one host use and send, by that host's clock. Not in every poll, and of few connections."""

    at: float
    loads: tuple[Load, ...] = ()
    ends: tuple[End, ...] = ()
    #: Of the machine: as in `sample.LoadSample`.
    busy: float | None = None
    cpus: int = 0


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Poll:
    """An agent asks for orders after `after`. Counts as a sign of life."""

    instance: str
    host: int
    after: int
    #: The newest generation that this agent has made ready.
    prepared: int = 0
    #: Ports held for the generation after that one.
    next_ports: tuple[int, ...] = ()
    #: Seconds the lead may keep the request open.
    wait: float = 3.0
    #: `now` of the answer that this agent has had last from this lead: then it was following, whatever has happened
    #: since. A question may lie in the kernel's queue for as long as the lead is frozen.
    heard: float = 0.0
    #: How far the tasks are that run here.
    samples: tuple[TaskSample, ...] = ()
    #: What they use and send, which shows who is slow; None between two measurements.
    measured: Measured | None = None


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Orders:
    """In order of their numbers; empty when nothing came up."""

    orders: tuple[Order, ...] = ()
    #: As in Joined, the newest.
    line: tuple[str, ...] = ()
    #: When this was said, by the lead's clock.
    now: float = 0.0


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Report:
    """Events of one agent, numbered from `first` without gaps; those taken before are ignored."""

    instance: str
    host: int
    first: int
    events: tuple[Any, ...]
    #: What the sender's clock says, in Unix seconds: it may be wrong, and may have been set since the run began.
    now: float | None = None
    #: As in Poll: for an agent whose poll was open already when it became ready.
    prepared: int = 0
    next_ports: tuple[int, ...] = ()
    #: How far those were that have ended a while ago: told once or ten times is the same.
    samples: tuple[TaskSample, ...] = ()


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Taken:
    """Everything up to and with this number is in the records."""

    upto: int


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Copy:
    """A host that may lead next has so much of the records, and wants the rest."""

    instance: str
    host: int
    #: Bytes of `events.jsonl`, in whole lines.
    have: int
    #: The generation of the plan that it has.
    plan: int = 0
    #: Seconds the lead may keep the request open.
    wait: float = 3.0


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Copied:
    """What follows; empty when nothing came up. The plan comes before the record that speaks of it."""

    text: str = ""
    #: `plan.json` and the generation that it is of, where it is newer.
    plan: str = ""
    generation: int = 0
    #: Whether there is no more for now.
    all: bool = True


def encode(message: Any) -> bytes:
    """The body of a request or an answer."""
    return json.dumps(to_wire(message), separators=(",", ":")).encode()


def decode(kind: type[T], body: bytes) -> T:
    """Raises WireError for anything that is not such a message."""
    try:
        data = json.loads(body)
    except (ValueError, RecursionError) as wrong:
        message = f"{kind.__name__}: not JSON"
        raise WireError(message) from wrong
    return from_wire(kind, data)


def pack(text: str) -> str:
    """Compressed, for the cluster text: ten thousand addresses differ in a few digits."""
    return base64.b64encode(zlib.compress(text.encode(), 6)).decode()


def unpack(text: str) -> str:
    """What was packed. Raises ValueError."""
    return zlib.decompress(base64.b64decode(text)).decode() if text else ""
