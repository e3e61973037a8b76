"""Tasks and their cores: which of them this host can promise, and a task kept to those it was given."""

from __future__ import annotations

import asyncio
import dataclasses
import os
from collections.abc import Callable, Sequence

from phalanx.agent import kin, tree
from phalanx.agent.crowd import LOOK, Crowd, Meter
from phalanx.agent.machine import Machine
from phalanx.agent.reservation import Reservation
from phalanx.agent.running import Running
from phalanx.plan.cpulist import text_of
from phalanx.plan.host import Host
from phalanx.protocol.messages import StartTask

#: With a smaller part than this of its cores left by other runs, all of them are better shared with those.
_PART = 0.5


class Pins:
    """The cores of one agent, reserved against other runs of this machine, and given up while others run on them."""

    def __init__(self, host: Host, reservation: Reservation | None = None, machine: Machine | None = None) -> None:
        """Reserves what is there of `host.nodes`; others than those given are for tests."""
        self._reservation = reservation or Reservation()
        self._machine = machine or Machine()
        #: The host, with the cores that could be had.
        self.host = self._reserved(host)
        self._own = frozenset[int]()
        self._pinned: dict[Running, tuple[int, ...]] = {}
        self._crowd, self._meter = Crowd(), Meter()
        self._watching: asyncio.Task[None] | None = None

    def _reserved(self, host: Host) -> Host:
        cores = [core for node in host.nodes for core in node]
        got = self._reservation.take(core[0] for core in cores)
        if len(got) < max(len(cores) * _PART, 1):
            self._reservation.keep(())
            why = f"another run holds {len(cores) - len(got)} of its {len(cores)} cores" if cores else host.unpinned
            return dataclasses.replace(host, nodes=(), unpinned=why)
        nodes = tuple(tuple(core for core in node if core[0] in got) for node in host.nodes)
        return dataclasses.replace(host, nodes=nodes)

    def prepare(self, tasks: Sequence[StartTask], *, whole: bool) -> str:
        """Hold the cores of these tasks, and with `whole` no others. What to say of those that cannot be had."""
        first = {core[0] for node in self.host.nodes for core in node}
        wanted = {cpu for task in tasks for cpu in task.cpus}
        held = self._reservation.take(wanted & first)
        if whole:
            self._reservation.keep(held)
            self._own = frozenset()
        mine = frozenset(cpu for node in self.host.nodes for core in node if core[0] in held for cpu in core)
        self._own |= mine & frozenset(os.sched_getaffinity(0))
        refused = wanted - self._own
        if not refused:
            return ""
        names = ", ".join(str(task.id) for task in tasks if not self._own.issuperset(task.cpus))
        return f"not pinned: {names}; CPUs {text_of(refused)} are another run's by now, or were taken from this host"

    def of(self, task: StartTask) -> tuple[int, ...]:
        """The CPUs that the task is to be started on; none: wherever this agent may run."""
        return task.cpus if not self._crowd.crowded and self._own.issuperset(task.cpus) else ()

    def bind(self, pid: int, task: StartTask) -> None:
        """A process that runs already becomes this task."""
        if pid and (cpus := self.of(task)):
            self._machine.bind(pid, cpus)

    def follow(self, running: Running, say: Callable[[str], None]) -> None:
        """It runs: while others use its cores, it may use all. `say` is told when that begins and ends."""
        if running.task.cpus and self._own.issuperset(running.task.cpus):
            self._pinned[running] = running.task.cpus
            if self._watching is None or self._watching.done():
                self._watching = asyncio.ensure_future(self._watch(say))

    async def _watch(self, say: Callable[[str], None]) -> None:
        family = kin.ours()
        while self._living():
            cpus = {cpu for mine in self._pinned.values() for cpu in mine}
            table = family.look()
            now = asyncio.get_running_loop().time()
            others = self._meter.look(now, os.sched_getaffinity(0) if self._crowd.crowded else cpus, table)
            if others is not None and self._crowd.see(now, others):
                say(self._change(table, others))
            await asyncio.sleep(LOOK)

    def _living(self) -> bool:
        self._pinned = {running: cpus for running, cpus in self._pinned.items() if not running.ended.is_set()}
        return bool(self._pinned)

    def _change(self, table: dict[int, tree.Process], others: float) -> str:
        """Every process of theirs runs from now on where it is best; what to say of it."""
        for running, cpus in self._pinned.items():
            where = os.sched_getaffinity(0) if self._crowd.crowded else cpus
            for pid in (running.pid, *(process.pid for process in tree.below(table, running.pid))):
                self._machine.bind(pid, where)
        names = ", ".join(str(running.task.id) for running in self._pinned)
        if self._crowd.crowded:
            return f"not pinned any more: {names}; others take {others:.0%} of their cores' time"
        return f"pinned again: {names}; nobody else uses their cores"

    def close(self) -> None:
        """Nothing is watched any more, and the cores are anybody's."""
        self._reservation.keep(())
        if self._watching is not None:
            self._watching.cancel()
