"""What a run means, from its state: result, cause, who was first, what became of each task, what to do next."""

from __future__ import annotations

import dataclasses
import signal
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from phalanx.decide.exits import telling_line, words_for
from phalanx.events import Resumed
from phalanx.names import TaskId, training_order
from phalanx.plan.plan import Plan
from phalanx.records.folder import LogFile, RunFolder
from phalanx.records.kept import KeptReport, kept
from phalanx.records.lastwords import last_output, last_words, last_written
from phalanx.records.lone import WARNING, lone
from phalanx.records.produced import OutputReport, produced, remedies, shortcomings
from phalanx.records.slowed import SlowReport, slowed
from phalanx.records.training import CurveReport, Samples, TrainingReport, curves, samples_of, training
from phalanx.redact import redact
from phalanx.states import PastFailure, RunPhase, RunState, steps_done
from phalanx.taskstate import TaskPhase, TaskState

#: Raised when a reader of `report.json` could misread it.
VERSION = 1

#: How many tasks are named by a warning each.
_WARNED = 6
_FALLEN = (TaskPhase.FAILED.value, TaskPhase.VICTIM.value, TaskPhase.LOST.value)


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class LogReport:
    """One log file: its path below the run's folder, and its size in bytes."""

    path: str
    bytes: int


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class HostReport:
    """One host. `lost` says why, where it was lost."""

    id: int
    name: str
    address: str
    cpus: int
    gpus: int
    memory: int
    joined: float
    lost: str
    #: Standbys that it kept last for a next generation, and the bytes that only they used.
    standbys: int = 0
    standby_bytes: int = 0


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class TaskReport:
    """One task of the newest generation. Times in Unix seconds, durations in seconds; None: it did not come to that."""

    task: str
    #: A `states.TaskPhase` value.
    state: str
    #: `culprit`, `victim`, or empty.
    part: str
    host: str
    address: str | None
    generation: int
    attempt: int
    pid: int | None
    started: float | None
    listening: float | None
    first_step: float | None
    #: Training steps of this attempt, as last told; 0 where its steps are not known.
    steps: int
    #: How it trained; None where nothing was measured.
    training: TrainingReport | None
    ended: float | None
    duration: float | None
    exit_code: int | None
    signal: str | None
    #: Why it could not be started.
    refused: str
    cpu_seconds: float | None
    max_rss: int | None
    #: The exception that ended its program, where in its own files, and the file that has all of it; or empty.
    raised: str
    raised_at: str
    error_file: str
    #: What it said last before it ended, on stderr where it used that; credentials taken out.
    last_lines: tuple[str, ...]
    #: The last line of its stdout: what a training prints at its end.
    last_output: str
    #: When it last wrote anything; None where it has not.
    wrote: float | None
    logs: tuple[LogReport, ...]

    @property
    def explained(self) -> Sequence[str]:
        """Its words on how it failed: the exception itself where it is known, else its last lines."""
        return self.raised.splitlines() or self.last_lines


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class ResumeReport:
    """Where the training went on, proved by the leader's first step."""

    #: The checkpoint that was read; empty: the program started at zero.
    path: str
    #: Training steps that it holds; None where another run wrote it.
    step: int | None
    #: Steps that had been done beyond it; None where nobody can tell.
    lost: int | None


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class PastReport:
    """A generation that failed and was followed by another, or attempts in it that were."""

    #: The generation.
    number: int
    #: Those that started again alone; empty: everybody, as the next generation.
    tasks: tuple[str, ...]
    bound: float
    ended: float
    culprit: str | None
    cause: str
    #: Why it was started again: `restart 1 of 3`, `preempted: restarted for free`.
    restart: str
    #: None where no step is known after it.
    resumed: ResumeReport | None


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Report:
    """All that is said of a run at its end, or so far. Everything in it is plain data."""

    run: str
    name: str
    #: A `states.RunPhase` value: `succeeded`, `failed`, `stopped`, `lost`; another one while it goes on.
    result: str
    #: What the launcher exits with; None while it goes on.
    exit_code: int | None
    cause: str
    #: user, platform, infrastructure or preemption; empty where nothing failed.
    kind: str
    culprit: str | None
    culprit_host: str | None
    victims: tuple[str, ...]
    strategy: str
    generation: int
    #: Training steps of the run so far; None where nobody can tell.
    step: int | None
    #: Where the first start went on; None where it read no checkpoint.
    began: ResumeReport | None
    #: What is left of a run that did not succeed; None while it goes on, and where nothing is known.
    kept: KeptReport | None
    #: What failed before and was started again, oldest first.
    past: tuple[PastReport, ...]
    hosts_wanted: int
    started: float
    ended: float | None
    duration: float | None
    folder: str
    hosts: tuple[HostReport, ...]
    tasks: tuple[TaskReport, ...]
    outputs: tuple[OutputReport, ...]
    slow: tuple[SlowReport, ...]
    #: Every attempt of the run over time.
    curves: tuple[CurveReport, ...]
    notes: tuple[str, ...]
    next_steps: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        """`report.json`: every field, `version` first."""
        return {"version": VERSION, **dataclasses.asdict(self)}


def build_report(state: RunState, plan: Plan | None, folder: RunFolder) -> Report:
    """What the events, the plan and the log files on this machine say. Reads the ends of logs, writes nothing."""
    culprit, samples = state.culprit, samples_of(folder)
    tasks = tuple(
        _task(state, task, folder, samples) for task in sorted(state.tasks.values(), key=lambda t: training_order(t.id))
    )
    run, left = state.run or folder.run, kept(state)
    outputs = produced(state, plan)
    short = shortcomings(state, outputs)
    fallen = [task for task in tasks if task.state in _FALLEN] if state.phase is RunPhase.SUCCEEDED else []
    return Report(
        run=run,
        name=state.name,
        result=state.phase.value,
        exit_code=state.end.exit_code if state.end else None,
        cause=redact(_cause(state)),
        kind=culprit.kind if culprit else "",
        culprit=str(culprit.task) if culprit and culprit.task else None,
        culprit_host=_host_name(state, culprit.host) if culprit and culprit.host is not None else None,
        victims=tuple(str(task) for task in culprit.victims) if culprit else (),
        strategy=state.strategy,
        generation=state.generation,
        step=steps_done(state),
        began=_proof(next((r for r in state.resumed if (r.generation, r.attempt) == (1, 1)), None)),
        kept=left,
        past=tuple(
            PastReport(
                number=past.number,
                tasks=tuple(str(task) for task in past.restart.tasks),
                bound=past.bound,
                ended=past.ended,
                culprit=str(past.culprit.task) if past.culprit and past.culprit.task else None,
                cause=redact(past.culprit.cause) if past.culprit else "",
                restart=past.restart.why,
                resumed=_resumed(state, past),
            )
            for past in state.past
        ),
        hosts_wanted=state.wanted_hosts,
        started=state.started,
        ended=state.ended,
        duration=_span(state.started or None, state.ended),
        folder=str(folder.path),
        hosts=tuple(
            HostReport(
                id=host.id,
                name=host.joined.name,
                address=host.joined.address,
                cpus=host.joined.cpus,
                gpus=host.joined.gpus,
                memory=host.joined.memory,
                joined=host.joined.time,
                lost=host.lost,
                standbys=host.standbys,
                standby_bytes=host.standby_bytes,
            )
            for host in sorted(state.hosts.values(), key=lambda host: host.id)
        ),
        tasks=tasks,
        outputs=outputs,
        slow=slowed(state),
        curves=curves(samples),
        notes=(
            *_warnings(state, fallen),
            *(f"{WARNING}{redact(one)}" for one in short),
            *(redact(note.message) for note in state.notes),
        ),
        next_steps=(*_next_steps(state, run, folder, fallen, left), *remedies(state, run, short)),
    )


def _resumed(state: RunState, past: PastFailure) -> ResumeReport | None:
    """The first proof after this failure, unless another failure came before it."""
    nexts = [other.ended for other in state.past if other.ended > past.ended]
    until = min(nexts, default=float("inf"))
    return _proof(next((r for r in state.resumed if past.ended <= r.time <= until), None))


def _proof(proof: Resumed | None) -> ResumeReport | None:
    return ResumeReport(path=proof.path, step=proof.step, lost=proof.lost) if proof else None


def _cause(state: RunState) -> str:
    if state.end is not None:
        return state.end.cause
    if state.phase is RunPhase.LOST:
        return "nobody wrote how it ended"
    return state.culprit.cause if state.culprit else ""


def _task(state: RunState, task: TaskState, folder: RunFolder, samples: Samples) -> TaskReport:
    logs = [log for log in folder.log_files(task.id) if log.generation == max(task.generation, 1)]
    said = last_words(
        task.exit.last_lines if task.exit else (), logs, killed=task.exit is not None and task.exit.signal is not None
    )
    return TaskReport(
        task=str(task.id),
        state=task.phase.value,
        part=_part(state, task.id),
        host=_host_name(state, task.host) if task.host is not None else "",
        address=task.address,
        generation=task.generation,
        attempt=task.attempt,
        pid=task.pid,
        started=task.started,
        listening=task.listening,
        first_step=task.first_step,
        steps=task.step,
        training=training(samples.get((task.id, task.generation, task.attempt), ()), over=task.phase.over),
        ended=task.ended,
        duration=_span(task.started, task.ended),
        exit_code=task.exit.code if task.exit else None,
        signal=signal_name(task.exit.signal) if task.exit and task.exit.signal is not None else None,
        refused=redact(task.refused),
        cpu_seconds=task.exit.cpu_seconds if task.exit else None,
        max_rss=task.exit.max_rss if task.exit else None,
        raised=redact(task.exit.raised) if task.exit else "",
        raised_at=task.exit.raised_at if task.exit else "",
        error_file=task.exit.error_file if task.exit else "",
        last_lines=tuple(redact(line) for line in said),
        last_output=redact(last_output(logs)),
        wrote=last_written(logs),
        logs=tuple(_log(log, folder) for log in logs),
    )


def _part(state: RunState, task: TaskId) -> str:
    if state.culprit is None:
        return ""
    if state.culprit.task == task:
        return "culprit"
    return "victim" if task in state.culprit.victims else ""


def _host_name(state: RunState, host: int) -> str:
    known = state.hosts.get(host)
    return known.joined.name if known else f"host {host}"


def _span(start: float | None, end: float | None) -> float | None:
    """Never below zero: a host's clock may have been set between the two."""
    return None if start is None or end is None else round(max(end - start, 0.0), 3)


def signal_name(number: int) -> str:
    """`SIGKILL`; `signal 40` for one without a name."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _log(log: LogFile, folder: RunFolder) -> LogReport:
    return LogReport(path=str(log.path.relative_to(folder.path)), bytes=_size(log.path))


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def _warnings(state: RunState, fallen: list[TaskReport]) -> list[str]:
    """A success in which tasks fell says so, for their part of the work may be missing."""
    found = [f"{WARNING}{task.task} {_fall(state.tasks[TaskId.parse(task.task)], task)}" for task in fallen[:_WARNED]]
    rest = len(fallen) - len(found)
    return [*found, *([f"{WARNING}{rest} more tasks fell"] if rest else []), *lone(state)]


def _fall(task: TaskState, told: TaskReport) -> str:
    if task.exit is None:
        return f"could not start: {told.refused}" if told.refused else f"was lost with its host {told.host}"
    last = telling_line(told.explained)
    return f"{words_for(task.exit)} ({last})" if last and task.exit.signal is None else words_for(task.exit)


def _next_steps(
    state: RunState, run: str, folder: RunFolder, fallen: list[TaskReport], left: KeptReport | None
) -> tuple[str, ...]:
    """Commands first where there is one; nothing after a whole success."""
    steps: list[str] = []
    culprit = state.culprit
    match state.phase:
        case RunPhase.FAILED:
            if culprit and culprit.hint:
                steps.append(culprit.hint)
            task = state.blamed
            if task is not None and task.started:
                steps += [f"phalanx logs {run} {task.id}", f"phalanx logs {run} --merged"]
            elif culprit and culprit.host is not None and culprit.task is None and (state.cleared or not state.checked):
                steps += [f"phalanx logs {run} --merged", f"the agent's own words: {folder.agent_log(culprit.host)}"]
            elif state.generation == 0:
                steps.append(f"the agents' own words: {folder.agents}/*.log")
        case RunPhase.STOPPED:
            steps.append(f"phalanx logs {run}")
        case RunPhase.LOST:
            steps += [
                f"phalanx logs {run} --merged",
                f"the agents' own words: {folder.agents}/*.log",
                "start it again: a host that loses its lead ends its tasks within seconds",
            ]
        case RunPhase.SUCCEEDED:
            steps += [f"phalanx logs {run} {task.task}" for task in fallen[:_WARNED]]
        case _:
            steps += [f"phalanx attach {run}", f"phalanx stop {run}"]
    if left is not None and left.path:
        steps.append("start it again with the same command: it goes on from the checkpoint, if its program reads it")
    return tuple(dict.fromkeys(steps))
