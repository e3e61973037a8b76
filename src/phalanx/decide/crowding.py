"""How much of a machine other programs take, and whether that leaves the tasks waiting for a core. Pure."""

from __future__ import annotations

import dataclasses
import statistics
from collections.abc import Iterable, Mapping

from phalanx.decide.pace import Places, TaskPace
from phalanx.names import TaskId

#: The part of a machine's CPUs that others must take, and the part that must be busy all in all: while a core is free,
#: nobody waits for one.
OTHERS, FULL = 0.25, 0.85


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Crowd:
    """One machine that others crowd."""

    #: Of its hosts, the first that tasks run on.
    host: int
    #: The part of its CPUs' time that others had, and the CPUs.
    others: float
    cpus: int


def crowds(tasks: Iterable[TaskPace], places: Places) -> Mapping[TaskId, Crowd]:
    """The crowd that each task is in, of those that are in one.

    What the run's own tasks use is none, whichever agent has started them.
    """
    machines: dict[str | int, list[TaskPace]] = {}
    for one in tasks:
        if one.task in places.hosts:
            machines.setdefault(places.machine(places.hosts[one.task]), []).append(one)
    found = {}
    for here in machines.values():
        told = [(one.busy, one.cpus) for one in here if one.busy is not None and one.cpus]
        if not told:
            continue
        busy, cpus = statistics.median(busy for busy, _ in told), max(cpus for _, cpus in told)
        others = (busy - sum(one.cores or 0.0 for one in here)) / cpus
        if others >= OTHERS and busy >= FULL * cpus:
            crowd = Crowd(host=min(places.hosts[one.task] for one in here), others=min(others, 1.0), cpus=cpus)
            found.update(dict.fromkeys((one.task for one in here), crowd))
    return found
