"""Who makes a training slow: a task, a host, a link, the network, the input, or a parameter server. Pure.

A synchronous step ends when the last one comes to the collective: whoever spends least time there is waited for (facts
§11). What a task takes *outside* of collectives is its own doing, and is compared; what all spend inside, even the
last one, is the network's. The thresholds and the measurements behind them: docs/design, page 9.
"""

from __future__ import annotations

import dataclasses
import enum
import statistics
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

from phalanx.decide.crowding import Computing, Crowd, crowds
from phalanx.decide.others import Others
from phalanx.decide.pace import LinkPace, Paces, Places, TaskPace, weighty
from phalanx.names import TaskId, training_order
from phalanx.rates import milliseconds, per_second


class Cause(enum.Enum):
    """What is slow."""

    TASK = "task"
    HOST = "host"
    LINK = "link"
    #: Every link of one host.
    HOST_LINKS = "host-links"
    #: The network as a whole: no link stands out.
    NETWORK = "network"
    #: Other programs take the cores of a host.
    CROWD = "crowd"
    #: Every worker waits for its data.
    INPUT = "input"
    #: One parameter server has more to do than its even share.
    SERVER = "server"


#: What makes two verdicts of different times the same: the cause, the task, its peer, the host.
About = tuple[Cause, TaskId | None, TaskId | None, int | None]


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Verdict:
    """One thing that makes the training slow, and by how much."""

    cause: Cause
    #: The culprit: a task; for a link its source. None where it is a host, or everybody.
    task: TaskId | None = None
    #: The other end of a link.
    peer: TaskId | None = None
    host: int | None = None
    #: How much slower than the others; how many times its even share; for a network or an input: the part of a step;
    #: for a crowd: the part of the cores.
    factor: float
    #: The sentence: who, by how much, compared with what.
    says: str
    #: What to do about it.
    advice: str

    @property
    def about(self) -> About:
        """What makes two verdicts of different times the same."""
        return self.cause, self.task, self.peer, self.host


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Look:
    """Where the time went, and what is slow about it."""

    paces: Paces
    places: Places
    verdicts: tuple[Verdict, ...] = ()


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Limits:
    """From where on something is slow."""

    #: How many times what the others take outside of collectives; and what that must cost, as a part of a step.
    slower: float
    costs: float
    #: How many times less a link must carry than the others, and for how much more of the time it must be busy.
    carries: float
    busy: float
    #: The part of a step that even the last one spends in collectives, where the links are busy for half of the time.
    network: float
    #: The part of a step in which every worker does nothing.
    idle: float
    #: How many times its even share a parameter server serves.
    share: float


#: Where a verdict begins, and where one that stands ends: the gap keeps it from flapping. Each limit lies well beyond
#: what equal workers on a crowded machine differ by (docs/design, page 9).
BEGINS = Limits(slower=1.3, costs=0.15, carries=3.0, busy=0.2, network=0.5, idle=0.5, share=1.5)
ENDS = Limits(slower=1.15, costs=0.08, carries=2.0, busy=0.1, network=0.4, idle=0.4, share=1.3)

#: At most so many verdicts of one kind: whoever has more of them has another problem.
_MOST = 8
#: The part of its own time in which a task's cores do nothing from which on it is said to wait rather than to compute.
_IDLE = 0.5
#: Bytes a second below which nobody cares which parameter server they go to.
_SERVED = 100_000.0
#: The part of the time in which the busiest link is busy where the network is what everybody waits for; and the cores
#: that a parameter server keeps busy where it is at work itself.
_BUSY = 0.5
#: The part of a step below which collectives cost nothing worth a word.
_FINE = 0.3


def look(paces: Paces, places: Places, standing: Collection[About] = ()) -> Look:
    """What there is to see, with the verdicts of `judge`."""
    return Look(paces=paces, places=places, verdicts=judge(paces, places, standing))


def judge(paces: Paces, places: Places, standing: Collection[About] = ()) -> tuple[Verdict, ...]:
    """What is slow now, the dearest of each kind first; empty where all are equal or too little is known.

    For what is in `standing` the lower limits hold.
    """

    def limits(about: About) -> Limits:
        return ENDS if about in standing else BEGINS

    tasks = sorted(paces.tasks, key=lambda one: training_order(one.task))
    trains = [one for one in tasks if one.own is not None and one.task in places.hosts]
    links = sorted(weighty(paces.links), key=lambda one: (one.source, one.target))
    links = [one for one in links if one.source in places.hosts and one.target in places.hosts]
    narrow = _links(links, places, limits)
    crowd = crowds(tasks, places)
    found = [*_stragglers(trains, places, limits, crowd, narrow=bool(narrow)), *narrow]
    if not found:
        found += _network(trains, [one for one in links if places.apart(one.source, one.target)], limits)
        found += _input(trains, places, limits, crowd)
    return (*found, *_servers(tasks, links, places, limits))


LimitsOf = Callable[[About], Limits]


def _stragglers(
    trains: Sequence[TaskPace], places: Places, limits: LimitsOf, crowd: Mapping[TaskId, Crowd], *, narrow: bool
) -> list[Verdict]:
    """Whoever takes longer outside of collectives than the others do; all tasks of a host together where all do."""
    own = {one.task: one.own for one in trains if one.own is not None and one.step}
    steps = {one.task: one.step or 0.0 for one in trains}
    found: list[tuple[float, Verdict]] = []
    told: set[TaskId] = set()
    # Of those that it is compared with the higher middle counts: where half of them are slow, nobody stands out.
    everybody, homes, work = Others(own), _by_host(own, places), Computing(trains, crowd)
    for host, here in sorted(homes.items()):
        others = everybody.middle(here)
        if len(here) <= 1 or others is None:
            continue
        about: About = (Cause.HOST, None, None, host)
        if _lags(min(own[task] for task in here), others, steps[here[0]], limits(about)):
            told |= set(here)
            mine = statistics.median(own[task] for task in here)
            queues = work.queues(here, mine / others if others else 0.0, limits(about).slower)
            verdict = _crowded(crowd[here[0]], places) if queues else _host(host, here, mine, others, places)
            found.append((mine - others, verdict))
    rest = Others({task: value for task, value in own.items() if task not in told})
    for one in trains:
        others = rest.middle((one.task,)) if one.task in own and one.task not in told else None
        if others is None:
            continue
        about = (Cause.TASK, one.task, None, places.hosts[one.task])
        mine = own[one.task]
        if _lags(mine, others, one.step or 0.0, limits(about)):
            verdict = _straggler(one, about, others, places, narrow=narrow, two=len(own) == 2)  # noqa: PLR2004 - a pair
            if work.queues((one.task,), mine / others if others else 0.0, limits(about).slower):
                verdict = _crowded(crowd[one.task], places)
            found.append((mine - others, verdict))
    dearest = {verdict.about: verdict for _, verdict in sorted(found, key=lambda pair: pair[0])}
    return [*reversed(dearest.values())][:_MOST]


def _crowded(crowd: Crowd, places: Places) -> Verdict:
    says = f"other programs take {crowd.others:.0%} of the {crowd.cpus} cores of {places.name(crowd.host)}: "
    says += "the tasks there wait for a core, and nothing can be said of what else holds them up"
    advice = "end them or move them (`top` shows them), or leave that host out of the job"
    return _verdict((Cause.CROWD, None, None, crowd.host), crowd.others, 1.0, says, advice)


def _by_host(tasks: Iterable[TaskId], places: Places) -> dict[int, list[TaskId]]:
    found: dict[int, list[TaskId]] = {}
    for task in tasks:
        found.setdefault(places.hosts[task], []).append(task)
    return found


def _host(host: int, here: Sequence[TaskId], mine: float, others: float, places: Places) -> Verdict:
    names = f"{len(here)} tasks" if len(here) > 4 else ", ".join(map(str, here))  # noqa: PLR2004 - a line
    says = f"host {places.name(host)} computes {_times(mine, others)} slower than the others ({names})"
    says += f": {milliseconds(mine)} a step outside of collectives, the others {milliseconds(others)}"
    advice = "look at that host: other programs on its cores, its clock rate, its cooling, its memory"
    return _verdict((Cause.HOST, None, None, host), mine, others, says, advice)


def _lags(mine: float, others: float, step: float, limits: Limits) -> bool:
    return mine >= limits.slower * others and mine - others >= limits.costs * step > 0


def _straggler(one: TaskPace, about: About, others: float, places: Places, *, narrow: bool, two: bool) -> Verdict:
    own, host = one.own or 0.0, places.hosts[one.task]
    where = f" on {places.name(host)}" if places.many else ""
    idle = host not in places.gpus and one.waits is not None and one.waits >= _IDLE * own
    network = "" if narrow else "; network is fine" if (one.share or 0.0) <= _FINE else f"; network: {one.share:.0%}"
    rest = "the other" if two else "the others"
    took = f"{milliseconds(own)} a step outside of collectives, {rest} {milliseconds(others)}"
    if idle:
        says = f"{one.task}{where} is {_times(own, others)} slower than {rest}, and waits: {took}, "
        says += f"{one.cores or 0.0:.1f} cores in use{network}"
        advice = "see what it reads and sleeps on: its input (a cold disk, a slow mount, fewer tf.data threads), a lock"
    else:
        says = f"{one.task}{where} computes {_times(own, others)} slower: {took}{network}"
        advice = "look at its host: other programs on its cores, fewer cores, a slower CPU; or it is given more data"
    return _verdict(about, own, others, says, advice)


def _links(links: Sequence[LinkPace], places: Places, limits: LimitsOf) -> list[Verdict]:
    """The slow ones, each by itself; or their host, where they are all that it has."""
    slow = _slow(links, limits)
    if not slow or len(slow) == len(links):
        return []
    touching: dict[int, list[LinkPace]] = {}
    for one in links:
        for host in _hosts(one, places):
            touching.setdefault(host, []).append(one)
    usual = {(one.source, one.target): rate for one, rate in slow}
    found, told = [], set()
    for host in sorted({host for one, _ in slow for host in _hosts(one, places)}):
        peers = {end for one in touching[host] for end in _hosts(one, places)} - {host}
        mine = [(one, usual[ends]) for one in touching[host] if (ends := (one.source, one.target)) in usual]
        if len(peers) > 1 and len(mine) == len(touching[host]) < len(links):
            found.append(_host_links(host, mine, places))
            told |= {_link_about(one) for one, _ in mine}
    for one, rate in slow:
        if (about := _link_about(one)) not in told:
            told.add(about)
            found.append(_link(one, rate, about, places))
    return found[:_MOST]


def _slow(links: Sequence[LinkPace], limits: LimitsOf) -> list[tuple[LinkPace, float]]:
    """Links that carry far less than the others while they are asked to, and are busy for it; and what those carry."""
    by_ends = {(one.source, one.target): one for one in links}
    carries = Others({ends: one.carries or 0.0 for ends, one in by_ends.items()})
    loads = Others({ends: one.load or 0.0 for ends, one in by_ends.items()})
    found = []
    for (source, target), one in by_ends.items():
        # Both directions of a pair may suffer from one fault: neither is the measure of the other where there are more.
        pair = {(source, target), (target, source)} & by_ends.keys()
        apart = pair if len(pair) < len(by_ends) else {(source, target)}
        usual, load = carries.middle(apart, low=True), loads.middle(apart)
        if usual is not None and load is not None and _narrow(one, usual, load, limits(_link_about(one))):
            found.append((one, usual))
    return sorted(found, key=lambda pair: pair[0].carries or 0.0)


def _narrow(one: LinkPace, usual: float, load: float, limits: Limits) -> bool:
    return (one.carries or 0.0) * limits.carries <= usual and (one.load or 0.0) - load >= limits.busy


def _hosts(one: LinkPace, places: Places) -> set[int]:
    return {places.hosts[one.source], places.hosts[one.target]}


def _link_about(one: LinkPace) -> About:
    """One for both directions: a cable has two."""
    source, target = sorted((one.source, one.target))
    return (Cause.LINK, source, target, None)


def _link(one: LinkPace, usual: float, about: About, places: Places) -> Verdict:
    here, there = places.hosts[one.source], places.hosts[one.target]
    ends = f"{places.name(here)}–{places.name(there)}" if here != there else f"{one.source}–{one.target}"  # noqa: RUF001 - as a link is written
    who = f" ({one.source} to {one.target})" if here != there else ""
    says = f"link {ends} carries {per_second(one.carries or 0.0)}, others {per_second(usual)}{who}"
    says += f"; it is busy for {one.load or 0.0:.0%} of the time"
    advice = "look at that way through the network: a port that has fallen back to a lower speed, a busy switch, losses"
    return _verdict(about, usual, one.carries or 1.0, says, advice)


def _host_links(host: int, mine: Sequence[tuple[LinkPace, float]], places: Places) -> Verdict:
    worst, usual = min(mine, key=lambda pair: pair[0].carries or 0.0)
    says = f"the network of host {places.name(host)} carries {per_second(worst.carries or 0.0)}, "
    says += f"the others' {per_second(usual)}; all {len(mine)} of its links are slow"
    advice = f"look at that host's network card and cable: `ethtool` shows its speed ({places.name(host)})"
    return _verdict((Cause.HOST_LINKS, None, None, host), usual, worst.carries or 1.0, says, advice)


def _network(trains: Sequence[TaskPace], links: Sequence[LinkPace], limits: LimitsOf) -> list[Verdict]:
    """Nobody is late and no link stands out, and still most of each step is communication (R70)."""
    shares = [one.share for one in trains if one.share is not None]
    if len(shares) <= 1 or not links:
        return []
    pure, busiest = min(shares), max(links, key=lambda one: one.load or 0.0)
    about: About = (Cause.NETWORK, None, None, None)
    if pure < limits(about).network or (busiest.load or 0.0) < _BUSY:
        return []
    worth = len(shares) * (1 - statistics.median(shares))
    says = f"the network holds everybody up: {pure:.0%} of each step is communication, "
    says += f"the links carry {per_second(statistics.median(one.carries or 0.0 for one in links))}; "
    says += f"{len(shares)} workers do what {worth:.1f} would do alone"
    advice = "a larger batch for each worker, fewer workers, a faster network, or smaller gradients (float16)"
    return [_verdict(about, pure, 1.0, says, advice)]


def _input(
    trains: Sequence[TaskPace], places: Places, limits: LimitsOf, crowd: Mapping[TaskId, Crowd]
) -> list[Verdict]:
    """Nobody computes, and nobody is in a collective."""
    if len(trains) <= 1 or any(places.hosts[one.task] in places.gpus for one in trains):
        return []
    waits = [(one.waits or 0.0) / one.step for one in trains if one.waits is not None and one.step]
    about: About = (Cause.INPUT, None, None, None)
    if len(waits) < len(trains) or min(waits) < limits(about).idle:
        return []
    if here := [crowd[one.task] for one in trains if one.task in crowd]:
        return [_crowded(max(here, key=lambda one: (one.others, -one.host)), places)]
    cores = statistics.median(one.cores or 0.0 for one in trains)
    says = f"every worker waits, and not for the others: {min(waits):.0%} of each step outside of collectives, "
    says += f"{cores:.1f} cores in use each"
    advice = "most likely for its input: dataset.prefetch, num_parallel_calls, .cache(), faster storage"
    return [_verdict(about, min(waits), 1.0, says, advice)]


def _servers(tasks: Sequence[TaskPace], links: Sequence[LinkPace], places: Places, limits: LimitsOf) -> list[Verdict]:
    """A parameter server with far more than its even share of the bytes, where that keeps it or a link busy (R71)."""
    served = {
        one.task: one.sent + one.received
        for one in tasks
        if one.task.type == "ps" and one.task in places.hosts and one.sent is not None and one.received is not None
    }
    total = sum(served.values())
    if len(served) <= 1 or total < _SERVED:
        return []
    first = max(sorted(served), key=lambda task: served[task])
    even, mine = total / len(served), served[first]
    about = (Cause.SERVER, first, None, places.hosts[first])
    loads = [one.load or 0.0 for one in links if first in (one.source, one.target)]
    cores = next((one.cores or 0.0 for one in tasks if one.task == first), 0.0)
    strained = max(loads, default=1.0) >= limits(about).busy or cores >= _BUSY
    if mine < limits(about).share * even or not strained:
        return []
    says = f"{first} serves {mine / total:.0%} of the bytes ({per_second(mine)}), "
    says += f"{mine / even:.1f}× its even share of {len(served)} ps"  # noqa: RUF001 - as a factor is written
    advice = "split large variables: variable_partitioner=tf.distribute.experimental.partitioners.MinSizePartitioner("
    advice += f"max_shards={len(served)}) for ParameterServerStrategy; or use fewer ps"
    return [_verdict(about, mine, even, says, advice)]


def _times(mine: float, others: float) -> str:
    """`1.9×`; beyond a hundred times nobody counts."""
    factor = mine / others if others > 0 else float("inf")
    return f"{factor:.1f}×" if factor < 100 else "over 100×"  # noqa: PLR2004, RUF001 - as the docstring says


def _verdict(about: About, mine: float, others: float, says: str, advice: str) -> Verdict:
    cause, task, peer, host = about
    factor = round(min(mine / others if others > 0 else 1000.0, 1000.0), 2)
    return Verdict(cause=cause, task=task, peer=peer, host=host, factor=factor, says=says, advice=advice)
