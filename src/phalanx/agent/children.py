"""The agent's hold on its tasks' processes: has the reaper start, signal and end them, and tells what came of them."""

from __future__ import annotations

import dataclasses
import os
import select
import signal
import socket
import struct
import sys
import time
import traceback
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING

from phalanx.agent import reaper as _reaper
from phalanx.agent import tree
from phalanx.agent.channel import Channel, Message
from phalanx.errors import PlaceError

if TYPE_CHECKING:
    import asyncio

#: Seconds the reaper may take to accept a request, and to leave when told to.
_PATIENCE = 5.0
#: How often what a dead reaper has left is looked for, each time after killing what was found.
_SWEEPS = 50


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class ChildSpec:
    """One process to start.

    `stdout`, `stderr` and the values of `fds` (number in the child → open file here) are lent: close them after
    `spawn` when they are no longer wanted here. The child gets these files and no other, /dev/null as stdin, a session
    of its own, default signals, and this process's umask and limits.
    """

    #: Unique among the children that are not gone yet.
    id: str
    #: A name without `/` is looked up on the PATH in `env`; a relative path starts at `cwd`.
    argv: tuple[str, ...]
    #: The whole environment. PHALANX_RUN and PHALANX_TASK in it mark the child's processes as its own.
    env: Mapping[str, str]
    cwd: str
    stdout: int
    stderr: int
    fds: Mapping[int, int] = dataclasses.field(default_factory=dict)
    #: The cores it may use; all of the agent's where empty.
    cpus: tuple[int, ...] = ()
    #: −1000 to 1000: how readily the kernel ends it when memory is short. Below the agent's own only for root.
    oom_score_adj: int | None = None
    #: Seconds between TERM and KILL for what the main process leaves behind.
    leftover_grace: float = 1.0


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Started:
    """The program runs. `time` (Unix, seconds) is that of its fork."""

    id: str
    pid: int
    time: float


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class FailedToStart:
    """There is no such process, and nothing else comes of this child.

    `path` is what was wrong: the folder to run in, the program, or its interpreter; empty where it was none of them.
    """

    id: str
    errno: int
    path: str
    message: str


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Exited:
    """The main process ended at `time` (Unix, seconds): with a code, or by a signal (then `code` is None)."""

    id: str
    pid: int
    time: float
    code: int | None
    signal: int | None
    core: bool
    #: CPU seconds, of the process and the children it waited for.
    user: float
    system: float
    #: Bytes, at its largest.
    max_rss: int


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Gone:
    """No process of this child is left. Always the last word about it, after Exited."""

    id: str
    time: float


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Lost:
    """The reaper died: this host can start nothing more, and nothing else comes.

    The children named were not gone yet. Their main processes died with the reaper, how is unknown; what could be
    recognised as theirs has been killed.
    """

    children: tuple[str, ...]
    time: float


Event = Started | FailedToStart | Exited | Gone | Lost

_EVENTS: dict[str, type[Started | FailedToStart | Exited | Gone]] = {
    "started": Started,
    "failed": FailedToStart,
    "exited": Exited,
    "gone": Gone,
}


class Child:
    """One process that was asked for, as far as its events have been read."""

    __slots__ = ("alive", "gone", "id", "marker", "pid")

    def __init__(self, name: str, marker: Mapping[str, str]) -> None:
        """Only `Reaper.spawn` makes one."""
        self.id = name
        self.marker = marker
        #: 0 until it has started.
        self.pid = 0
        #: It may still run: neither Exited nor FailedToStart has been read.
        self.alive = True
        self.gone = False


def fork_reaper() -> Reaper:
    """Fork this host's reaper. To be called first of all: before any thread, and before asyncio is imported."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
    sys.stdout.flush()
    sys.stderr.flush()
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            ours.close()
            _reaper.run(theirs)
            code = 0
        except BaseException:  # noqa: BLE001 - this is a second copy of the agent: nothing may return into its code
            traceback.print_exc()
        finally:
            os._exit(code)
    theirs.close()
    ours.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("ll", int(_PATIENCE), 0))
    return Reaper(pid, Channel(ours))


class Reaper:
    """The agent's end of the reaper. Requests go out at once, with or without an event loop; answers come as events.

    Requests about a child that has ended, or after the reaper was lost, have no effect and are no error.
    """

    def __init__(self, pid: int, channel: Channel) -> None:
        """Made by `fork_reaper`."""
        self.pid = pid
        self.lost = False
        self._channel = channel
        self._children: dict[str, Child] = {}
        self._loop: asyncio.AbstractEventLoop | None = None
        self._closed = False

    def spawn(self, spec: ChildSpec) -> Child:
        """Have a process started; Started or FailedToStart says how that went.

        Raises PlaceError where there is no reaper any more, ValueError for an id in use or a spec that cannot be.
        """
        _check(spec, self._children)
        files = {**spec.fds, 1: spec.stdout, 2: spec.stderr}
        marker = tree.marker_of(spec.env)
        request = {
            "do": "spawn",
            "id": spec.id,
            "argv": spec.argv,
            "env": dict(spec.env),
            "cwd": os.path.abspath(spec.cwd),  # noqa: PTH100 - this module does without pathlib, for a quick start
            "numbers": tuple(files),
            "cpus": spec.cpus,
            "oom_score_adj": spec.oom_score_adj,
            "leftover_grace": spec.leftover_grace,
            "marker": marker,
        }
        if not self._send(request, tuple(files.values())):
            raise PlaceError(
                f"{spec.id} cannot be started: this host's reaper (pid {self.pid}) is gone or does not answer",
                hint="see whether the kernel ended it for want of memory (dmesg), then start the run again",
            )
        child = Child(spec.id, marker)
        self._children[spec.id] = child
        return child

    def signal(self, child: Child, number: int, *, whole_tree: bool) -> None:
        """Signal its process group; with `whole_tree` every process that belongs to it.

        Those are its descendants, whoever is in its session, and daemons that carry its PHALANX_RUN and PHALANX_TASK
        or hold its stdout or stderr.
        """
        if not child.gone:
            self._send({"do": "signal", "id": child.id, "signal": int(number), "whole_tree": whole_tree})

    def kill_tree(self, child: Child) -> None:
        """SIGKILL every process that belongs to it, again and again until none is left; Gone says when."""
        if not child.gone:
            self._send({"do": "kill", "id": child.id})

    def mark(self, child: Child, env: Mapping[str, str]) -> None:
        """Tell which task a standby has become: its daemons will carry these PHALANX_ variables."""
        child.marker = tree.marker_of(env)
        if not child.gone:
            self._send({"do": "mark", "id": child.id, "marker": child.marker})

    def attach(self, loop: asyncio.AbstractEventLoop, on_event: Callable[[Event], None]) -> None:
        """From now on each event, those that wait already first, is given to `on_event`, in order."""
        if self.lost or self._closed:
            return
        self._loop = loop

        def ready() -> None:
            for event in self._read():
                loop.call_soon(on_event, event)  # one that raises must not swallow the next

        loop.add_reader(self._channel.fileno(), ready)

    def poll(self, timeout: float) -> list[Event]:
        """Without an event loop: what has come, waiting up to `timeout` seconds where nothing has."""
        if self.lost or self._closed:
            return []
        select.select([self._channel.fileno()], [], [], timeout)
        return self._read()

    def destroy(self) -> None:
        """End a reaper that is of no use any more, and its children with it; Lost says so, where events are read."""
        if not self.lost and not self._closed:
            tree.send(self.pid, signal.SIGKILL)

    def close(self) -> None:
        """Have the reaper kill everything and leave; returns when it has, at most 5 s later. Idempotent.

        One that is stopped is continued for that; one that stays so is killed, and its children with it.
        """
        if self._closed:
            return
        self._closed = True
        self._detach()
        self._channel.close()
        kept = not self._leaves(signal.SIGCONT) and tree.state(self.pid) == "T"
        if kept:
            self._leaves(signal.SIGKILL)
        self._bury(sweeping=kept)

    def _leaves(self, number: int) -> bool:
        """Whether it does within its patience, while it gets that signal again and again."""
        deadline = time.monotonic() + _PATIENCE
        while not (gone := self._reaped()) and time.monotonic() < deadline:
            tree.send(self.pid, number)
            time.sleep(0.002)
        return gone

    def _send(self, request: Message, files: tuple[int, ...] = ()) -> bool:
        if self.lost or self._closed:
            return False
        try:
            self._channel.send(request, files)
        except OSError:
            return False  # it is dying: reading its end will say so
        return True

    def _read(self) -> list[Event]:
        try:
            return [self._event(message) for message, _ in self._channel.receive()]
        except EOFError:
            return [self._lose()]

    def _event(self, message: Message) -> Event:
        kind = _EVENTS[message.pop("is")]
        event = kind(**message)
        child = self._children[event.id]
        match event:
            case Started():
                child.pid = event.pid
            case Exited():
                child.alive = False
            case FailedToStart() | Gone():
                child.alive, child.gone = False, True
                del self._children[event.id]
        return event

    def _lose(self) -> Lost:
        """Its main processes have died with it; kill what else can be recognised."""
        self.lost = True
        self._detach()
        self._reaped()
        return Lost(children=self._bury(sweeping=True), time=time.time())

    def _bury(self, *, sweeping: bool) -> tuple[str, ...]:
        """Nothing is heard of the children any more; returns who was left. `sweeping`: and kills those."""
        left = list(self._children.values())
        self._children.clear()
        if sweeping:
            sweep([child.marker for child in left], {child.pid for child in left if child.pid})
        for child in left:
            child.alive, child.gone = False, True
        return tuple(child.id for child in left)

    def _detach(self) -> None:
        if self._loop is not None and not self._loop.is_closed():
            self._loop.remove_reader(self._channel.fileno())
        self._loop = None

    def _reaped(self) -> bool:
        try:
            return os.waitpid(self.pid, os.WNOHANG)[0] == self.pid
        except ChildProcessError:
            return True


def sweep(markers: Iterable[tree.Marker], sessions: Iterable[int]) -> None:
    """Kill every process that carries one of the markers or is in one of the sessions, until there is none."""
    known = [marker for marker in markers if marker]
    numbers = set(sessions)
    me = os.getpid()

    def theirs() -> list[tree.Process]:
        return [
            process
            for process in tree.processes().values()
            if process.pid != me
            and (process.session in numbers or any(tree.carries(process.pid, marker) for marker in known))
        ]

    for _ in range(_SWEEPS):
        if not theirs():
            return
        tree.end(theirs)
        time.sleep(0.01)


def _check(spec: ChildSpec, known: Mapping[str, Child]) -> None:
    wrong = None
    if spec.id in known:
        wrong = f"{spec.id} is not gone yet"
    elif not spec.argv:
        wrong = f"{spec.id} has no command"
    elif not {0, 1, 2}.isdisjoint(spec.fds):
        wrong = f"{spec.id}: 0, 1 and 2 are stdin, stdout and stderr"
    if wrong is not None:
        raise ValueError(wrong)
