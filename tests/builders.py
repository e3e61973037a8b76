"""Made-up histories of a run, told in one chain: `history().joined().bound().started().exited("worker:0")`."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Self

from phalanx import events as ev
from phalanx.names import TaskId
from phalanx.records.folder import RunFolder
from phalanx.states import RunState, fold_all

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

#: When every history begins: 2026-11-30 07:00:00 UTC, in Unix seconds.
DAWN = 1_796_022_000.0


class History:
    """Events of one run in order. Each method adds one at the current time and returns the history."""

    def __init__(
        self, *tasks: str, run: str, hosts: int, strategy: str, must_listen: bool = False, **more: Any
    ) -> None:
        """`more`: fields of RunStarted."""
        self.run = run
        self.tasks = tuple(TaskId.parse(task) for task in tasks)
        self.now = DAWN
        self.generation = 0
        self.epoch = 1
        self.places: dict[TaskId, int] = {}
        self.attempts: dict[TaskId, int] = {}
        self.records: list[ev.Record] = []
        leader = next((task for task in self.tasks if task.type == "chief"), TaskId("worker", 0))
        self.say(
            ev.RunStarted(
                time=self.now,
                run=run,
                name=run.rsplit("-", 2)[0],
                tasks=self.tasks,
                strategy=strategy,
                hosts=hosts,
                leader=leader if leader in self.tasks else None,
                must_listen=must_listen,
                **more,
            )
        )

    # Reading it ------------------------------------------------------------------------------------------------------

    @property
    def events(self) -> list[ev.Event]:
        return [record.event for record in self.records]

    @property
    def state(self) -> RunState:
        return fold_all(self.records)

    @property
    def text(self) -> str:
        """As `events.jsonl` holds it."""
        return "".join(json.dumps(record.to_json(), separators=(",", ":")) + "\n" for record in self.records)

    def write(self, runs: Path) -> RunFolder:
        """The run's folder with these events in it."""
        folder = RunFolder(runs / self.run)
        folder.logs.mkdir(parents=True, exist_ok=True)
        folder.job.touch()
        folder.events.write_text(self.text)
        return folder

    # Telling it ------------------------------------------------------------------------------------------------------

    def at(self, seconds: float) -> Self:
        """The next events happen that long after the beginning."""
        self.now = DAWN + seconds
        return self

    def say(self, event: ev.Event) -> Self:
        self.records.append(ev.Record(seq=len(self.records) + 1, epoch=self.epoch, event=event))
        return self

    def joined(self, host: int = 0, name: str = "", *, cpus: int = 8, gpus: int = 0) -> Self:
        return self.say(
            ev.HostJoined(
                time=self.now,
                host=host,
                name=name or f"n{host}",
                address=f"10.0.0.{host + 1}",
                cpus=cpus,
                gpus=gpus,
                memory=16 << 30,
                agent_pid=100 + host,
            )
        )

    def lost(self, host: int = 0, reason: str = "its agent no longer answers") -> Self:
        return self.say(ev.HostLost(time=self.now, host=host, reason=reason))

    def left(self, host: int = 0) -> Self:
        return self.say(ev.HostLeft(time=self.now, host=host))

    def bound(self, hosts: int | None = None, *, port: int = 22100) -> Self:
        """The next generation; tasks go round the hosts (those that have joined)."""
        self.generation += 1
        hosts = hosts or max(sum(isinstance(event, ev.HostJoined) for event in self.events), 1)
        self.places = {task: number % hosts for number, task in enumerate(self.tasks)}
        self.attempts = dict.fromkeys(self.tasks, 1)
        places = tuple(
            ev.TaskPlace(task=task, host=host, address=f"10.0.0.{host + 1}:{port + number}", rank=number)
            for number, (task, host) in enumerate(self.places.items())
        )
        return self.say(ev.GenerationBound(time=self.now, generation=self.generation, places=places, cluster="c" * 64))

    def again(self, task: str) -> Self:
        """The task's next events are of its next attempt."""
        self.attempts[TaskId.parse(task)] += 1
        return self

    def started(self, *tasks: str, standby: bool = False) -> Self:
        """These, or every task."""
        for task in self._these(tasks):
            self.say(ev.TaskStarted(**self._about(task), pid=1000 + task.index, standby=standby))
        return self

    def listening(self, *tasks: str) -> Self:
        for task in self._these(tasks):
            self.say(ev.TaskListening(**self._about(task), port=22100 + task.index))
        return self

    def refused(self, task: str, message: str = "no such program: pyhton") -> Self:
        return self.say(ev.TaskNotStarted(**self._about(TaskId.parse(task)), message=message))

    def exited(
        self,
        *tasks: str,
        code: int | None = 0,
        signal: int | None = None,
        said: Sequence[str] = (),
        stopped: bool = False,
        core: bool = False,
    ) -> Self:
        """With a code, or by a signal; `said` are its last lines."""
        for task in self._these(tasks):
            self.say(
                ev.TaskExited(
                    **self._about(task),
                    pid=1000 + task.index,
                    code=None if signal else code,
                    signal=signal,
                    core=core,
                    stopped=stopped,
                    last_lines=tuple(said),
                    cpu_seconds=1.5,
                    max_rss=400 << 20,
                )
            )
        return self

    def stop(self, by: str = "somebody", *, hard: bool = False) -> Self:
        return self.say(ev.StopRequested(time=self.now, by=by, hard=hard))

    def ordered(self, *tasks: str, grace: float = 10.0, reason: str = "another task has failed") -> Self:
        ids = tuple(self._these(tasks))
        return self.say(
            ev.StopOrdered(time=self.now, generation=self.generation, tasks=ids, grace=grace, reason=reason)
        )

    def restarted(self, *tasks: str, why: str = "restart 1 of 3", wait: float = 0.0, **more: Any) -> Self:
        """The generation is over, and the next one is due; or these tasks' next attempts are."""
        names = tuple(TaskId.parse(task) for task in tasks)
        for task in tasks:
            self.again(task)
        at = self.now + wait
        return self.say(
            ev.RestartOrdered(time=self.now, generation=self.generation, at=at, why=why, tasks=names, **more)
        )

    def culprit(
        self,
        task: str | None,
        cause: str,
        *victims: str,
        host: int | None = None,
        kind: str = "user",
        hint: str = "",
        sign: str = "",
    ) -> Self:
        name = TaskId.parse(task) if task else None
        return self.say(
            ev.CulpritNamed(
                time=self.now,
                generation=self.generation,
                task=name,
                host=self.places[name] if name else host,
                kind=kind,
                cause=cause,
                victims=tuple(TaskId.parse(victim) for victim in victims),
                hint=hint,
                sign=sign,
            )
        )

    def succeeded(self, task: str = "worker:0") -> Self:
        return self.say(ev.LeaderSucceeded(time=self.now, generation=self.generation, task=TaskId.parse(task)))

    def lives(self, kind: type[ev.TaskEvent], task: str, **more: object) -> Self:
        """A task's own event: a step, a checkpoint, a stall."""
        return self.say(kind(**self._about(TaskId.parse(task)), **more))

    def noted(self, message: str) -> Self:
        return self.say(ev.Noted(time=self.now, message=message))

    def ended(self, outcome: str, code: int, cause: str) -> Self:
        return self.say(ev.RunEnded(time=self.now, outcome=outcome, exit_code=code, cause=cause))

    # ------------------------------------------------------------------------------------------------------------------

    def _these(self, tasks: Sequence[str]) -> list[TaskId]:
        return [TaskId.parse(task) for task in tasks] or list(self.tasks)

    def _about(self, task: TaskId) -> dict[str, object]:
        return {
            "time": self.now,
            "task": task,
            "host": self.places.get(task, 0),
            "generation": self.generation,
            "attempt": self.attempts.get(task, 1),
        }


def history(
    *tasks: str,
    workers: int = 2,
    run: str = "digits-1130-070000",
    hosts: int = 1,
    strategy: str = "mwms",
    must_listen: bool = False,
    **more: Any,
) -> History:
    """A run that has just begun: of these tasks, or of that many workers."""
    names = tasks or tuple(f"worker:{index}" for index in range(workers))
    return History(*names, run=run, hosts=hosts, strategy=strategy, must_listen=must_listen, **more)


def running(workers: int = 2, *, hosts: int = 1, run: str = "digits-1130-070000") -> History:
    """A run in which every task has started and listens, two seconds after its beginning."""
    told = history(workers=workers, hosts=hosts, run=run).at(0.5)
    for host in range(hosts):
        told.joined(host)
    return told.at(1.0).bound().at(1.5).started().at(2.0).listening()


def killed(run: str = "digits-1130-070000") -> History:
    """Worker 1 of two is killed from outside, worker 0 follows: the failure that everything is measured by."""
    return (
        running(run=run)
        .at(7.25)
        .exited("worker:1", signal=9)
        .ordered("worker:0", grace=0.5)
        .at(7.5)
        .exited("worker:0", code=1, said=("Collective ops is aborted by: peer down", "Aborted"), stopped=True)
        .culprit(
            "worker:1",
            "worker:1 was killed by SIGKILL (killed from outside) 5.8 s after its start",
            "worker:0",
            kind="infrastructure",
            hint=f"phalanx logs {run} worker:1",
        )
        .ended("failed", 1, "worker:1 was killed by SIGKILL 5.8 s after its start")
    )
