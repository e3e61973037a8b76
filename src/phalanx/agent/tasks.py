"""This host's tasks: carries out the lead's orders, and tells what became of each process."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import Callable, Coroutine, Mapping, Sequence
from pathlib import Path
from typing import Any

from phalanx import events as ev
from phalanx.agent.children import Event, Exited, FailedToStart, Lost, Reaper, Started
from phalanx.agent.disk import Disk
from phalanx.agent.link import Link
from phalanx.agent.listening import Listeners
from phalanx.agent.logs import Echo, Logs
from phalanx.agent.outputs import find
from phalanx.agent.pins import Pins
from phalanx.agent.pool import Pool
from phalanx.agent.preflight.checks import Preflight
from phalanx.agent.prestart import Waiting, piped, refusal, ride_along
from phalanx.agent.progress import Progress
from phalanx.agent.running import Running
from phalanx.agent.sentry import LOOK as GLANCE
from phalanx.agent.sentry import Roused, Sentry, Spent
from phalanx.agent.watch import Watch
from phalanx.errors import PhalanxError
from phalanx.names import TaskId
from phalanx.protocol.messages import Order, unpack

#: How long the leader of a group has to listen before the others start all the same (facts §6).
HEAD_START = 0.3

#: Seconds between two looks at whether a former process is gone.
LOOK = 0.01


class Tasks:
    """Owns the tasks of one host. `obey` never blocks: what takes time goes on in the background."""

    def __init__(
        self,
        *,
        host: int,
        folder: Path,
        environ: Mapping[str, str],
        secrets: Sequence[bytes],
        reaper: Reaper,
        boot: str,
        pool: Callable[[Callable[[ev.Event], None]], Pool],
        ports_after: Callable[[int], tuple[int, ...]],
        lend: Callable[[int], None],
        preflight: Preflight,
        pins: Pins,
        cwd: str,
        echo: Echo | None = None,
    ) -> None:
        """`pool` makes the standbys of this host, told where to say what becomes of them.

        `boot`: the folder with the runtime's sitecustomize; empty where nothing of ours may be in the tasks.

        `ports_after` holds ports for the generation after the one it is given, and lets go of older ones; `lend` lets
        a program that is no server of TensorFlow's listen on one. `cwd`: where commands start that name no folder.
        `echo`: who else hears what they say.
        """
        self._ports_after, self._lend = ports_after, lend
        self._preflight, self._pins = preflight, pins
        self._logs = Logs(folder, host=host, secrets=secrets, say=self._say, echo=echo)
        self._host, self._environ = host, environ
        self._reaper, self._pool, self._boot = reaper, pool(self._say), boot
        self._progress = Progress(self._tell, self._say)
        self._running: dict[TaskId, Running] = {}
        self._by_child: dict[str, Running] = {}
        self._listeners = Listeners(self._listens)
        self._watch = Watch(self._tell)
        self._cwd = cwd
        self._background: set[asyncio.Task[None]] = set()
        self._link: Link | None = None

    def attach(self, link: Link) -> None:
        """Events go to `link` from now on, and the reaper's words come in."""
        self._link = link
        link.samples, link.parting = self._progress.samples, self._progress.parting
        link.measured = self._watch.measured
        self._reaper.attach(asyncio.get_running_loop(), self._on_child)
        self._spawn(self._guard(Sentry(self._reaper.pid)))

    async def _guard(self, sentry: Sentry) -> None:
        """Without the reaper no end of a task is heard of."""
        while not self._reaper.lost:
            await asyncio.sleep(GLANCE)
            match sentry.look():
                case Roused(message):
                    self._note(message)
                case Spent(reason):
                    self.give_up(time.time(), reason)
                    self._reaper.destroy()

    @property
    def disk(self) -> Disk:
        """Where all of this host waits for the run's folder."""
        return self._logs.disk

    def obey(self, order: Order) -> None:
        """Carry out one order of the lead."""
        match order.kind:
            case "prepare":
                self._prepare(order.placed(self._cwd))
            case "go":
                self._spawn(self._go(order))
            case "stacks":
                for running in self._of(order):
                    if running.pid:
                        self._spawn(self._stacks(running))
            case "outputs":
                self._spawn(self._outputs(order.outputs))
            case "last":
                self._pool.no_more()
            case "stop":
                self._preflight.end(keep=False)
                for running in self._of(order):
                    self._spawn(self._stop(running, order.grace))

    def _of(self, order: Order) -> list[Running]:
        """The tasks of its generation that an order names."""
        known = (self._running.get(task) for task in order.ids)
        return [running for running in known if running is not None and running.generation == order.generation]

    async def end_all(self, grace: float) -> None:
        """TERM, grace, KILL to everything; returns when it is over."""
        await asyncio.gather(*(self._stop(running, grace) for running in self._running.values()))

    def close(self) -> None:
        """Whatever is left ends at once with the reaper."""
        self._preflight.end(keep=False)
        self._pool.close()
        self._watch.close()
        self._pins.close()
        self._reaper.close()
        self._logs.close()

    # Starting ------------------------------------------------------------------------------------------------------

    def _prepare(self, order: Order) -> None:
        self._end_older(order.generation)
        if refused := self._pins.prepare(order.tasks, whole=not any(task.attempt > 1 for task in order.tasks)):
            self._note(refused)
        head, self._cwd = unpack(order.head), order.cwd
        self._watch.patience = order.patience
        for task in order.tasks:
            own = head if task.head is None else unpack(task.head)
            running = Running(task, order.generation, None if task.tail is None else own + task.tail)
            before = self._running.get(task.id)
            running.former = before.child if before is not None else None
            self._running[task.id] = running
            self._logs.furnish(task.id)
            waiting = self._pool.take(task.id, task.argv, task.env)
            if waiting is not None:
                running.standby, running.child, running.life = waiting.standby, waiting.child, waiting.life
                self._by_child[waiting.child.id] = running
                self._logs.capture(running, waiting.out, waiting.err)
                self._difference(running, waiting)
        self._said.prepared(order.generation, self._ports_after(order.generation))
        self._spawn(self._look(order))

    async def _look(self, order: Order) -> None:
        """The preflight, while the standbys import what they can."""
        checked = await self._preflight.look(order)
        if checked is not None:
            self._said.say(checked)

    def _end_older(self, generation: int) -> None:
        """Nothing of an earlier generation may be left when the next one starts: it would answer at old addresses."""
        for running in self._running.values():
            if running.generation < generation and running.child is not None:
                self._reaper.kill_tree(running.child)

    def _difference(self, running: Running, waiting: Waiting) -> None:
        """What the standby must still learn: variables that were not known, or are others now."""
        wanted = self._identity(running)
        running.news = {name: value for name, value in wanted.items() if waiting.env.get(name) != value}
        running.gone = tuple(name for name in waiting.env if name not in wanted)

    def _identity(self, running: Running) -> dict[str, str]:
        """The variables that make it this task: exactly those that `phalanx plan` lists."""
        identity = dict(running.task.env)
        if running.tf_config is not None:
            identity["TF_CONFIG"] = running.tf_config
        return identity

    async def _go(self, order: Order) -> None:
        self._preflight.end(keep=True)
        everybody = [running for running in self._running.values() if running.generation == order.generation]
        mine = self._of(order) if order.ids else everybody
        for running in mine:
            await self._former_is_gone(running)
        await self._logs.furnished()
        first = [running for running in mine if running.task.first]
        for running in first:
            self._start(running)
        for running in mine:
            if running not in first:
                self._spawn(self._start_after(running, first, order.grace))
        self._pool.follow(everybody)

    async def _former_is_gone(self, running: Running) -> None:
        """No process of the attempt before may be left: two at one address would both be believed."""
        if running.former is not None and not running.former.gone:
            self._reaper.kill_tree(running.former)
            while not running.former.gone:  # noqa: ASYNC110 - the reaper's word sets it, of any child
                await asyncio.sleep(LOOK)

    async def _start_after(self, running: Running, first: list[Running], wait: float) -> None:
        """Let the leader listen first: a worker that is up before it backs off for a whole second."""
        for leader in first:
            await self._head_start(leader)
        if wait:
            if running.standby is not None:
                await running.standby.wait_ready()
            await asyncio.sleep(wait)
        self._start(running)

    async def _head_start(self, leader: Running) -> None:
        if leader.standby is not None:
            await leader.standby.wait_ready()
        signs = [asyncio.ensure_future(sign.wait()) for sign in (leader.listens, leader.ended)]
        await asyncio.wait(signs, timeout=HEAD_START, return_when=asyncio.FIRST_COMPLETED)
        for sign in signs:
            sign.cancel()

    def _start(self, running: Running) -> None:
        if running.stopped:
            return
        try:
            self._start_now(running, time.time())
        except PhalanxError as wrong:
            running.ended.set()
            self._tell(running, ev.TaskNotStarted, time.time(), message=str(wrong))
        except OSError as wrong:
            self.give_up(time.time(), f"its agent cannot start {running.task.id}: {refusal(wrong)}")

    def _start_now(self, running: Running, now: float) -> None:
        if running.task.lent and running.task.port is not None:
            self._lend(running.task.port)
        if running.standby is not None and running.child is not None and running.child.alive:
            self._reaper.mark(running.child, self._identity(running))
            running.pid = running.child.pid
            self._pins.bind(running.pid, running.task)
            running.standby.go(running.news, unset=running.gone)
            self._is_running(running, now, standby=True)
            return
        self._exec(running)

    def _exec(self, running: Running) -> None:
        """A cold start: with the runtime where it can ride along, exactly as written where it cannot."""
        task = running.task
        environ = {**self._environ, **self._identity(running)}
        running.standby = None
        running.life, riding = ride_along(task.argv, environ, self._cwd, self._boot)
        files = running.life.fds if running.life is not None else {}
        name = f"{task.id}/g{running.generation}.a{task.attempt}"
        spec, out, err = piped(name, task.argv, {**environ, **riding}, self._cwd, files, cpus=self._pins.of(task))
        running.child = self._reaper.spawn(spec)
        if running.life is not None:
            running.life.started()
        os.close(spec.stdout)
        os.close(spec.stderr)
        self._by_child[spec.id] = running
        self._logs.capture(running, out, err)

    def _is_running(self, running: Running, when: float, *, standby: bool) -> None:
        running.started.set()
        self._tell(running, ev.TaskStarted, when, pid=running.pid, standby=standby)
        self._progress.follow(running)
        self._pins.follow(running, self._note)
        self._watch.add(running)
        self._listeners.add(running)

    def _listens(self, running: Running, port: int) -> None:
        running.listens.set()
        self._tell(running, ev.TaskListening, time.time(), port=port)

    async def _stacks(self, running: Running) -> None:
        self._watch.disturb(running)
        found = await self._logs.stacks(running, self._watch.heart(running))
        self._watch.disturb(running)
        if found is not None:
            self._tell(running, ev.StacksWritten, time.time(), path=found.path, at=found.at, waits=found.waits)

    async def _outputs(self, patterns: Sequence[str]) -> None:
        """What the job has left behind; a disk that hangs is not waited for by anybody."""
        found = await find(patterns, self._cwd)
        self._said.say(ev.OutputsFound(time=time.time(), host=self._host, outputs=found))

    # Ending --------------------------------------------------------------------------------------------------------

    async def _stop(self, running: Running, grace: float) -> None:
        if running.ended.is_set():
            return
        running.stopped = True
        if running.child is None or (running.standby is not None and not running.started.is_set()):
            self._never_ran(running)
            return
        self._reaper.signal(running.child, signal.SIGTERM if grace > 0 else signal.SIGKILL, whole_tree=True)
        try:
            async with asyncio.timeout(grace):
                await running.ended.wait()
        except TimeoutError:
            self._reaper.kill_tree(running.child)

    def _never_ran(self, running: Running) -> None:
        """It was told to end before it had begun."""
        running.ended.set()
        if running.standby is not None:
            running.standby.discard()
        self._tell(running, ev.TaskExited, time.time(), pid=0, stopped=True)

    def _on_child(self, event: Event) -> None:
        if isinstance(event, Lost):
            reason = "its reaper has died, and with it its tasks: nothing can be started or ended there any more"
            self.give_up(event.time, reason)
            return
        running = self._by_child.get(event.id)
        if running is None:
            self._pool.on_child(event)
        if running is None or running.ended.is_set():
            return
        match event:
            case Started() if running.standby is None:
                running.pid = event.pid
                self._is_running(running, event.time, standby=False)
            case Started() if running.started.is_set():  # a standby that had its identity before we knew its pid
                self._pins.bind(event.pid, running.task)
            case FailedToStart():
                running.ended.set()
                self._tell(running, ev.TaskNotStarted, time.time(), message=event.message)
            case Exited() if running.started.is_set():
                # Who had been told to end is settled here: an order that comes while we wait is no excuse.
                self._spawn(self._finish(running, event, stopped=running.stopped))

    async def _finish(self, running: Running, event: Exited, *, stopped: bool) -> None:
        """Its last words first, then its end: a report without the traceback would be half a report."""
        await self._logs.written(running)
        running.ended.set()
        if running.standby is not None:
            running.standby.discard()  # it has ended; this only closes what is left of its pipes
        self._progress.leave(running)
        oom = self._watch.out_of_memory(running, event.time)
        self._tell(
            running,
            ev.TaskExited,
            event.time,
            pid=event.pid,
            code=event.code,
            signal=event.signal,
            core=event.core,
            oom=oom and (event.signal or (event.code or 0) - 128) == signal.SIGKILL,
            stopped=stopped,
            **running.last_words(),
            **(self._logs.raised(running) if event.code else {}),
            inside=running.inside if event.code else None,
            cpu_seconds=round(event.user + event.system, 3),
            max_rss=event.max_rss,
        )

    # Small change --------------------------------------------------------------------------------------------------

    @property
    def _said(self) -> Link:
        if self._link is None:
            message = "attach() comes first"
            raise RuntimeError(message)
        return self._link

    def _say(self, event: ev.Event) -> None:
        self._said.say(event)

    def _note(self, message: str) -> None:
        self._say(ev.Noted(time=time.time(), message=message, host=self._host))

    def give_up(self, when: float, reason: str) -> None:
        """This host cannot go on: the lead hears why, and this agent leaves."""
        if self._said.give_up(reason):
            self._said.say(ev.HostLost(time=when, host=self._host, reason=reason))

    def _tell(self, running: Running, kind: Callable[..., ev.TaskEvent], when: float, **more: Any) -> None:
        """Say what happened to one attempt, with all that tells it from any other."""
        task = running.task
        about = {"task": task.id, "host": self._host, "generation": running.generation, "attempt": task.attempt}
        self._said.say(kind(time=when, **about, **more))

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.ensure_future(work)
        self._background.add(task)
        task.add_done_callback(self._background.discard)
