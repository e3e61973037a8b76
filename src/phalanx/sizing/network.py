"""What measured hosts mean for a training: the place that they are, and its slow links, in words. Pure."""

from __future__ import annotations

import dataclasses
import statistics
import time
from collections.abc import Iterator
from typing import Any

from phalanx.names import many
from phalanx.network.measured import Link, Measured
from phalanx.network.schedule import ring
from phalanx.sizing.place import Place
from phalanx.sizing.words import columns, size

#: A link that carries less than this part of the median one is named; so is a host with less than that of the memory
#: of the others, or where all links at once carry less than that of one alone.
SLOW, SMALL, SHARED = 1 / 3, 0.75, 0.67
#: Hosts whose links are all written out, and links, hosts that one sentence names.
_MATRIX, _NAMED = 12, 3
#: Between two hosts, whichever sends; and where there is nothing to say.
_BOTH = "\N{EN DASH}"


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Slow:
    """A host all of whose links are slow, or one link; `rate` is what it carries, `others` what the median one does."""

    who: str
    rate: float
    others: float
    #: The ways it stands for, by the hosts' numbers.
    ways: tuple[tuple[int, int], ...]


def place(measured: Measured, workers: int) -> Place:
    """As small as the smallest of the hosts; a collective is as fast as the slowest link of its ring.

    Fewer workers than hosts are taken to be on the first ones, and their ring to close by the link between its ends.
    """
    hosts = measured.hosts
    return Place(
        hosts=len(hosts),
        cores=min(host.cores for host in hosts),
        memory=min(host.memory for host in hosts),
        bandwidth=measured.median,
        ring=_slowest(measured, workers),
        rtt=measured.rtt,
    )


def _slowest(measured: Measured, workers: int) -> float | None:
    if workers < 2 or not measured.ring:  # noqa: PLR2004 - a ring
        return None
    if workers >= len(measured.hosts):
        return min(measured.ring)
    rates = {(link.source, link.target): link.rate for link in measured.links}
    known = [measured.ring[number] for number in range(workers - 1)]
    return min(*known, rates.get((workers - 1, 0), known[-1]))


def slow(measured: Measured) -> tuple[Slow, ...]:
    """The hosts and links that carry a third of the median or less, the slowest first; both directions are one."""
    found = list(_hosts(measured))
    named = {way for one in found for way in one.ways}
    rest = [link for link in measured.links if (link.source, link.target) not in named]
    # Of few links the better half: two of six may be the slow ones.
    others = statistics.median_high([link.rate for link in rest]) if rest else 0.0
    pairs: dict[tuple[int, int], list[Link]] = {}
    for link in rest:
        if link.rate <= others * SLOW:
            pairs.setdefault((min(link.source, link.target), max(link.source, link.target)), []).append(link)
    for (a, b), links in pairs.items():
        rate = min(link.rate for link in links)
        way = (a, b) if len(links) > 1 else (links[0].source, links[0].target)
        between = _BOTH if len(links) > 1 else "→"
        who = f"{measured.hosts[way[0]].name}{between}{measured.hosts[way[1]].name}"
        ways = tuple((link.source, link.target) for link in links)
        found.append(Slow(who=f"link {who}", rate=rate, others=others, ways=ways))
    return tuple(sorted(found, key=lambda one: one.rate))


def _hosts(measured: Measured) -> Iterator[Slow]:
    """Where even the best link of a host is slow, the host is; the others need a link among themselves to compare."""
    for number, host in enumerate(measured.hosts):
        own = [link for link in measured.links if number in (link.source, link.target)]
        others = [link.rate for link in measured.links if number not in (link.source, link.target)]
        if own and others:
            median = statistics.median_high(others)
            if max(link.rate for link in own) <= median * SLOW:
                ways = tuple((link.source, link.target) for link in own)
                rate = min(link.rate for link in own)
                yield Slow(who=f"every link of {host.name}", rate=rate, others=median, ways=ways)


def reasons(measured: Measured, place: Place) -> tuple[str, ...]:
    """What of it a recommendation has to say. `place`: that which was reckoned with."""
    return (*_slow(measured, place), *_shared(measured), *_small(measured, place))


def _slow(measured: Measured, place: Place) -> Iterator[str]:
    circle = frozenset(ring(len(measured.hosts)))
    found = slow(measured)
    for one in found[:_NAMED]:
        said = f"{one.who} carries {size(one.rate)}/s, others {size(one.others)}/s"
        if not place.ring:
            yield said
        elif circle.isdisjoint(one.ways):
            yield f"{said}: not in the ring, which goes at {size(place.ring)}/s; a ps at its end would wait for it"
        else:
            yield f"{said}: the ring goes at {size(place.ring)}/s"
    if len(found) > _NAMED:
        yield f"{many(len(found) - _NAMED, 'more link')} as slow as that: --json has them"


def _shared(measured: Measured) -> Iterator[str]:
    """Links that are fast one at a time and slow together share something; each is compared with itself."""
    rates = {(link.source, link.target): link.rate for link in measured.links}
    best = max(rates.values(), default=0.0)
    alone = measured.alone or best  # the best link once more, where others went on beside it the first time
    circle = zip(ring(len(measured.hosts)), measured.ring, strict=True)
    kept = [(together / rates[way], together) for way, together in circle if way in rates]
    if kept and alone:
        part = statistics.median_low([each for each, _ in kept]) * best / alone
        if part < SHARED:
            slowest = size(min(together for _, together in kept))
            what = "a switch, a cable or a machine"
            yield f"all at once links carry {part:.0%} of what each does alone, {slowest}/s: they share {what}"


def _small(measured: Measured, place: Place) -> Iterator[str]:
    for what, amounts, used, shown in (
        ("memory", [host.memory for host in measured.hosts], place.memory, size),
        ("cores", [host.cores for host in measured.hosts], place.cores, str),
    ):
        least, middle = min(amounts), statistics.median_high(amounts)
        if least < middle * SMALL and used == least:
            name = measured.hosts[amounts.index(least)].name
            others = f"{shown(least)} where others have {shown(middle)}"
            yield f"{name} has the least {what}, {others}: all are planned as that"


def lines(measured: Measured) -> list[str]:
    """The hosts, the links, and the slow ones by name."""
    told = [_hosts_line(measured)]
    if not measured.links:
        return told
    if len(measured.hosts) <= _MATRIX:
        told += ["links:  from row to column, a second", *(f"  {line}" for line in _matrix(measured))]
    told += [f"links:  {line}" for line in _summary(measured)]
    told += [f"slow:   {one.who}: {size(one.rate)}/s, others {size(one.others)}/s" for one in slow(measured)]
    return told


def _hosts_line(measured: Measured) -> str:
    hosts = measured.hosts
    when = time.strftime("%Y-%m-%d %H:%M", time.localtime(measured.time))
    cores = _span([host.cores for host in hosts], str)
    nodes = _span([host.nodes for host in hosts], str)
    memory = _span([host.memory for host in hosts], size)
    numa = f" on {nodes} NUMA nodes" if nodes != "1" else ""
    return f"hosts:  {many(len(hosts), 'host')} of {cores} cores{numa} and {memory}, measured {when}"


def _span(amounts: list[int], shown: Any) -> str:
    least, most = min(amounts), max(amounts)
    return shown(least) if shown(least) == shown(most) else f"{shown(least)} to {shown(most)}"


def _matrix(measured: Measured) -> list[str]:
    rates = {(link.source, link.target): link.rate for link in measured.links}
    names = [host.name for host in measured.hosts]
    rows = [["", *names]]
    for source, name in enumerate(names):
        cells = [size(rates[source, target]) if (source, target) in rates else _BOTH for target in range(len(names))]
        rows.append([name, *cells])
    return columns(rows, str.rjust)


def _summary(measured: Measured) -> Iterator[str]:
    by_rate = sorted(measured.links, key=lambda link: link.rate)
    worst, best = (
        f"{size(link.rate)}/s ({measured.hosts[link.source].name}→{measured.hosts[link.target].name})"
        for link in (by_rate[0], by_rate[-1])
    )
    few = len(measured.links) // 2
    some = f"; {few} of {measured.pairs} pairs" if few < measured.pairs else ""
    there = f"{measured.rtt * 1e3:.2g} ms there and back"
    yield f"worst {worst}, median {size(measured.median or 0.0)}/s, best {best}; {there}{some}"
    slowest = measured.ring.index(min(measured.ring))
    way = f"{measured.hosts[slowest].name}→{measured.hosts[(slowest + 1) % len(measured.hosts)].name}"
    alone = f"; one alone {size(measured.alone)}/s" if measured.alone else ""
    yield f"all at once, each to the next: worst {size(min(measured.ring))}/s ({way}){alone}"


def as_json(measured: Measured) -> dict[str, Any]:
    """The same for scripts: bytes, bytes a second, seconds."""
    names = [host.name for host in measured.hosts]
    return {
        "time": measured.time,
        "hosts": [dataclasses.asdict(host) for host in measured.hosts],
        "links": [
            {"from": names[link.source], "to": names[link.target], "rate": link.rate, "rtt": link.rtt}
            for link in measured.links
        ],
        "ring": list(measured.ring),
        "alone": measured.alone,
        "pairs": measured.pairs,
        "slow": [
            {
                "who": one.who,
                "rate": one.rate,
                "others": one.others,
                "links": [[names[a], names[b]] for a, b in one.ways],
            }
            for one in slow(measured)
        ],
    }
