"""What a run is, folded from its events: lawful states, and nothing that the events do not say."""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from phalanx import events as ev
from phalanx.hoststate import HostState
from phalanx.names import TaskId
from phalanx.plan.size import Elastic
from phalanx.slowevents import SlowEvent, Slowness, after
from phalanx.taskstate import TaskPhase, TaskState, fold_task, judged, next_attempt, total_steps


class RunPhase(enum.Enum):
    """Where a run stands. `SUCCEEDED`, `FAILED`, `STOPPED` and `LOST` are terminal: nothing follows them."""

    JOINING = "joining"  # hosts are awaited
    STARTING = "starting"  # bound, and some task does not run yet
    RUNNING = "running"  # every task has started
    FINISHING = "finishing"  # success is certain, others still run
    STOPPING = "stopping"  # a stop or a first failure: the rest is being ended
    RESTARTING = "restarting"  # the generation is over, the next one is due
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    STOPPED = "stopped"
    LOST = "lost"  # its lead is gone and nobody took over

    @property
    def terminal(self) -> bool:
        """Whether nothing can follow."""
        return self in (RunPhase.SUCCEEDED, RunPhase.FAILED, RunPhase.STOPPED, RunPhase.LOST)


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class PastFailure:
    """A generation, or some attempts within one, that failed and started again."""

    #: The generation.
    number: int
    bound: float
    ended: float
    #: None where nothing failed: the group was resized.
    culprit: ev.CulpritNamed | None
    #: Training steps of the run that the culprit, else the furthest task, had done; None where nobody can tell.
    step: int | None
    #: How the culprit ended; the same fault twice is the program's own doing.
    exit: ev.TaskExited | None
    restart: ev.RestartOrdered


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class RunState:
    """A run as its events tell it. `seq` is the last one folded in."""

    run: str = ""
    name: str = ""
    phase: RunPhase = RunPhase.JOINING
    epoch: int = 0
    seq: int = 0
    generation: int = 0
    strategy: str = ""
    leader: TaskId | None = None
    wanted_hosts: int = 1
    must_listen: bool = False
    #: Roles outside the cluster, each with what the failure of one of its tasks means.
    outside: Mapping[str, str] = dataclasses.field(default_factory=dict)
    elastic: Elastic | None = None
    #: What somebody has asked for, and the order to stop for another number.
    scale: ev.ScaleRequested | None = None
    resize: ev.ResizeOrdered | None = None
    started: float = 0.0
    bound: float | None = None
    ended: float | None = None
    #: What each host has found before step one of this generation, and whether the tasks may start.
    checked: Mapping[int, ev.HostChecked] = dataclasses.field(default_factory=dict)
    cleared: bool = False
    hosts: Mapping[int, HostState] = dataclasses.field(default_factory=dict)
    tasks: Mapping[TaskId, TaskState] = dataclasses.field(default_factory=dict)
    #: While they start: one of them that has not been started yet.
    waits: TaskId | None = None
    stop: ev.StopRequested | None = None
    #: The newest order for stacks in this generation.
    stacks: ev.StacksOrdered | None = None
    culprit: ev.CulpritNamed | None = None
    #: What has failed before and was started again; and the order for the next generation, while that is awaited.
    past: tuple[PastFailure, ...] = ()
    restart: ev.RestartOrdered | None = None
    #: Tasks that only looked on, and were given up.
    given_up: tuple[TaskId, ...] = ()
    #: The run's own complete checkpoints: the training steps that each holds; and when the newest was written.
    saved: Mapping[str, int | None] = dataclasses.field(default_factory=dict)
    progress: float | None = None
    #: Training steps that came before attempts that are over, by generation, attempt and task; 0 is left out.
    bases: Mapping[tuple[int, int, TaskId], int | None] = dataclasses.field(default_factory=dict)
    #: Where each generation went on; the first where it read a checkpoint.
    resumed: tuple[ev.Resumed, ...] = ()
    succeeded: ev.LeaderSucceeded | None = None
    #: What the job should leave behind: that somebody looks for it, then what was found.
    outputs: ev.OutputsAsked | ev.OutputsFound | None = None
    end: ev.RunEnded | None = None
    notes: tuple[ev.Noted, ...] = ()
    slow: tuple[Slowness, ...] = ()

    @property
    def asked(self) -> int | None:
        """The number of workers that somebody has asked for."""
        return self.scale.workers if self.scale else None

    @property
    def standbys(self) -> tuple[int, int]:
        """How many all living hosts keep for the next generation, and the bytes that only these use."""
        living = [host for host in self.hosts.values() if host.living]
        return sum(host.standbys for host in living), sum(host.standby_bytes for host in living)

    @property
    def blamed(self) -> TaskState | None:
        """The task that is to blame, as it is in this generation; None where no task is."""
        return self.tasks.get(self.culprit.task) if self.culprit is not None and self.culprit.task is not None else None

    @property
    def leading(self) -> TaskState | None:
        """The leader, as it is in this generation; None where there is none."""
        return self.tasks.get(self.leader) if self.leader is not None else None

    def has_noted(self, begins: str, *, since: float = 0.0) -> bool:
        """Whether a note that begins so was made since then."""
        return any(note.message.startswith(begins) and note.time >= since for note in self.notes)

    @property
    def all_over(self) -> bool:
        """Whether no process of the run is left, as far as the events tell."""
        return all(task.phase.over for task in self.tasks.values())


def fold(state: RunState, record: ev.Record) -> RunState:
    """The state after one more event. A late word of an older generation, or after the end, changes nothing."""
    if state.phase.terminal:
        return state
    state = dataclasses.replace(state, seq=record.seq, epoch=max(state.epoch, record.epoch))
    event = record.event
    for kind, apply in _FOLDS:
        if isinstance(event, kind):
            return apply(state, event)
    return state


def fold_all(records: Iterable[ev.Record]) -> RunState:
    """The state after all of them, from nothing."""
    state = RunState()
    for record in records:
        state = fold(state, record)
    return state


def _started(state: RunState, event: ev.RunStarted) -> RunState:
    return dataclasses.replace(
        state,
        run=event.run,
        name=event.name,
        strategy=event.strategy,
        leader=event.leader,
        wanted_hosts=event.hosts,
        must_listen=event.must_listen,
        outside=event.outside,
        elastic=event.elastic,
        started=state.started or event.time,
        tasks=state.tasks or {task: TaskState(id=task) for task in event.tasks},
    )


def _joined(state: RunState, event: ev.HostJoined) -> RunState:
    before = state.hosts.get(event.host)
    return _host(state, before.followed_by(event) if before else HostState(id=event.host, joined=event))


def _withdrawn(state: RunState, event: ev.HostWithdrawn) -> RunState:
    known = state.hosts.get(event.host)
    return _host(state, dataclasses.replace(known, leaving=True)) if known else state


def _left(state: RunState, event: ev.HostLeft) -> RunState:
    known = state.hosts.get(event.host)
    return _host(state, dataclasses.replace(known, left=True)) if known else state


def _standbys(state: RunState, event: ev.StandbysReady) -> RunState:
    known = state.hosts.get(event.host)
    return _host(state, dataclasses.replace(known, standbys=event.count, standby_bytes=event.bytes)) if known else state


def _host(state: RunState, host: HostState) -> RunState:
    return dataclasses.replace(state, hosts={**state.hosts, host.id: host})


def _lost(state: RunState, event: ev.HostLost) -> RunState:
    known = state.hosts.get(event.host)
    if known is None or known.left:
        return state
    # Told after the generation was bound, it was lost while it ran, whatever the clock of its agent says.
    now = max(event.time, state.bound or event.time)
    tasks = {
        name: dataclasses.replace(task, phase=TaskPhase.LOST, ended=now)
        if task.host == event.host and not task.phase.over
        else task
        for name, task in state.tasks.items()
    }
    lost = dataclasses.replace(
        known, lost=event.reason, lost_at=now, lost_why=event.reason, lost_kind=event.kind, lost_hint=event.hint
    )
    return dataclasses.replace(_host(state, lost), tasks=tasks)


def _bound(state: RunState, event: ev.GenerationBound) -> RunState:
    if event.generation <= state.generation:
        return state
    tasks = {
        place.task: TaskState(
            id=place.task,
            host=place.host,
            address=place.address,
            rank=place.rank,
            generation=event.generation,
        )
        for place in event.places
    }
    return dataclasses.replace(
        state,
        phase=RunPhase.STARTING,
        generation=event.generation,
        bound=event.time,
        hosts={name: dataclasses.replace(host, standbys=0, standby_bytes=0) for name, host in state.hosts.items()},
        tasks=tasks,
        checked={},
        cleared=False,
        culprit=None,
        restart=None,
        resize=None,
        given_up=(),
        stacks=None,
    )


def _checked(state: RunState, event: ev.HostChecked) -> RunState:
    if event.generation != state.generation:
        return state
    return dataclasses.replace(state, checked={**state.checked, event.host: event})


def _cleared(state: RunState, event: ev.PreflightPassed) -> RunState:
    return dataclasses.replace(state, cleared=True) if event.generation == state.generation else state


def _stop(state: RunState, event: ev.StopOrdered) -> RunState:
    if event.generation != state.generation:
        return state
    tasks = dict(state.tasks)
    for name in event.tasks:
        if name in tasks and not tasks[name].phase.over:
            tasks[name] = dataclasses.replace(tasks[name], stop_ordered=event.time, stop_grace=event.grace)
    phase = state.phase if state.succeeded else RunPhase.STOPPING
    return dataclasses.replace(state, phase=phase, tasks=tasks)


def _task(state: RunState, event: ev.TaskEvent) -> RunState:
    task = state.tasks.get(event.task)
    if task is None or event.generation != state.generation:
        return state
    changed = judged(fold_task(task, event), state.culprit)
    if changed is not task:
        state, changed = _progress(state, changed, event)
    state = dataclasses.replace(state, tasks={**state.tasks, task.id: changed})
    return _perhaps_running(state) if state.phase is RunPhase.STARTING else state


def _perhaps_running(state: RunState) -> RunState:
    """Running, once no task waits any more. Of ten thousand not all are looked at each time: one that waits says it."""
    known = state.tasks.get(state.waits) if state.waits else None
    if known is not None and known.phase is TaskPhase.WAITING:
        return state
    waits = next((task.id for task in state.tasks.values() if task.phase is TaskPhase.WAITING), None)
    return dataclasses.replace(state, waits=waits, phase=state.phase if waits else RunPhase.RUNNING)


def _progress(state: RunState, task: TaskState, event: ev.TaskEvent) -> tuple[RunState, TaskState]:
    """What a checkpoint says about the run: the steps it holds, as counted from zero through every restart."""
    match event:
        case ev.CheckpointRestored():
            return state, dataclasses.replace(task, base=state.saved.get(event.path))
        case ev.CheckpointSaved():
            saved = {**state.saved, event.path: total_steps(task, event.step)}
            return dataclasses.replace(state, saved=saved, progress=event.time), task
    return state, task


def _culprit(state: RunState, event: ev.CulpritNamed) -> RunState:
    tasks = {name: judged(task, event) for name, task in state.tasks.items()}
    return dataclasses.replace(state, culprit=event, tasks=tasks)


def _restart(state: RunState, event: ev.RestartOrdered) -> RunState:
    if event.generation != state.generation or (state.culprit is None and state.resize is None):
        return state
    before = state.past[-1].step if state.past and event.along else None  # a new attempt has not done any yet
    steps = steps_done(state)
    over = PastFailure(
        number=state.generation,
        bound=state.bound or state.started,
        ended=event.time,
        culprit=state.culprit,
        step=before if steps is None else steps,
        exit=state.blamed.exit if state.blamed else None,
        restart=event,
    )
    bases = {(task.generation, task.attempt, name): task.base for name, task in state.tasks.items() if task.base != 0}
    state = dataclasses.replace(state, past=(*state.past, over), bases={**state.bases, **bases})
    if not event.tasks:
        return dataclasses.replace(state, phase=RunPhase.RESTARTING, restart=event)
    again = {name: next_attempt(state.tasks[name], event.at) for name in event.tasks if name in state.tasks}
    return dataclasses.replace(state, phase=RunPhase.STARTING, culprit=None, tasks={**state.tasks, **again})


def _resize(state: RunState, event: ev.ResizeOrdered) -> RunState:
    return dataclasses.replace(state, resize=event) if event.generation == state.generation else state


def _given_up(state: RunState, event: ev.TaskGivenUp) -> RunState:
    if event.generation != state.generation:
        return state
    phase = RunPhase.RUNNING if state.phase is RunPhase.STOPPING else state.phase
    return dataclasses.replace(state, phase=phase, culprit=None, given_up=(*state.given_up, event.task))


def _resumed(state: RunState, event: ev.Resumed) -> RunState:
    return dataclasses.replace(state, resumed=(*state.resumed, event))


def steps_done(state: RunState) -> int | None:
    """Training steps of the run so far, as the furthest task of this generation counts; None where nobody can tell."""
    known = [total_steps(task, task.step) for task in state.tasks.values() if task.first_step is not None]
    return max((steps for steps in known if steps is not None), default=None)


def _stacks(state: RunState, event: ev.StacksOrdered) -> RunState:
    return dataclasses.replace(state, stacks=event) if event.generation == state.generation else state


def _succeeded(state: RunState, event: ev.LeaderSucceeded) -> RunState:
    return dataclasses.replace(state, phase=RunPhase.FINISHING, succeeded=event)


def _noted(state: RunState, event: ev.Noted) -> RunState:
    return dataclasses.replace(state, notes=(*state.notes, event))


def _run_ended(state: RunState, event: ev.RunEnded) -> RunState:
    tasks = {
        name: dataclasses.replace(task, phase=TaskPhase.ENDED) if task.phase is TaskPhase.WAITING else task
        for name, task in state.tasks.items()
    }
    return dataclasses.replace(state, phase=RunPhase(event.outcome), ended=event.time, end=event, tasks=tasks)


def _keeps(field: str) -> Callable[[RunState, Any], RunState]:
    """The newest event of its kind, as it is."""
    return lambda state, event: dataclasses.replace(state, **{field: event})


#: What each event does to the state; the first whose type fits.
_FOLDS: tuple[tuple[type[ev.Event], Callable[[RunState, Any], RunState]], ...] = (
    (ev.RunStarted, _started),
    (ev.HostJoined, _joined),
    (ev.HostLost, _lost),
    (ev.HostWithdrawn, _withdrawn),
    (ev.HostLeft, _left),
    (ev.StandbysReady, _standbys),
    (ev.GenerationBound, _bound),
    (ev.HostChecked, _checked),
    (ev.PreflightPassed, _cleared),
    (ev.TaskEvent, _task),
    (ev.StopRequested, _keeps("stop")),
    (ev.StopOrdered, _stop),
    (ev.StacksOrdered, _stacks),
    (ev.CulpritNamed, _culprit),
    (ev.RestartOrdered, _restart),
    (ev.TaskGivenUp, _given_up),
    (ev.ScaleRequested, _keeps("scale")),
    (ev.ResizeOrdered, _resize),
    (ev.Resumed, _resumed),
    (ev.LeaderSucceeded, _succeeded),
    (ev.OutputsAsked, _keeps("outputs")),
    (ev.OutputsFound, _keeps("outputs")),
    (ev.Noted, _noted),
    (SlowEvent, lambda state, event: dataclasses.replace(state, slow=after(state.slow, event))),
    (ev.RunEnded, _run_ended),
)
