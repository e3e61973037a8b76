"""How much of a machine other programs take, and whether that leaves the tasks waiting for a core. Pure."""

from __future__ import annotations

import dataclasses
import statistics
from collections.abc import Collection, Iterable, Mapping, Sequence

from phalanx.decide.others import Others
from phalanx.decide.pace import Places, TaskPace
from phalanx.names import TaskId

#: The part of a machine's CPUs that others must take, and the part that must be busy all in all: while a core is free,
#: nobody waits for one.
OTHERS, FULL = 0.25, 0.85
#: In a crowd that all are in, how many times what the others take somebody must take to be slow by himself: equal ones
#: there were up to 2.0 times as slow in one look, and one that sleeps 3.3 times (docs/design, page 9).
_CROWDED = 3.0


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


class Computing:
    """What each of those that train has to compute: who is late in a crowd has no more of it than the others."""

    def __init__(self, trains: Sequence[TaskPace], crowd: Collection[TaskId]) -> None:
        """`crowd`: those that are in one."""
        self._crowd = crowd
        self._all = all(one.task in crowd for one in trains)
        self._own = {one.task: one.computing for one in trains if one.computing is not None}
        self._others = Others(self._own)

    def queues(self, here: Sequence[TaskId], factor: float, slower: float) -> bool:
        """Whether these are late because others have their cores: not where they themselves have more to compute.

        `factor`: how many times what the others take they take; from `slower` times on it is more. Where all are in a
        crowd, it explains a difference only up to a point.
        """
        if here[0] not in self._crowd or (factor >= _CROWDED and self._all):
            return False
        known = [task for task in here if task in self._own]
        others = self._others.middle(known)
        return not known or others is None or statistics.median(self._own[task] for task in known) < slower * others
