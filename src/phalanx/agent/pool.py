"""Standbys for the next generation: started when the present one has come up, within bounds, given to whom they fit."""

from __future__ import annotations

import asyncio
import collections
import contextlib
import dataclasses
import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from phalanx import events as ev
from phalanx.agent import tree
from phalanx.agent.children import Event, Exited, FailedToStart, Started
from phalanx.agent.machine import Machine
from phalanx.agent.prestart import Waiting, refusal
from phalanx.agent.running import Running
from phalanx.agent.standby import interpreter_line
from phalanx.errors import PhalanxError
from phalanx.names import TaskId
from phalanx.runtime.boot.phalanx_standby import may_come_late

#: Seconds that a new generation has for itself: until its tasks listen, at most the first, and then the second.
LISTEN, CALM = 60.0, 5.0
#: Seconds for which one standby may import.
IMPORT = 300.0
#: Seconds between two looks at the memory while standbys wait.
LOOK = 5.0
#: How many standbys of a generation may fail, and the seconds before the next try, doubled each time.
FAILURES, BACK_OFF = 3, 2.0
#: The part of the memory that stays free whatever happens, and what one more standby is expected to need: TensorFlow
#: takes 186 MB that are nobody else's (facts §7).
FLOOR, NEED = 0.2, 200_000_000


class Start(Protocol):
    """Starts one standby, as `prestart.stand_by` does."""

    def __call__(
        self, *, name: str, argv: tuple[str, ...], env: Mapping[str, str], imports: Sequence[str]
    ) -> Waiting | None:
        """None where this command cannot stand by; raises PhalanxError or OSError where nothing can be started."""
        ...


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Bounds:
    """How many standbys a host may keep, and what the roles need."""

    #: None: one for each task that can stand by.
    count: int | None = None
    #: By role: the imports its script begins with, and the memory that one of its tasks was promised, in bytes.
    imports: Mapping[str, Sequence[str]] = dataclasses.field(default_factory=dict)
    memory: Mapping[str, int] = dataclasses.field(default_factory=dict)

    @classmethod
    def of(cls, config: Mapping[str, Any]) -> Bounds:
        """As the engine wrote it for this agent."""
        return cls(count=config["standbys"], imports=config["imports"], memory=config["memory"])


@dataclasses.dataclass(frozen=True, slots=True)
class _Shape:
    """What a standby must have in common with its task: all that its imports may have read."""

    argv: tuple[str, ...]
    env: tuple[tuple[str, str], ...]


class Pool:
    """The interpreters of one host that wait for an identity. Belongs to one event loop."""

    def __init__(
        self,
        waiting: Iterable[Waiting],
        *,
        host: int,
        cwd: str,
        bounds: Bounds,
        start: Start,
        kill: Callable[[Waiting], None],
        say: Callable[[ev.Event], None],
        machine: Machine | None = None,
    ) -> None:
        """`waiting`: those of the first generation; `cwd`: where commands start, and relative paths begin.

        `kill` ends a standby that was not taken, `say` tells the lead.
        """
        self._cwd = cwd
        self._host, self._bounds, self._start, self._kill, self._say = host, bounds, start, kill, say
        self._machine = machine or Machine()
        self._waiting = {waiting.child.id: waiting for waiting in waiting}
        self._scripts = {name: _written(each.argv, cwd) for name, each in self._waiting.items()}
        self._seats: dict[str, _Shape] = {}  # those started for the next generation, by child
        self._started = 0
        self._failed: list[str] = []  # why standbys of this generation have ended
        self._not_before = 0.0  # the end of the pause after a failure
        self._told = 0
        self._news = asyncio.Event()
        self._tending: asyncio.Task[None] | None = None

    # For the generation that starts ------------------------------------------------------------------------------

    def take(self, task: TaskId, argv: tuple[str, ...], env: Mapping[str, str]) -> Waiting | None:
        """A standby for this command, the task's own before another's; None where there is none. It is the caller's."""
        self._rest()
        wanted = _shape(argv, env)
        fit = [each for each in self._waiting.values() if each.child.alive and _shape(each.argv, each.env) == wanted]
        fit = [each for each in fit if self._scripts[each.child.id] == _written(each.argv, self._cwd)]
        fit = [each for each in fit if not each.child.pid or tree.state(each.child.pid) not in ("T", "t")]
        if not fit:
            return None
        own = str(task)
        best = min(fit, key=lambda each: (each.env.get("PHALANX_TASK") != own, not each.standby.ready))
        self._forget(best)
        if best.child.pid:
            self._machine.step_up(best.child.pid)
        return best

    def follow(self, tasks: Sequence[Running]) -> None:
        """These tasks have been told to go: once they are up, keep standbys for their next generation."""
        self._rest()
        self._failed, self._told, self._not_before = [], 0, 0.0
        for unwanted in [each for name, each in self._waiting.items() if name not in self._seats]:
            self._drop(unwanted)  # of the first generation, which turned out otherwise
        if self._bounds.count != 0 and tasks:
            self._tending = asyncio.ensure_future(self._tend(tasks))

    def no_more(self) -> None:
        """No other generation follows: every standby goes, and the lead hears it."""
        self.close()
        self._tell()

    def close(self) -> None:
        """Every standby goes."""
        self._rest()
        self._discard()

    def on_child(self, event: Event) -> None:
        """What the reaper says of a process that is no task."""
        waiting = self._waiting.get(getattr(event, "id", ""))
        if waiting is None:
            return
        match event:
            case Started() if event.id in self._seats:
                self._machine.step_back(event.pid)
            case Exited() | FailedToStart():
                self._forget(waiting)
                waiting.discard()
                self._fail(_end(event))

    # For the next one --------------------------------------------------------------------------------------------

    async def _tend(self, tasks: Sequence[Running]) -> None:
        await _come_up(tasks)
        wanted = self._wanted(tasks)
        while wanted and not all(task.ended.is_set() for task in tasks):
            if self._short(tasks):
                return
            self._drop_surplus(wanted)
            missing = list((wanted - collections.Counter(self._seats.values())).elements())
            pause = self._not_before - asyncio.get_running_loop().time()
            if missing and pause <= 0 and self._has_room(tasks):
                if not await self._one_more(missing[0], tasks):
                    del wanted[missing[0]]
            else:
                self._tell()
                self._news.clear()
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(min(LOOK, pause) if missing and pause > 0 else LOOK):
                        await self._news.wait()
            if len(self._failed) >= FAILURES:
                self._tell()
                self._note(f"no more standbys for the next generation: {len(self._failed)} have {self._failed[-1]}")
                return

    def _wanted(self, tasks: Sequence[Running]) -> collections.Counter[_Shape]:
        """One for each task, in their order, as far as the number goes."""
        shapes = [_shape(each.task.argv, each.task.env) for each in tasks if each.task.again]
        return collections.Counter(shapes[: self._bounds.count])

    def _drop_surplus(self, wanted: collections.Counter[_Shape]) -> None:
        """Fewer tasks than before, or others: what is left of an earlier generation."""
        surplus = collections.Counter(self._seats.values()) - wanted
        for name, shape in list(self._seats.items()):
            if surplus[shape] > 0:
                surplus[shape] -= 1
                self._drop(self._waiting[name])

    async def _one_more(self, shape: _Shape, tasks: Sequence[Running]) -> bool:
        """Start one and wait until it is ready: one at a time, for training needs the cores.

        False where that command cannot stand by.
        """
        model = next(each.task for each in tasks if _shape(each.task.argv, each.task.env) == shape)
        self._started += 1
        env = {name: value for name, value in model.env.items() if not _is_own(name)}
        imports = self._bounds.imports.get(model.id.type, ())
        try:
            waiting = self._start(name=f"standby/{self._started}", argv=model.argv, env=env, imports=imports)
        except (OSError, PhalanxError) as wrong:
            self._fail(f"not been started: {refusal(wrong) if isinstance(wrong, OSError) else wrong}")
        else:
            if waiting is None:
                return False
            self._waiting[waiting.child.id] = waiting
            self._scripts[waiting.child.id] = _written(model.argv, self._cwd)
            self._seats[waiting.child.id] = shape
            await self._until_ready(waiting)
        return True

    async def _until_ready(self, waiting: Waiting) -> None:
        try:
            async with asyncio.timeout(IMPORT):
                ready = await waiting.standby.wait_ready()
        except TimeoutError:
            self._fail(f"not been ready within {IMPORT:g} s")
            self._drop(waiting)
            return
        if ready:
            self._machine.step_up(waiting.child.pid)
        elif waiting.child.id in self._waiting:  # its end is on its way
            self._fail("ended while they imported")
            self._drop(waiting)

    # Memory ------------------------------------------------------------------------------------------------------

    def _free(self, tasks: Sequence[Running]) -> float:
        """The part of the memory that is left once every task has grown to what it was promised."""
        memory = self._machine.memory()
        owed = 0
        for each in tasks:
            promised = self._bounds.memory.get(each.task.id.type, 0)
            if promised and not each.ended.is_set():
                owed += max(promised - self._machine.resident(each.pid), 0)
        return (memory.available - owed) / memory.total if memory.total else 0.0

    def _has_room(self, tasks: Sequence[Running]) -> bool:
        total = self._machine.memory().total
        return total > 0 and self._free(tasks) >= FLOOR + NEED / total

    def _short(self, tasks: Sequence[Running]) -> bool:
        """Whether the memory is needed by others; then what waits goes at once, and nothing comes back."""
        if not self._seats or self._free(tasks) >= FLOOR:
            return False
        self._discard()
        self._tell()
        self._note(f"its standbys were ended: less than {FLOOR:.0%} of the memory was free")
        return True

    # Small change ------------------------------------------------------------------------------------------------

    def _tell(self) -> None:
        ready = [each.child.pid for name, each in self._waiting.items() if name in self._seats and each.standby.ready]
        if len(ready) != self._told:
            self._told = len(ready)
            used = sum(self._machine.unique(pid) for pid in ready)
            self._say(ev.StandbysReady(time=time.time(), host=self._host, count=len(ready), bytes=used))

    def _note(self, message: str) -> None:
        self._say(ev.Noted(time=time.time(), message=message, host=self._host))

    def _fail(self, why: str) -> None:
        """One more has failed: counted, and followed by a pause."""
        self._failed.append(why)
        self._not_before = asyncio.get_running_loop().time() + BACK_OFF * 2 ** (len(self._failed) - 1)
        self._news.set()

    def _rest(self) -> None:
        if self._tending is not None:
            self._tending.cancel()
            self._tending = None

    def _forget(self, waiting: Waiting) -> None:
        for known in (self._waiting, self._scripts, self._seats):
            known.pop(waiting.child.id, None)

    def _drop(self, waiting: Waiting) -> None:
        self._forget(waiting)
        waiting.discard()
        self._kill(waiting)

    def _discard(self) -> None:
        for waiting in list(self._waiting.values()):
            self._drop(waiting)


async def _come_up(tasks: Sequence[Running]) -> None:
    """Until nothing competes with their start any more: they listen, or have had the time for it; and a while on."""
    signs = [
        asyncio.ensure_future(sign.wait())
        for each in tasks
        for sign in (each.listens if each.task.port is not None and not each.task.lent else each.started,)
    ]
    try:
        await asyncio.wait(signs, timeout=LISTEN)
    finally:
        for sign in signs:
            sign.cancel()
    await asyncio.sleep(CALM)


def _shape(argv: tuple[str, ...], env: Mapping[str, str]) -> _Shape:
    fixed = ((name, value) for name, value in env.items() if not may_come_late(os.fsencode(name)))
    return _Shape(argv, tuple(sorted(fixed)))


def _is_own(name: str) -> bool:
    """Whether it differs from task to task: the standby waits where somebody asks for it."""
    return name.startswith("PHALANX_") and name != "PHALANX_RUN"


def _written(argv: tuple[str, ...], cwd: str) -> int:
    """When its script was last written, 0 where there is none: what was imported for another text is no use."""
    line = interpreter_line(argv)
    if line is None or line.kind != "script":
        return 0
    try:
        return Path(cwd, line.target).stat().st_mtime_ns
    except OSError:
        return 0


def _end(event: Exited | FailedToStart) -> str:
    if isinstance(event, FailedToStart):
        return f"not been started: {event.message}"
    return f"ended with code {event.code}" if event.signal is None else f"been killed by signal {event.signal}"
