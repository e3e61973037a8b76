"""Who is stuck: frozen, silent, hung, or late to finish. TensorFlow itself waits for ever in silence (facts §3)."""

from __future__ import annotations

from phalanx.decide.culprit import blame, place, where
from phalanx.decide.exits import Kind
from phalanx.decide.hang import (
    STACKS,
    Dump,
    Finding,
    hung,
    must_listen,
    others,
    stacks_before,
    start_deadline,
    unfinished,
)
from phalanx.events import CulpritNamed
from phalanx.plan.policies import Health
from phalanx.states import RunState
from phalanx.taskstate import TaskPhase, TaskState

#: Seconds in state T after which nobody is about to continue it, as a debugger does that looks and lets go.
STOPPED = 1.5

#: Seconds of silence that are too many for a task of TensorFlow's where the job says nothing.
SILENCE = 120.0


def patience(health: Health) -> float:
    """Seconds after which an agent speaks of a task that shows nothing: early enough for every limit."""
    limits = [limit for limit in (_silence(health), health.hang, health.finish) if limit > 0]
    return min(max(min(limits, default=60.0) / 4, 1.0), 15.0)


def unhealthy(state: RunState, health: Health, now: float) -> Finding:
    """Judge the tasks that run. A frozen one is a culprit after a moment, in any role; the others get their time."""
    running = [task for task in state.tasks.values() if task.phase is TaskPhase.RUNNING]
    frozen = [task for task in running if task.frozen is not None]
    if frozen:
        first = min(frozen, key=lambda task: (task.frozen or now, task.id))
        due = (first.frozen or now) + STOPPED
        return _froze(state, first, now) if now >= due else due
    found: list[Finding] = [
        _silent(state, task, health, now) for task in sorted(running, key=lambda task: (task.quiet or now, task.id))
    ]
    found += [hung(state, health, now), unfinished(state, health, now)]
    for kind in (CulpritNamed, Dump):
        if sure := next((one for one in found if isinstance(one, kind)), None):
            return sure
    return min((one for one in found if isinstance(one, float)), default=None)


def stacks_first(state: RunState, now: float) -> Finding:
    """Before those that were found stuck are ended: their stacks, once, and a moment for them to come."""
    culprit = state.culprit
    task = state.blamed
    if culprit is None or task is None or task.phase is not TaskPhase.RUNNING or task.stop_ordered is not None:
        return None
    return stacks_before(state, now, now, since=culprit.time - STACKS)


def _froze(state: RunState, task: TaskState, now: float) -> CulpritNamed:
    frozen = now - (task.frozen or now)
    said = f"was stopped by a signal (state T) {frozen:.1f} s ago, and nobody has continued it"
    return blame(
        state,
        task,
        now,
        kind=Kind.INFRASTRUCTURE,
        cause=f"{task.id}{where(state, task)} {said}",
        victims=others(state, task),
        sign="frozen",
        hint="find out who sent SIGSTOP or SIGTSTP: a debugger, an administrator, a batch system that suspends jobs",
    )


def _silence(health: Health) -> float:
    return SILENCE if health.silence is None else health.silence


def _silent(state: RunState, task: TaskState, health: Health, now: float) -> Finding:
    limit = _silence(health)
    if task.quiet is None or limit <= 0:
        return None
    # A program outside the cluster may sleep until somebody asks it, whether it listens or not.
    shown = task.id.type not in state.outside and (task.listening is not None or task.first_step is not None)
    if not shown and (health.silence is None or (task.address and must_listen(state))):
        return None  # a program that we know nothing of, or one for which `start` counts
    deadline = task.quiet + limit
    if not shown and task.address:  # it may still start: nothing shorter than that counts before
        deadline = max(deadline, start_deadline(state, health, (task,)))
    said = f"{task.id}{where(state, task)} has given no sign of life for {now - task.quiet:.0f} s"
    return stacks_before(state, deadline, now, since=task.quiet) or blame(
        state,
        task,
        now,
        kind=Kind.INFRASTRUCTURE,
        cause=f"{said}{place(task)}: {_signs(task)}",
        victims=others(state, task),
        sign="silence",
        hint=_look_at(task),
    )


def _look_at(task: TaskState) -> str:
    """A process that can still say where it is does not hang in a dead file system: it sleeps, or waits."""
    longer = "raise --silence if it may be quiet for so long"
    if task.stacks is not None and task.stacks.at:
        return f"its stacks are in {task.stacks.path}; {longer}"
    return f"a dead file system or device is the usual cause; {longer}"


def _signs(task: TaskState) -> str:
    answer = f", no answer on {task.address}" if task.listening is not None else ""
    return f"no output, no CPU time, no bytes to its peers{answer}"
