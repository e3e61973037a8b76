"""Tasks and their cores: which of them this host can promise, and a task kept to those it was given."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Sequence

from phalanx.agent.machine import Machine
from phalanx.agent.reservation import Reservation
from phalanx.plan.cpulist import text_of
from phalanx.plan.host import Host
from phalanx.protocol.messages import StartTask

#: With a smaller part than this of its cores left by other runs, all of them are better shared with those.
_PART = 0.5


class Pins:
    """The cores of one agent, reserved against other runs of this machine."""

    def __init__(self, host: Host, reservation: Reservation | None = None, machine: Machine | None = None) -> None:
        """Reserves what is there of `host.nodes`; others than those given are for tests."""
        self._reservation = reservation or Reservation()
        self._machine = machine or Machine()
        #: The host, with the cores that could be had.
        self.host = self._reserved(host)
        self._own = frozenset[int]()

    def _reserved(self, host: Host) -> Host:
        cores = [core for node in host.nodes for core in node]
        got = self._reservation.take(core[0] for core in cores)
        if len(got) < max(len(cores) * _PART, 1):
            self._reservation.keep(())
            why = f"another run holds {len(cores) - len(got)} of the {len(cores)} cores" if cores else host.unpinned
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
        return task.cpus if self._own.issuperset(task.cpus) else ()

    def bind(self, pid: int, task: StartTask) -> None:
        """A process that runs already becomes this task."""
        if pid and (cpus := self.of(task)):
            self._machine.bind(pid, cpus)
