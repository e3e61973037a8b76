"""One attempt of one task, folded from its events."""

from __future__ import annotations

import dataclasses
import enum

from phalanx import events as ev
from phalanx.names import TaskId
from phalanx.sample import TaskSample


class TaskPhase(enum.Enum):
    """Where one attempt of a task stands."""

    WAITING = "waiting"
    RUNNING = "running"
    SUCCEEDED = "succeeded"  # exit 0
    FAILED = "failed"  # ended by itself with a code or a signal
    VICTIM = "victim"  # failed since another had
    ENDED = "ended"  # ended because we told it to
    LOST = "lost"  # its host is gone

    @property
    def over(self) -> bool:
        """Whether its process is gone."""
        return self not in (TaskPhase.WAITING, TaskPhase.RUNNING)


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class TaskState:
    """One task in the current generation."""

    id: TaskId
    phase: TaskPhase = TaskPhase.WAITING
    host: int | None = None
    address: str | None = None
    rank: int | None = None
    generation: int = 0
    attempt: int = 1
    #: When this attempt is to start, where the one before it has failed.
    due: float | None = None
    pid: int | None = None
    started: float | None = None
    listening: float | None = None
    ended: float | None = None
    exit: ev.TaskExited | None = None
    #: Why it could not start, where it could not.
    refused: str = ""
    #: Steps of this attempt as last told, when that was, and when the first was done.
    step: int = 0
    stepped: float | None = None
    first_step: float | None = None
    #: The newest sample, for who looks now: no event tells of it.
    sample: TaskSample | None = None
    #: The checkpoint that this attempt went on from, and the newest complete one that it wrote.
    restored: ev.CheckpointRestored | None = None
    saved: ev.CheckpointSaved | None = None
    #: Training steps that came before this attempt; None where another run's checkpoint holds them.
    base: int | None = 0
    #: Since when its process is stopped; since when it gives no sign of life.
    frozen: float | None = None
    quiet: float | None = None
    stalled: ev.TaskStalled | None = None
    #: When it got a SIGTERM that was not ours; and how it leaves before its next step.
    asked: float | None = None
    leaves: ev.TaskLeaves | None = None
    #: When its program came to its end, while the process is still there.
    done: float | None = None
    #: The newest word of what its threads do.
    stacks: ev.StacksWritten | None = None
    #: When it was told to end, and how many seconds it was given.
    stop_ordered: float | None = None
    stop_grace: float = 0.0
    standby: bool = False


def total_steps(task: TaskState, own: int) -> int | None:
    """Training steps of the run after `own` steps of this attempt; None where nobody can tell."""
    return None if task.base is None else task.base + own


def next_attempt(task: TaskState, due: float) -> TaskState:
    """The same place in the cluster, for another process."""
    return TaskState(
        id=task.id,
        host=task.host,
        address=task.address,
        rank=task.rank,
        generation=task.generation,
        attempt=task.attempt + 1,
        due=due,
    )


def fold_task(task: TaskState, event: ev.TaskEvent) -> TaskState:  # noqa: C901, PLR0911, PLR0912 - one case an event
    """The attempt after one more event of its generation. A late word of an older attempt changes nothing."""
    if event.attempt < task.attempt or task.phase.over:
        return task
    match event:
        case ev.TaskStarted():
            return dataclasses.replace(
                task,
                phase=TaskPhase.RUNNING,
                pid=event.pid,
                started=event.time,
                standby=event.standby,
                attempt=event.attempt,
            )
        case ev.TaskNotStarted():
            return dataclasses.replace(task, phase=TaskPhase.FAILED, ended=event.time, refused=event.message)
        case ev.TaskListening():
            return dataclasses.replace(task, listening=event.time)
        case ev.TaskExited():
            return dataclasses.replace(task, phase=_ended(event), ended=event.time, exit=event)
        case ev.TaskStepped():
            first = event.time if task.first_step is None else task.first_step
            return dataclasses.replace(task, step=event.step, stepped=event.time, first_step=first)
        case ev.CheckpointSaved():
            return dataclasses.replace(task, saved=event)
        case ev.CheckpointRestored():
            return dataclasses.replace(task, restored=event)
        case ev.TaskFroze():
            return dataclasses.replace(task, frozen=event.since)
        case ev.TaskQuiet():
            return dataclasses.replace(task, quiet=event.since)
        case ev.TaskStalled():
            return dataclasses.replace(task, stalled=event, quiet=None)  # it lives: its server answers
        case ev.TaskAwake():
            return _awake(task)
        case ev.TaskAsked():
            return dataclasses.replace(task, asked=event.time if task.asked is None else task.asked)
        case ev.TaskLeaves():
            return dataclasses.replace(task, leaves=event)
        case ev.TaskDone():
            return dataclasses.replace(task, done=event.since)
        case ev.StacksWritten():
            return dataclasses.replace(task, stacks=event)
    return task


def judged(task: TaskState, culprit: ev.CulpritNamed | None) -> TaskState:
    """Its phase by the part it has in the failure, whether it ended before somebody was named or after."""
    if culprit is None or task.phase not in (TaskPhase.FAILED, TaskPhase.ENDED, TaskPhase.VICTIM):
        return task
    phase = task.phase
    if task.id == culprit.task or task.id in culprit.alike:
        phase = TaskPhase.FAILED
    elif task.id in culprit.victims:
        phase = TaskPhase.VICTIM
    return task if phase is task.phase else dataclasses.replace(task, phase=phase)


def _awake(task: TaskState) -> TaskState:
    return dataclasses.replace(task, frozen=None, quiet=None, stalled=None)


def _ended(event: ev.TaskExited) -> TaskPhase:
    if event.code == 0:
        return TaskPhase.SUCCEEDED
    return TaskPhase.ENDED if event.stopped else TaskPhase.FAILED
