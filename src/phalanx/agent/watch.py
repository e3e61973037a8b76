"""Looks at this host's tasks once a second and says what has changed about them; never more than that."""

from __future__ import annotations

import asyncio
import contextlib
import os
import time
from collections.abc import Callable, Mapping

from phalanx import events as ev
from phalanx.agent import kin, tree
from phalanx.agent.crowd import spent
from phalanx.agent.getstatus import answers
from phalanx.agent.oomkills import OomKills
from phalanx.agent.peers import Connection, PeerTable
from phalanx.agent.pulse import Awake, Froze, Pulse, Quiet, Reading, Sign, Stalled, Word
from phalanx.agent.running import Running
from phalanx.agent.traffic import Traffic
from phalanx.agent.vitals import process, sockets, waits_inside
from phalanx.protocol.messages import Load, Measured

#: Seconds between two looks, and to the next one when a process was seen stopped.
LOOK, SOON = 1.0, 0.2
#: Seconds between two words about what the tasks use and send: they ride on polls, which come more often.
MEASURED_EVERY = 5.0
#: Seconds for which the list of a task's processes, and of its sockets, may be old.
_FAMILY = 5.0

Tell = Callable[..., None]


class Watched:
    """One attempt under watch."""

    def __init__(self, running: Running, *, patience: float, now: float) -> None:
        """`running` has started."""
        self.running = running
        self.pulse = Pulse(now, patience=patience)
        self.traffic = Traffic(running.task.id, running.task.port, running.tf_config)
        self.family = [running.pid]
        #: The process that does the work: a shell's child, where the command is a shell.
        self.heart = running.pid
        self._cpu: dict[int, float] = {}
        self._inodes: set[int] = set()
        self._asked: asyncio.Task[bool] | None = None
        #: Whether its stacks were written since the last look.
        self.disturbed = False

    def look(self, now: float, connections: list[Connection], sign: Sign | None) -> Word | None:
        """One reading, and what is new with it."""
        found = {pid: one for pid in self.family if (one := process(pid)) is not None}
        for pid, one in found.items():
            self._cpu[pid] = one.cpu
        self.heart = max(found, key=lambda pid: (self._cpu[pid], -pid), default=self.running.pid)
        heart = found.get(self.heart)
        answer = self._answer()
        told = [capture.last_output for capture in self.running.captures if capture.last_output is not None]
        disturbed, self.disturbed = self.disturbed, False
        return self.pulse.see(
            Reading(
                now=now,
                disturbed=disturbed,
                frozen=any(pid in found and found[pid].state == "T" for pid in (self.heart, self.running.pid)),
                cpu=sum(self._cpu.values()),
                ran=heart.ran[1] if heart else 0,
                output=max(told, default=None),
                carried=self.traffic.see(connections, self._inodes),
                answers=answer,
                waits=waits_inside(self.heart),
                # Who is outside the cluster may do no step for as long as it likes.
                listens=self.running.listens.is_set() and not self.running.task.lent,
                sign=sign,
            )
        )

    def relatives(self, table: Mapping[int, tree.Process]) -> None:
        """Its processes, as they are now."""
        self.family = [self.running.pid, *(one.pid for one in tree.below(table, self.running.pid))]
        self._inodes = set().union(*(sockets(pid) for pid in self.family))

    def load(self) -> Load:
        """What it has used so far."""
        task = self.running.task
        return Load(
            task=task.id,
            generation=self.running.generation,
            attempt=task.attempt,
            cpu=round(sum(self._cpu.values()), 2),
            sent=self.traffic.sent,
            received=self.traffic.received,
        )

    def _answer(self) -> bool | None:
        """What its server said since the last look; asked only while it shows no cheaper sign of life."""
        answer = None
        if self._asked is not None and self._asked.done():
            answer, self._asked = self._asked.result(), None
        port = None if self.running.task.lent else self.running.task.port  # gRPC is no language of any server
        if self._asked is None and port is not None and self.running.listens.is_set() and self.pulse.wants_answer:
            self._asked = asyncio.ensure_future(answers(port))
        return answer

    def let_go(self) -> None:
        """It has ended."""
        if self._asked is not None:
            self._asked.cancel()


class Watch:
    """All tasks of this host. `tell(running, kind, when, **fields)` hands an event to the lead."""

    def __init__(self, tell: Tell, *, clock: Callable[[], float] = time.time) -> None:
        """`clock` gives Unix seconds. Set `patience` before tasks are added."""
        self.patience = 5.0
        self._tell, self._clock = tell, clock
        self._watched: list[Watched] = []
        self._loop: asyncio.Task[None] | None = None
        self._oom = OomKills()
        self._peers: PeerTable | None = None
        with contextlib.suppress(OSError):  # a kernel without sock_diag: the other signs remain
            self._peers = PeerTable()
        self._family = kin.ours()
        self._looked = self._measured = float("-inf")

    def measured(self) -> Measured | None:
        """What the tasks use and send, for a poll; None where that was told a moment ago, or nothing runs."""
        now = self._clock()
        if not self._watched or 0 <= now - self._measured < MEASURED_EVERY:
            return None
        self._measured = now
        ends = tuple(end for one in self._watched for end in one.traffic.ends())
        cpus = os.sched_getaffinity(0)
        mine = [seconds for cpu, seconds in spent().items() if cpu in cpus]
        return Measured(
            at=round(now, 3),
            loads=tuple(one.load() for one in self._watched),
            ends=ends,
            busy=round(sum(mine), 2) if mine else None,
            cpus=len(mine),
        )

    def add(self, running: Running) -> None:
        """Watch it from now on until it has ended or is told to."""
        self._watched.append(Watched(running, patience=self.patience, now=self._clock()))
        self._oom.look([running.pid], self._clock())
        if self._loop is None or self._loop.done():
            self._loop = asyncio.ensure_future(self._run())

    def disturb(self, running: Running) -> None:
        """What it does now it does for us: its stacks are written. To be called before and after."""
        for one in self._watched:
            one.disturbed = one.disturbed or one.running is running

    def heart(self, running: Running) -> int:
        """The process of the task that does the work."""
        return next((one.heart for one in self._watched if one.running is running), running.pid)

    def out_of_memory(self, running: Running, when: float) -> bool:
        """Whether the kernel ended it at `when` because there was no memory left. To be asked once, after its end."""
        killed = self._oom.killed(running.pid, when)
        self._oom.forget(running.pid)
        return killed and not running.stopped

    def close(self) -> None:
        """No more looks."""
        if self._loop is not None:
            self._loop.cancel()
        for one in self._watched:
            one.let_go()
        if self._peers is not None:
            self._peers.close()

    async def _run(self) -> None:
        while self._watched:
            self.look()
            await asyncio.sleep(SOON if any(one.pulse.suspects for one in self._watched) else LOOK)

    def look(self) -> None:
        """One look at all of them."""
        now = self._clock()
        for one in [one for one in self._watched if one.running.ended.is_set() or one.running.stopped]:
            one.let_go()
            self._watched.remove(one)
        self._oom.look([one.running.pid for one in self._watched], now)
        connections = self._connections()
        if now - self._looked >= _FAMILY or now < self._looked:
            self._looked, table = now, self._family.look()
            for one in self._watched:
                one.relatives(table)
        for one in self._watched:
            word = one.look(now, connections, one.running.life.sign() if one.running.life else None)
            if word is not None:
                self._say(one.running, word, now)

    def _connections(self) -> list[Connection]:
        ports = sorted({port for one in self._watched for port in one.traffic.ports})
        if self._peers is None or not ports:
            return []
        try:
            return self._peers.connections(ports)
        except OSError:
            return []

    def _say(self, running: Running, word: Word, now: float) -> None:
        match word:
            case Froze(since):
                self._tell(running, ev.TaskFroze, now, since=since)
            case Quiet(since):
                self._tell(running, ev.TaskQuiet, now, since=since)
            case Stalled():
                self._tell(running, ev.TaskStalled, now, **{name: getattr(word, name) for name in word.__slots__})
            case Awake():
                self._tell(running, ev.TaskAwake, now)
