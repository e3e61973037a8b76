"""From samples to paces: where one task's time went, and what one link carried, over the same stretch of time. Pure."""

from __future__ import annotations

import dataclasses
import statistics
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise

from phalanx.hoststate import HostState
from phalanx.names import TaskId, training_order
from phalanx.sample import LinkSample, LoadSample, TaskSample
from phalanx.taskstate import TaskState

#: Stretches between two samples that are needed: of three, one with a pause in it (a checkpoint, a validation) is
#: outvoted by the others, since the median counts.
STRETCHES = 3

#: A link with less than this part of what the busiest one carries has its acknowledgements delayed by up to 40 ms, and
#: seems slow: it carries requests and heartbeats, and no gradients.
_SHARE = 0.1

#: Bytes a second below which a link carries requests and heartbeats alone: on a job without a step some 50 (facts §11).
_HEARTBEATS = 10_000.0


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Places:
    """Where the tasks are, and what the hosts are called."""

    #: Task → host, of those that run.
    hosts: Mapping[TaskId, int]
    names: Mapping[int, str] = dataclasses.field(default_factory=dict)
    #: Hosts whose CPU tells nothing of how hard a task computes.
    gpus: frozenset[int] = frozenset()
    #: Host → its address: what does not leave a machine is no network.
    addresses: Mapping[int, str] = dataclasses.field(default_factory=dict)

    @classmethod
    def of(cls, tasks: Iterable[TaskState], hosts: Collection[HostState]) -> Places:
        """As a run's state has them: of these tasks those that are on a host, and all hosts."""
        return cls(
            hosts={task.id: task.host for task in tasks if task.host is not None},
            names={one.id: one.joined.name for one in hosts},
            gpus=frozenset(one.id for one in hosts if one.joined.gpus),
            addresses={one.id: one.joined.address for one in hosts},
        )

    def apart(self, one: TaskId, other: TaskId) -> bool:
        """Whether a network lies between the two, as far as is known."""
        here, there = self.hosts[one], self.hosts[other]
        return self.machine(here) != self.machine(there)

    def machine(self, host: int) -> str | int:
        """What hosts on one machine have in common."""
        return self.addresses.get(host, host)

    def name(self, host: int) -> str:
        """What people call it."""
        return self.names.get(host, f"host {host}")

    @property
    def many(self) -> bool:
        """Whether there is more than one host to be on."""
        first = next(iter(self.hosts.values()), None)
        return any(host != first for host in self.hosts.values())


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class TaskPace:
    """How one task spent its time. Seconds a step where nothing else is said. None: not measured."""

    task: TaskId
    #: Wall clock, the median over the stretches, however few; the sum of the two below where they are known.
    step: float | None = None
    #: Inside collectives: its peers' lateness and the network's, for nobody can tell the two apart from inside.
    collective: float | None = None
    #: Outside of them: what the task itself takes, whatever its peers do.
    own: float | None = None
    #: Cores that it kept busy.
    cores: float | None = None
    #: Bytes a second, to and from all its peers.
    sent: float | None = None
    received: float | None = None
    #: CPUs of its machine that were busy, whoever kept them so, and how many there are.
    busy: float | None = None
    cpus: int = 0
    #: What all of it rests on: stretches with a step in them, and the seconds and the steps of them together.
    stretches: int = 0
    seconds: float = 0.0
    steps: int = 0

    @property
    def share(self) -> float | None:
        """The part of the time that went into collectives."""
        return self.collective / self.step if self.collective is not None and self.step else None

    @property
    def computing(self) -> float | None:
        """CPU seconds a step: what it has to do, however long it waits for a core."""
        return self.cores * self.step if self.cores is not None and self.step else None

    @property
    def waits(self) -> float | None:
        """Seconds a step, at least, in which it neither computed on a core nor was in a collective."""
        if self.own is None or self.cores is None or not self.step:
            return None
        return max(self.own - self.cores * self.step, 0.0)


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class LinkPace:
    """What one task sent another."""

    source: TaskId
    target: TaskId
    #: Bytes a second of wall clock.
    rate: float
    #: The part of the time in which something was under way; and bytes a second of that. None: the kernel has no count.
    load: float | None = None
    carries: float | None = None
    rtt: float | None = None


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Paces:
    """All of it, over one stretch of time."""

    at: float = 0.0
    tasks: tuple[TaskPace, ...] = ()
    links: tuple[LinkPace, ...] = ()


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Samples:
    """What was measured within a window, oldest first, by task and by source and target."""

    steps: Mapping[TaskId, Sequence[TaskSample]] = dataclasses.field(default_factory=dict)
    loads: Mapping[TaskId, Sequence[LoadSample]] = dataclasses.field(default_factory=dict)
    links: Mapping[tuple[TaskId, TaskId], Sequence[LinkSample]] = dataclasses.field(default_factory=dict)


def paces(samples: Samples, at: float) -> Paces:
    """What the samples of a window come to. Who has too few of a kind has none of that."""
    names = sorted({*samples.steps, *samples.loads}, key=training_order)
    tasks = (_task(name, samples.steps.get(name, ()), samples.loads.get(name, ())) for name in names)
    links = (_link(*pair, found) for pair, found in sorted(samples.links.items()))
    return Paces(at=at, tasks=tuple(tasks), links=tuple(link for link in links if link is not None))


def weighty(links: Sequence[LinkPace]) -> list[LinkPace]:
    """Those that carry gradients or variables, and of which the kernel tells how long they were busy."""
    most = max((link.rate for link in links), default=0.0)
    return [
        link
        for link in links
        if link.rate >= max(_SHARE * most, _HEARTBEATS) and link.carries and link.load is not None
    ]


def _task(name: TaskId, steps: Sequence[TaskSample], loads: Sequence[LoadSample]) -> TaskPace:
    newest = [one for one in steps if one.about == steps[-1].about]
    found = list(_stretches(newest))
    stretches = [(seconds / done, inside) for seconds, done, inside in found]
    step = own = collective = None
    if stretches:
        step = statistics.median(wall for wall, _ in stretches)
        known = [(wall, min(inside, wall)) for wall, inside in stretches if inside is not None]
        if len(known) >= STRETCHES:
            own = statistics.median(wall - inside for wall, inside in known)
            collective = statistics.median(inside for _, inside in known)
            step = own + collective  # so that the parts are parts of it
    used = sent = received = busy = None
    if len(loads) > 1 and (seconds := loads[-1].at - loads[0].at) > 0 and loads[0].about == loads[-1].about:
        used = max(loads[-1].cpu - loads[0].cpu, 0.0) / seconds
        sent = max(loads[-1].sent - loads[0].sent, 0) / seconds
        received = max(loads[-1].received - loads[0].received, 0) / seconds
        if loads[0].busy is not None and loads[-1].busy is not None:
            busy = max(loads[-1].busy - loads[0].busy, 0.0) / seconds
    return TaskPace(
        task=name,
        step=step,
        collective=collective,
        own=own,
        cores=used,
        sent=sent,
        received=received,
        busy=busy,
        cpus=loads[-1].cpus if busy is not None else 0,
        stretches=len(found),
        seconds=sum(seconds for seconds, _, _ in found),
        steps=sum(done for _, done, _ in found),
    )


def _stretches(steps: Sequence[TaskSample]) -> Iterator[tuple[float, int, float | None]]:
    """Seconds, steps, and seconds in collectives per step, between two samples with a step between."""
    for one, other in pairwise(steps):
        done, seconds = other.steps - one.steps, other.at - one.at
        if done <= 0 or seconds <= 0:
            continue
        inside = None
        if one.collective is not None and other.collective is not None:
            inside = max(other.collective - one.collective, 0.0) / done
        yield seconds, done, inside


def _link(source: TaskId, target: TaskId, found: Sequence[LinkSample]) -> LinkPace | None:
    if len(found) <= 1 or (seconds := found[-1].at - found[0].at) <= 0:
        return None
    first, last = found[0], found[-1]
    if last.sent < first.sent:
        return None  # made anew
    carried = last.sent - first.sent
    load = carries = None
    if first.busy is not None and last.busy is not None and last.busy >= first.busy:
        busy = last.busy - first.busy
        load, carries = min(busy / seconds, 1.0), carried / busy if busy > 0 else None
    return LinkPace(source=source, target=target, rate=carried / seconds, load=load, carries=carries, rtt=last.rtt)
