"""Events, times and sizes in the words people read: the same in every view."""

from __future__ import annotations

import datetime as dt
import re

from phalanx import events as ev
from phalanx.decide.exits import words_for
from phalanx.names import TaskId, many
from phalanx.records.report import signal_name
from phalanx.slowevents import SlowEvent
from phalanx.states import RunPhase, RunState
from phalanx.taskstate import TaskPhase, TaskState

#: How many tasks are named one by one before they are counted.
NAMED = 6

#: Colours by phase, run's and task's alike.
COLOURS = {
    RunPhase.SUCCEEDED.value: "green",
    RunPhase.FAILED.value: "red",
    RunPhase.STOPPED.value: "yellow",
    RunPhase.LOST.value: "red",
    RunPhase.STOPPING.value: "yellow",
    RunPhase.RESTARTING.value: "yellow",
    TaskPhase.RUNNING.value: "cyan",
    TaskPhase.VICTIM.value: "yellow",
}

_ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-Z\\^_])")
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")
_MINUTE, _HOUR, _DAY = 60, 3600, 86400


def describe(event: ev.Event, state: RunState, epoch: int | None = None) -> str:  # noqa: C901, PLR0911, PLR0912 - a table of events
    """One event as a sentence without a full stop. `state` knows the names of hosts; `epoch` is that of the record."""
    match event:
        case ev.TaskEvent():
            return _task(event, state)
        case ev.RunStarted():
            wait = f"waiting for {many(event.hosts, 'host')}"
            again = f"lead epoch {epoch or state.epoch}: " if (epoch or state.epoch) > 1 else ""
            return f"{again}run {event.run}: {many(len(event.tasks), 'task')}, strategy {event.strategy}, {wait}"
        case ev.HostJoined():
            gpus = f", {many(event.gpus, 'GPU')}" if event.gpus else ""
            return f"host {event.name} joined ({event.address}, {many(event.cpus, 'CPU')}{gpus})"
        case ev.HostLost():
            return f"host {host_name(state, event.host)} is lost: {event.reason}"
        case ev.HostWithdrawn():
            return f"host {host_name(state, event.host)} is taken away by {event.by}"
        case ev.HostLeft():
            return f"host {host_name(state, event.host)} has left"
        case ev.StandbysReady():
            return f"host {host_name(state, event.host)} keeps {standbys(event.count, event.bytes)}"
        case ev.GenerationBound():
            return _bound(event)
        case ev.HostChecked():
            return _checked(event, state)
        case ev.PreflightPassed():
            warned = f", {many(event.warnings, 'warning')}" if event.warnings else ""
            return f"preflight: {many(event.checks, 'check')} in {duration(event.seconds)}{warned}"
        case ev.OutputsAsked():
            return f"looking for {many(len(event.patterns), 'output')} on {host_name(state, event.host)}"
        case ev.OutputsFound():
            found = sum(output.count > 0 for output in event.outputs)
            return f"{found} of {many(len(event.outputs), 'output')} found on {host_name(state, event.host)}"
        case ev.StopRequested():
            return f"{'kill' if event.hard else 'stop'} requested by {event.by}"
        case ev.StopOrdered():
            how = f"TERM, then KILL after {event.grace:g} s" if event.grace else "KILL"
            return f"ending {tasks(event.tasks)} ({how}): {event.reason}"
        case ev.StacksOrdered():
            return f"asking {tasks(event.tasks)} what their threads do ({event.by})"
        case ev.CulpritNamed():
            victims = f"; victims: {tasks(event.victims)}" if event.victims else ""
            return f"first failure ({event.kind}): {event.cause}{victims}"
        case ev.RestartOrdered():
            wait = f" in {event.at - event.time:.1f} s" if event.at > event.time else ""
            if event.tasks:
                return f"{tasks(event.tasks)} {'start' if len(event.tasks) > 1 else 'starts'} again{wait}: {event.why}"
            return f"generation {event.generation + 1} follows{wait}: {event.why}"
        case ev.ScaleRequested():
            return f"{many(event.workers, 'worker')} wanted by {event.by}"
        case ev.ResizeOrdered():
            return f"{event.why}: everybody stops where all can, and starts again"
        case ev.TaskGivenUp():
            return f"{event.task} is given up: {event.why}"
        case ev.Resumed():
            return f"{event.task} {resumed_words(event.path, event.step, event.lost)}"
        case ev.LeaderSucceeded():
            return f"the job has succeeded ({event.task} exited with code 0)"
        case ev.SlowFound():
            return f"slow: {event.says}"
        case ev.SlowEnded():
            return f"slow no more: {slow_about(event, state)}"
        case ev.Noted():
            return f"note: {event.message}"
        case ev.RunEnded():
            return f"run {event.outcome}: {event.cause.removeprefix(f'{event.outcome}: ')}"
    return type(event).__name__


def slow_about(event: SlowEvent, state: RunState) -> str:
    """`worker:1`, `host n2`, `link n1–n2`, `the network`: what a slowness is about."""
    match event.cause:
        case "task" | "server":
            return str(event.task)
        case "link":
            return f"link {_end(event.task, event.peer, state)}–{_end(event.peer, event.task, state)}"  # noqa: RUF001 - as one is written
        case "host" | "host-links" if event.host is not None:
            return f"{'host' if event.cause == 'host' else 'the network of host'} {host_name(state, event.host)}"
        case "crowd" if event.host is not None:
            return f"other programs on {host_name(state, event.host)}"
    return f"the {event.cause}"


def _end(task: TaskId | None, other: TaskId | None, state: RunState) -> str:
    """Its host, where the other end is on another one."""
    hosts = [known.host if name and (known := state.tasks.get(name)) else None for name in (task, other)]
    return host_name(state, hosts[0]) if hosts[0] is not None and hosts[0] != hosts[1] else str(task)


def resumed_words(path: str, step: int | None, lost: int | None) -> str:
    """`went on from step 120 (/ckpt/ckpt-4); 12 steps were lost`, or that it began at zero."""
    start = f"went on from {f'step {step}' if step is not None else 'another run'} ({path})" if path else ""
    steps = f"; {many(lost, 'step')} {'was' if lost == 1 else 'were'} lost" if lost else ""
    return f"{start or 'started at zero: no checkpoint was read'}{steps}"


def _checked(event: ev.HostChecked, state: RunState) -> str:
    wrong = tuple(dict.fromkeys(fault.check for fault in event.faults))
    found = f", faults: {', '.join(wrong)}" if wrong else ""
    return f"host {host_name(state, event.host)} has made {many(len(event.looked), 'check')}{found}"


def _task(event: ev.TaskEvent, state: RunState) -> str:
    where = f" on {host_name(state, event.host)}" if len(state.hosts) > 1 else ""
    again = f", attempt {event.attempt}" if event.attempt > 1 else ""
    match event:
        case ev.TaskStarted():
            return f"{event.task} started{where} (pid {event.pid}{again})"
        case ev.TaskNotStarted():
            return f"{event.task} could not be started{where}: {event.message}"
        case ev.TaskListening():
            return f"{event.task} listens on port {event.port}"
        case ev.TaskExited():
            return f"{event.task}{where} {_stopped(event, state) if event.stopped else exit_words(event)}"
    return f"{event.task} {_life(event, state)}"


def _life(event: ev.TaskEvent, state: RunState) -> str:  # noqa: C901, PLR0911 - a table of events
    match event:
        case ev.TaskStepped():
            return f"is at {_step(event, event.step, state)}" if event.step > 1 else "has done its first step"
        case ev.CheckpointSaved():
            return f"has saved {event.path} at {_step(event, event.step, state)}"
        case ev.CheckpointRestored():
            return f"goes on from {event.path}"
        case ev.TaskFroze():
            return "is stopped by a signal (state T)"
        case ev.TaskQuiet():
            return f"has given no sign of life for {event.time - event.since:.0f} s"
        case ev.TaskStalled():
            doing = f", {event.doing}" if event.doing else ""
            waits = ", waiting for its peers" if event.waits else ""
            at = _step(event, event.step, state)
            return f"has done no step for {event.time - event.since:.0f} s, after {at}{doing}{waits}"
        case ev.TaskAwake():
            return "goes on"
        case ev.TaskAsked():
            return "was asked to leave (SIGTERM)"
        case ev.TaskLeaves():
            return _leaves(event, state)
        case ev.TaskDone():
            ago = f"{event.time - event.since:.0f} s ago"
            return f"came to the end of its program {ago}, and its process is still there"
        case ev.StacksWritten():
            return f"has written what its threads do: {event.path}"
    return type(event).__name__


def _step(event: ev.TaskEvent, own: int, state: RunState) -> str:
    """`step 180` of the run, where this attempt began at 150 and has done 30; its own count where nobody knows."""
    task = state.tasks.get(event.task)
    base = state.bases.get((event.generation, event.attempt, event.task), 0)
    if task is not None and (task.generation, task.attempt) == (event.generation, event.attempt):
        base = task.base
    total = None if base is None else base + own
    return f"step {total}" if total is not None else f"step {own} of this start"


def _leaves(event: ev.TaskLeaves, state: RunState) -> str:
    words = f"leaves after {_step(event, event.step, state)}"
    if event.peers:
        words += f", as all {event.peers + 1} have agreed" if event.agreed else ", without a word from all of its peers"
    if event.wrong:
        return f"{words}; saving failed: {event.wrong}"
    return f"{words}; saved {event.saved}" if event.saved else words


def _bound(event: ev.GenerationBound) -> str:
    hosts = len({place.host for place in event.places})
    text = f"generation {event.generation}: {many(len(event.places), 'task')} on {many(hosts, 'host')}"
    if len(event.places) > NAMED or not any(place.address for place in event.places):
        return text
    return f"{text}: " + ", ".join(f"{p.task} at {p.address}" if p.address else str(p.task) for p in event.places)


def _stopped(event: ev.TaskExited, state: RunState) -> str:
    """How long a task took to do as it was told says more than what a signal usually means."""
    how = f"ended by {signal_name(event.signal)}" if event.signal is not None else exit_words(event)
    task = state.tasks.get(event.task)
    if task is None or task.stop_ordered is None:
        return f"{how} as it was told to"
    return f"{how} {duration(event.time - task.stop_ordered)} after it was told to"


def exit_words(event: ev.TaskExited) -> str:
    """`exited with code 1`, as `decide.exits` says it, and the words for one that never ran."""
    return "ended before it had begun" if event.code is None and event.signal is None else words_for(event)


def host_name(state: RunState, host: int) -> str:
    """The host's own name; its number where it never joined."""
    known = state.hosts.get(host)
    return known.joined.name if known else str(host)


def standing_of(task: TaskState, *, wrote: bool) -> str:
    """The word for a task's phase; a standby that prints before it has its identity is `warming up`."""
    return "warming up" if wrote and task.phase is TaskPhase.WAITING else task.phase.value


def silent_for(task: TaskState, wrote: float | None, now: float) -> float | None:
    """Seconds since a running task last wrote anything, else since its start; None for one that does not run."""
    if task.phase is not TaskPhase.RUNNING:
        return None
    return max(now - max(wrote or 0.0, task.started or 0.0), 0.0)


def standbys(count: int, total: int) -> str:
    """`2 standbys (374.0 MB)`, for the next generation."""
    return f"{many(count, 'standby')} ({size(total)})" if count else "no standby"


def tasks(names: tuple[TaskId, ...]) -> str:
    """`worker:0, worker:1`; `998 tasks` where naming them would help nobody."""
    if len(names) > NAMED:
        return f"{len(names)} tasks ({names[0]} … {names[-1]})"
    return ", ".join(map(str, names))


def clock(time: float) -> str:
    """`07:33:11`, local."""
    return dt.datetime.fromtimestamp(time).astimezone().strftime("%H:%M:%S")


def stamp(time_ns: int) -> str:
    """ISO 8601 with milliseconds and the local offset, from Unix nanoseconds: `2026-11-30T07:33:11.042+01:00`."""
    whole = dt.datetime.fromtimestamp(time_ns // 1_000_000_000).astimezone()
    return whole.replace(microsecond=time_ns // 1_000 % 1_000_000).isoformat(timespec="milliseconds")


def duration(seconds: float) -> str:
    """`4.2 s`, `3 min 12 s`, `2 h 05 min`, `3 d 4 h`."""
    if seconds < _MINUTE:
        return f"{max(seconds, 0.0):.1f} s"
    whole = int(seconds)
    if whole < _HOUR:
        return f"{whole // _MINUTE} min {whole % _MINUTE:02} s"
    if whole < _DAY:
        return f"{whole // _HOUR} h {whole % _HOUR // _MINUTE:02} min"
    return f"{whole // _DAY} d {whole % _DAY // _HOUR} h"


def uptime(seconds: float) -> str:
    """A duration that changes once a second: `0:42`, `1:03:07`."""
    whole = max(int(seconds), 0)
    hours, rest = divmod(whole, _HOUR)
    text = f"{rest // _MINUTE:02}:{rest % _MINUTE:02}" if hours else f"{rest // _MINUTE}:{rest % _MINUTE:02}"
    return f"{hours}:{text}" if hours else text


def size(number: int) -> str:
    """`312 B`, `12.3 kB`, `4.1 GB`."""
    value = float(number)
    for unit in ("B", "kB", "MB", "GB"):
        if value < 1000:  # noqa: PLR2004 - SI
            return f"{value:.0f} B" if unit == "B" else f"{value:.1f} {unit}"
        value /= 1000
    return f"{value:.1f} TB"


def visible(line: str) -> str:
    """A line of output as it may stand beside others: what a terminal shows of it last, no escapes, no controls."""
    if line.isprintable():
        return line
    line = _ESCAPES.sub("", line.rstrip("\r"))
    return _CONTROLS.sub("", line.rpartition("\r")[2])
