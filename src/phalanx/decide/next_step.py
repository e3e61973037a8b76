"""What the lead does next: one function of the state and the time, asked after every event and at every alarm.

It is level-triggered: it looks at what is, not at what just happened, so a lead that takes over asks the same question
and gets the same answer.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence

from phalanx import events as ev
from phalanx.decide import preflight
from phalanx.decide.culprit import lost_now, name_culprit, nobody_to_blame
from phalanx.decide.elastic import awaits, can_start, living_hosts, of_roles, resize
from phalanx.decide.exits import Kind
from phalanx.decide.grace import graces, left_alone
from phalanx.decide.hang import Dump, early
from phalanx.decide.health import stacks_first, unhealthy
from phalanx.decide.listening import Remark, deserted, not_listening
from phalanx.decide.restart import judge
from phalanx.decide.resume import resumption
from phalanx.decide.unit import failing_unit, fallen, only_looks_on
from phalanx.decide.waiting import why_not_here
from phalanx.names import TRAINING_TYPES, TaskId
from phalanx.plan.outline import Strategy
from phalanx.plan.policies import Policies
from phalanx.spans import span
from phalanx.states import RunPhase, RunState
from phalanx.taskstate import TaskPhase, TaskState

#: How the note begins that a host has come, and is not taken up at once.
_GROWS = "the run grows in "

#: How the note begins that says whom a run that has succeeded waits for, and after how many seconds it comes: tasks of
#: one group never end quite at once.
_WAITS, _PATIENCE = "the job has succeeded, and waits for ", 5.0

#: Seconds until the next look where the lead is about to bind: its last one may have been just before the time came.
_SOON = 0.1

#: After a first failure, how long the lead waits for the others' ends before it names the culprit all the same:
#: their grace, and this much for the words to arrive.
SETTLE = 2.0


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Say:
    """Put this event into the records."""

    event: ev.Event


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Stop:
    """End these tasks: TERM, `grace` seconds, KILL."""

    tasks: tuple[TaskId, ...]
    grace: float
    reason: str


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Wake:
    """Ask again at this time, if nothing happens before."""

    at: float


Action = Say | Stop | Wake | Dump


def next_step(state: RunState, policies: Policies, now: float) -> tuple[Action, ...]:  # noqa: PLR0911 - one return a case
    """What to do now. Nothing follows a terminal state; each start deadline, grace and window is one Wake."""
    if state.phase.terminal or not state.run:
        return ()
    if state.succeeded is None and (won := _leader_won(state, now)):
        return (won,)
    if state.stop is not None and state.succeeded is None:
        return _stopped(state, state.stop, policies, now)
    if state.succeeded is not None:
        return _finishing(state, state.succeeded, policies, now)
    if state.restart is not None:
        return _restarting(state, state.restart, policies, now)
    if state.resize is not None:
        return _resizing(state, state.resize, policies, now)
    if _failed(state):
        return _ask(stacks_first(state, now)) or _first_failure(state, policies, now)
    if state.phase is RunPhase.JOINING:
        return _joining(state, policies, now)
    if state.all_over:
        return _all_ended_well(now)
    return _looked(state, policies, now) or _running(state, policies, now)


def _leader_won(state: RunState, now: float) -> Say | None:
    task = state.leading
    if task is None or task.phase is not TaskPhase.SUCCEEDED or (task.exit and task.exit.stopped):
        return None
    if _failed(state) and any(t.stop_ordered for t in state.tasks.values()):
        return None  # the group was being ended already: this exit 0 proves nothing
    return Say(event=ev.LeaderSucceeded(time=now, generation=state.generation, task=task.id))


def _failed(state: RunState) -> bool:
    return state.culprit is not None or bool(lost_now(state)) or bool(fallen(state))


def _stopped(state: RunState, stop: ev.StopRequested, policies: Policies, now: float) -> tuple[Action, ...]:
    grace = 0.0 if stop.hard else policies.grace.stop
    told = [t for t in _living(state) if t.stop_ordered is None or (stop.hard and t.stop_grace > 0)]
    bound = state.phase not in (RunPhase.JOINING, RunPhase.RESTARTING)
    if told and bound:
        return (Stop(tasks=_ids(told), grace=grace, reason=f"stop requested by {stop.by}"),)
    if bound and (waits := _when_gone(state, now)):
        return waits
    return (_end(now, outcome="stopped", code=4, cause=f"stopped: {stop.by}{_undead(state)}"),)


def _undead(state: RunState) -> str:
    """Who would not die: a process in an uninterruptible call, or an agent that cannot act."""
    left = _living(state) if state.generation else []
    return f"; no word of the end of {', '.join(str(task.id) for task in left)}" if left else ""


def _first_failure(state: RunState, policies: Policies, now: float) -> tuple[Action, ...]:  # noqa: PLR0911 - a return a stage
    """Those that cannot go on are ended; then the culprit is named, and then it is settled what follows."""
    unit = failing_unit(state)
    if told := [t for t in _living(state) if t.id in unit and t.stop_ordered is None]:
        return _end_unit(state, told, policies, now)
    over = all(state.tasks[task].phase.over for task in unit)
    if not over and (waits := _when_gone(state, now)):
        return waits
    culprit = state.culprit or name_culprit(state, now)
    if culprit is None:
        return ()
    if state.culprit is None:
        return (Say(event=culprit),)
    verdict = judge(state, policies.restart, now)
    if verdict.again:
        alone = tuple(sorted(unit)) if over and len(unit) < len(state.tasks) else ()
        if not alone and len(unit) < len(state.tasks) and (others := _not_told(state)):
            return (Stop(tasks=_ids(others), grace=policies.grace.failure, reason="the whole group starts again"),)
        order = ev.RestartOrdered(
            time=now,
            generation=state.generation,
            at=verdict.at,
            why=verdict.why,
            counted=verdict.counted,
            along=verdict.along,
            tasks=alone,
        )
        return (Say(event=order),)
    if only_looks_on(state, unit) and culprit.task is not None:
        why = f"{culprit.cause}; {verdict.why or 'no restart is left'}; the training goes on without it"
        return (Say(event=ev.TaskGivenUp(time=now, generation=state.generation, task=culprit.task, why=why)),)
    if others := _not_told(state):
        return (Stop(tasks=_ids(others), grace=policies.grace.failure, reason="another task has failed"),)
    if waits := _when_gone(state, now):
        return waits
    cause = f"{culprit.cause}; {verdict.why}" if verdict.why else culprit.cause
    return (_end(now, outcome="failed", code=_exit_code(culprit, state), cause=cause),)


def _end_unit(state: RunState, told: list[TaskState], policies: Policies, now: float) -> tuple[Action, ...]:
    until = left_alone(state)
    if until is not None and now < until:
        return (Wake(at=until),)
    return tuple(
        Stop(tasks=_ids(some), grace=grace, reason="another task has failed")
        for some, grace in graces(state, told, policies)
    )


def _not_told(state: RunState) -> list[TaskState]:
    return [task for task in _living(state) if task.stop_ordered is None]


def _resizing(state: RunState, order: ev.ResizeOrdered, policies: Policies, now: float) -> tuple[Action, ...]:
    """Everybody stops at a point at which they can save, and starts again in another number."""
    if told := _not_told(state):
        return (Stop(tasks=_ids(told), grace=policies.grace.stop, reason=order.why),)
    if waits := _when_gone(state, now):
        return waits
    again = ev.RestartOrdered(time=now, generation=state.generation, at=now, why=order.why, counted=False)
    return (Say(event=again),)


def _restarting(state: RunState, restart: ev.RestartOrdered, policies: Policies, now: float) -> tuple[Action, ...]:
    """The rendezvous binds the next generation as soon as it is due; here is only what happens when it cannot."""
    if now < restart.at:
        return (Wake(at=restart.at),)
    if can_start(state):
        return (Wake(at=now + _SOON),)
    if not living_hosts(state) and not of_roles(state):  # a lost pod is replaced
        cause = f"generation {state.generation + 1} could not start: every host is lost"
        return (_end(now, outcome="failed", code=3, cause=cause),)
    deadline = restart.at + policies.health.start
    waits = f"generation {state.generation + 1} waits for hosts"
    if not state.has_noted(waits):
        more = "" if of_roles(state) else f"; `phalanx join {state.run}` brings one"
        words = f"{waits}: {awaits(state)}{more}; it waits {span(policies.health.start)}"
        return (Say(event=ev.Noted(time=now, message=words)),)
    if now < deadline:
        return (Wake(at=deadline),)
    cause = f"generation {state.generation + 1} could not start: {awaits(state)}{why_not_here(state, since=restart.at)}"
    return (_end(now, outcome="failed", code=3, cause=cause),)


def _exit_code(culprit: ev.CulpritNamed, state: RunState) -> int:
    if culprit.task is None:
        return 3
    return 2 if state.blamed is not None and state.blamed.refused else 1


def _finishing(state: RunState, won: ev.LeaderSucceeded, policies: Policies, now: float) -> tuple[Action, ...]:
    """The leader has exited 0. Servers never end by themselves (R79); the others get their windows."""
    if state.all_over:
        return (_end(now, outcome="succeeded", code=0, cause=f"{won.task} exited with code 0"),)
    if _hard(state) and (told := [t for t in _living(state) if t.stop_ordered is None or t.stop_grace > 0]):
        return (Stop(tasks=_ids(told), grace=0.0, reason="the job has succeeded, and nobody waits any more"),)
    if frozen := [t for t in _living(state) if t.frozen is not None and t.stop_ordered is None]:
        words = "the job has succeeded, and nobody has continued it since it was stopped by a signal (state T)"
        return (Stop(tasks=_ids(frozen), grace=0.0, reason=words),)
    if left := _in_their_windows(state, won, policies, now):
        return left
    return (_end(now, outcome="succeeded", code=0, cause=f"{won.task} exited with code 0{_undead(state)}"),)


def _in_their_windows(state: RunState, won: ev.LeaderSucceeded, policies: Policies, now: float) -> tuple[Action, ...]:
    """Whoever has had its time is ended, and the records say why; empty once nobody is waited for."""
    left = [t for t in _living(state) if t.stop_ordered is None and not _is_needed(state, t, now)]
    windows = {t.id: won.time + _window(state, won, policies, t) for t in left}
    if state.stop is not None:
        windows = dict.fromkeys(windows, now)
    if due := tuple(task for task, at in windows.items() if at <= now):
        stop = Stop(tasks=due, grace=policies.grace.stop, reason="the job has succeeded")
        return (*_overdue(state, won, [task for task in due if windows[task] > won.time], now), stop)
    told = won.time + _PATIENCE
    if said := _waited_for(state, windows, now) if now >= told else None:
        return (said,)
    wakes = [*windows.values(), *(wake.at for wake in _when_gone(state, now) if isinstance(wake, Wake))]
    if windows and now < told:
        wakes.append(told)
    return (Wake(at=min(wakes)),) if wakes else ()


def _is_needed(state: RunState, task: TaskState, now: float) -> bool:
    """Whether it may still serve somebody who trains: a data service goes after the last of them."""
    if task.id.type not in state.outside or state.stop is not None or state.strategy == Strategy.PS.value:
        return False
    trains = [other for other in _living(state) if other.id.type in TRAINING_TYPES]
    return any(t.stop_ordered is None or t.stop_ordered + t.stop_grace + SETTLE > now for t in trains)


def _window(state: RunState, won: ev.LeaderSucceeded, policies: Policies, task: TaskState) -> float:
    if task.id.type == "evaluator":
        window = policies.health.evaluator
    elif task.id.type in TRAINING_TYPES and state.strategy != Strategy.PS.value:
        window = policies.health.finish
    else:
        return 0.0
    if task.done is not None:  # its program is over, and something keeps the process
        return min(window, max(0.0, task.done - won.time) + policies.grace.stop)
    return window


def _waited_for(state: RunState, windows: Mapping[TaskId, float], now: float) -> Say | None:
    """Said once: whom the end of the run waits for."""
    if not windows or state.has_noted(_WAITS):
        return None
    names = ", ".join(f"{task} (for {at - now:.0f} s more at most)" for task, at in windows.items())
    return Say(event=ev.Noted(time=now, message=f"{_WAITS}{names}: {_still(state, windows)}"))


def _overdue(state: RunState, won: ev.LeaderSucceeded, late: Sequence[TaskId], now: float) -> tuple[Action, ...]:
    """Why tasks are ended that had their time after the success; nothing of those that never end by themselves."""
    if not late or state.stop is not None:
        return ()
    words = (
        f"{', '.join(map(str, late))} ended by phalanx {now - won.time:.0f} s after the success: {_still(state, late)}"
    )
    return (Say(event=ev.Noted(time=now, message=words)),)


def _still(state: RunState, tasks: Iterable[TaskId]) -> str:
    if all(state.tasks[task].done is not None for task in tasks):
        return "a thread that is no daemon, a child or an exit handler keeps the process, whose program is over"
    return "still at work; --finish and health.evaluator say for how long they may be"


def _joining(state: RunState, policies: Policies, now: float) -> tuple[Action, ...]:
    deadline = state.started + policies.health.start
    if now < deadline:
        return (Wake(at=deadline),)
    if can_start(state):
        return (Wake(at=now + _SOON),)
    come = living_hosts(state)
    joined = f"{awaits(state)} after" if of_roles(state) else f"{come} of {state.wanted_hosts} hosts joined within"
    cause = f"{joined} {span(policies.health.start)}"
    end = nobody_to_blame(state.generation, now, kind=Kind.INFRASTRUCTURE, cause=cause, code=3)
    return tuple(Say(event=event) for event in end)


def _looked(state: RunState, policies: Policies, now: float) -> tuple[Action, ...]:
    """The preflight's verdict, once."""
    return tuple(Say(event=event) for event in preflight.verdict(state, policies.preflight, now))


def _running(state: RunState, policies: Policies, now: float) -> tuple[Action, ...]:
    """Who is stuck, and who has not come to listen."""
    looks = (unhealthy(state, policies.health, now), early(state, policies.health, now), deserted(state, now))
    found = tuple(action for look in looks for action in _ask(look))
    return (
        found if any(not isinstance(action, Wake) for action in found) else (*found, *_starting(state, policies, now))
    )


def _ask(finding: Remark) -> tuple[Action, ...]:
    """What a look at the health comes to."""
    match finding:
        case ev.CulpritNamed() | ev.Noted():
            return (Say(event=finding),)
        case Dump():
            return (finding,)
        case float():
            return (Wake(at=finding),)
    return ()


def _starting(state: RunState, policies: Policies, now: float) -> tuple[Action, ...]:
    """What a start is waited for, and the start deadline: TensorFlow itself would wait an hour, without a word."""
    if proof := resumption(state, now):
        return tuple(Say(event=event) for event in proof)
    match resize(state, policies, now):
        case ev.ResizeOrdered() as order:
            return (Say(event=order),)
        case due:
            grows = () if due is None else _grows(state, policies, due, now)
    waits: tuple[Action, ...] = tuple(
        Wake(at=t.due) for t in _living(state) if t.due is not None and t.started is None and t.due > now
    )
    waits += grows
    return (*waits, *_ask(not_listening(state, policies.health, now)))


def _grows(state: RunState, policies: Policies, due: float, now: float) -> tuple[Action, ...]:
    """Who has brought a host hears once in each generation when it is taken up."""
    rest = f"its generation runs for {policies.resize.cooldown:g} s first (cool-down)"
    if state.has_noted(_GROWS, since=state.bound or 0.0):
        return (Wake(at=due),)
    words = f"{_GROWS}{due - now:.0f} s: {living_hosts(state, 'worker')} hosts are there, and {rest}"
    return (Say(event=ev.Noted(time=now, message=words)), Wake(at=due))


def _all_ended_well(now: float) -> tuple[Action, ...]:
    """Every task exited 0 and there is no leader to ask: all of them are the success."""
    return (_end(now, outcome="succeeded", code=0, cause="every task exited with code 0"),)


def _when_gone(state: RunState, now: float) -> tuple[Action, ...]:
    """When the tasks that were told to end must be gone; empty once that time is over."""
    ends = [t.stop_ordered + t.stop_grace + SETTLE for t in _living(state) if t.stop_ordered is not None]
    return (Wake(at=max(ends)),) if ends and max(ends) > now else ()


def _living(state: RunState) -> list[TaskState]:
    return [task for task in state.tasks.values() if not task.phase.over]


def _ids(tasks: list[TaskState]) -> tuple[TaskId, ...]:
    return tuple(task.id for task in tasks)


def _hard(state: RunState) -> bool:
    return state.stop is not None and state.stop.hard


def _end(now: float, *, outcome: str, code: int, cause: str) -> Say:
    return Say(event=ev.RunEnded(time=now, outcome=outcome, exit_code=code, cause=cause))
