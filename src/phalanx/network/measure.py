"""The measuring: every host's probe is started, told whom to call and when, and ended, whatever happens."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import secrets
import statistics
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any, TypeVar

from phalanx.errors import PlaceError
from phalanx.names import join_host_port, many
from phalanx.network.measured import Link, Machine, Measured
from phalanx.network.remote import LostError, Remote
from phalanx.network.schedule import Round, ring, some, tournament
from phalanx.network.target import Target

#: Rounds at most: beyond 16 hosts some pairs stand for all.
ROUNDS = 15
#: What carries less than this part of the median is measured once more, in so many rounds at most: a host may have been
#: busy with something else for that half second.
DOUBTFUL, _AGAIN = 0.5, 3
#: Connections of one direction: one alone does not fill a fast link.
STREAMS = 4
#: Small messages there and back.
PINGS = 21
#: Seconds in which a host's probe has to be up, in which it answers beyond the time that it was given, and what a round
#: takes besides: to be told in advance.
_START, _ANSWER, _ROUND = 30.0, 20.0, 0.15
#: Hosts that are reached at once: a gateway refuses the many.
_AT_ONCE = 32
#: Faults that one sentence names.
_NAMED = 3

T = TypeVar("T")


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Course:
    """What will be measured, of so many hosts."""

    hosts: int
    rounds: tuple[Round, ...]
    #: Seconds for each round.
    seconds: float

    @classmethod
    def of(cls, hosts: int, seconds: float) -> Course:
        """All pairs, or those of some rounds where there are many."""
        return cls(hosts=hosts, rounds=some(tournament(hosts), ROUNDS), seconds=seconds)

    @property
    def pairs(self) -> tuple[tuple[int, int], ...]:
        """Each once."""
        return tuple(pair for one in self.rounds for pair in one)

    @property
    def lone(self) -> bool:
        """Whether one link is measured again while the others rest: where a round holds more than one."""
        return any(len(one) > 1 for one in self.rounds)

    @property
    def lasts(self) -> float:
        """Seconds, once the hosts are reached."""
        return (len(self.rounds) + bool(self.rounds) + self.lone) * (self.seconds + _ROUND)

    def words(self) -> str:
        """What is to come, for people."""
        if not self.rounds:
            return "its memory and cores: one host has no links"
        every = self.hosts * (self.hosts - 1) // 2
        pairs = f"{len(self.pairs)} of {every} pairs" if len(self.pairs) < every else many(every, "pair")
        return f"{pairs} in {many(len(self.rounds), 'round')}, then all hosts at once: about {self.lasts:.0f} s"


def measure(
    targets: Sequence[Target],
    *,
    through: Sequence[str],
    seconds: float,
    ports: tuple[int, int] | None = None,
    say: Callable[[str], None] = lambda _: None,
) -> Measured:
    """Each pair both ways for so many seconds. Raises InputError or PlaceError; nothing is left on any host.

    `through`: the command that runs another one on `{host}`. `ports`: the probes listen in this range. `say` hears how
    far it is.
    """
    return asyncio.run(_measured(targets, Course.of(len(targets), seconds), through, ports, say))


async def _measured(
    targets: Sequence[Target],
    course: Course,
    through: Sequence[str],
    ports: tuple[int, int] | None,
    say: Callable[[str], None],
) -> Measured:
    remotes: list[Remote] = []
    try:
        for target in targets:
            remotes.append(await Remote.start(target.name, through))  # noqa: PERF401 - those that are there are ended
        say("reaching the hosts")
        session = _Session(remotes, targets, course.seconds)
        machines = await session.greeted(ports)
        say("trying every way")
        await session.meet(course.pairs)
        links: list[Link] = []
        for number, one in enumerate(course.rounds):
            say(f"round {number + 1} of {len(course.rounds)}")
            links += await session.round(one)
        for number, one in enumerate(again := doubtful(links)):
            say(f"once more what is slow: {number + 1} of {len(again)}")
            links = better(links, await session.round(one))
        circle: list[float] = []
        if course.rounds:
            say("all at once")
            circle = await session.pour(ring(course.hosts))
            if min(circle) < statistics.median_high(circle) * DOUBTFUL:
                circle = list(map(max, circle, await session.pour(ring(course.hosts))))
        alone = None
        if course.lone:
            say("one alone")
            best = max(links, key=lambda link: link.rate)
            alone = max(await session.pour([(best.source, best.target), (best.target, best.source)]))
        return Measured(hosts=machines, links=tuple(links), ring=tuple(circle), alone=alone, time=time.time())
    finally:
        say("")
        await asyncio.gather(*(remote.end() for remote in remotes))


class _Session:
    """The probes of all hosts, and what they are asked together."""

    def __init__(self, remotes: Sequence[Remote], targets: Sequence[Target], seconds: float) -> None:
        self._remotes, self._targets, self._seconds = remotes, targets, seconds
        self._peers: list[dict[str, Any]] = []

    async def greeted(self, ports: tuple[int, int] | None) -> tuple[Machine, ...]:
        """All probes are up: what their hosts are."""
        key, few = secrets.token_hex(32), asyncio.Semaphore(_AT_ONCE)

        async def one(number: int, remote: Remote) -> dict[str, Any]:
            async with few:
                return await remote.greet({"host": number, "key": key, "ports": ports}, patience=_START)

        told = await _all(one(number, remote) for number, remote in enumerate(self._remotes))
        machines = []
        for number, (target, answer) in enumerate(zip(self._targets, told, strict=True)):
            if wrong := answer.get("wrong"):
                raise PlaceError(f"{target.name}: {wrong}", hint="give the probes other ports: --ports A-B")
            self._peers.append({"host": number, "address": target.address, "port": answer["port"]})
            facts = answer["facts"]
            machines.append(Machine(name=target.name, address=target.address, **facts))
        return tuple(machines)

    async def meet(self, pairs: Sequence[tuple[int, int]]) -> None:
        """Every way that will be used is tried, so that all that are closed are named. Raises PlaceError."""
        ways: dict[int, list[int]] = {}
        for source, target in dict.fromkeys((*pairs, *((b, a) for a, b in pairs), *ring(len(self._remotes)))):
            ways.setdefault(source, []).append(target)

        async def one(source: int, targets: list[int]) -> list[tuple[int, int, str]]:
            peers = [self._peers[target] for target in targets]
            said = (await self._ask(source, {"do": "greet", "peers": peers}, 0.0))["said"]
            return [(source, target, words) for target, words in zip(targets, said, strict=True) if words]

        told = await _all(one(*way) for way in ways.items())
        if closed := [fault for faults in told for fault in faults]:
            raise PlaceError(
                closed_ways(closed, self._peers, [target.name for target in self._targets]),
                hint="open the way (--ports A-B keeps the ports in a range), say the address that the others reach "
                "(--measure NAME=ADDRESS,…), or leave the host out",
            )

    async def round(self, pairs: Round) -> list[Link]:
        """Both directions of each pair, all of them at once."""
        times = await _all(
            self._ask(a, {"do": "ping", "peer": self._peers[b], "times": PINGS}, 0.0, to=b) for a, b in pairs
        )
        ways = [way for a, b in pairs for way in ((a, b), (b, a))]
        rates = await self.pour(ways)
        rtts = [float(answer["rtt"]) for answer in times for _ in range(2)]
        return [
            Link(source=a, target=b, rate=rate, rtt=rtt) for (a, b), rate, rtt in zip(ways, rates, rtts, strict=True)
        ]

    async def pour(self, ways: Iterable[tuple[int, int]]) -> list[float]:
        """Bytes a second of each way, all of them at once."""
        told = await _all(
            self._ask(
                a,
                {"do": "pour", "peer": self._peers[b], "seconds": self._seconds, "streams": STREAMS},
                self._seconds,
                to=b,
            )
            for a, b in ways
        )
        return [float(answer["rate"]) for answer in told]

    async def _ask(self, host: int, order: dict[str, Any], seconds: float, *, to: int | None = None) -> dict[str, Any]:
        answer = await self._remotes[host].ask(order, patience=seconds + _ANSWER)
        if to is not None and "wrong" in answer:
            way = f"from {self._targets[host].name} to {self._targets[to].name}"
            raise PlaceError(f"the link {way} broke while it was measured: {answer['wrong']}", hint="measure again")
        return answer


def doubtful(links: Sequence[Link]) -> tuple[Round, ...]:
    """The slowest pairs, in rounds in which no host plays twice. Pure."""
    least = statistics.median_high([link.rate for link in links]) * DOUBTFUL if links else 0.0
    slowest = sorted((link for link in links if link.rate < least), key=lambda link: link.rate)
    rounds: list[list[tuple[int, int]]] = [[] for _ in range(_AGAIN)]
    for a, b in dict.fromkeys((min(link.source, link.target), max(link.source, link.target)) for link in slowest):
        free = (one for one in rounds if not {a, b} & {host for pair in one for host in pair})
        if (one := next(free, None)) is not None:
            one.append((a, b))
    return tuple(tuple(one) for one in rounds if one)


def better(links: Sequence[Link], again: Sequence[Link]) -> list[Link]:
    """Each link as it was when it carried more. Pure."""
    best = {(link.source, link.target): link for link in links}
    for link in again:
        way = (link.source, link.target)
        best[way] = max(best[way], link, key=lambda one: one.rate)
    return list(best.values())


def closed_ways(closed: Sequence[tuple[int, int, str]], peers: Sequence[dict[str, Any]], names: Sequence[str]) -> str:
    """Whoever is reached by nobody is named alone; else the pairs are. Pure."""
    for peer in dict.fromkeys(target for _, target, _ in closed):
        said = [words for _, target, words in closed if target == peer]
        if len(names) > 2 and len(said) == len(names) - 1:  # noqa: PLR2004 - more than a pair
            return f"no host reaches {names[peer]} at {_at(peers[peer])}: {said[0]}"
    said = [
        f"{names[source]} does not reach {names[target]} at {_at(peers[target])}: {why}"
        for source, target, why in closed
    ]
    return _listed(said)


def _listed(said: Sequence[str]) -> str:
    more = f"; and {len(said) - _NAMED} more" if len(said) > _NAMED else ""
    return "; ".join(said[:_NAMED]) + more


def _at(peer: dict[str, Any]) -> str:
    return join_host_port(peer["address"], peer["port"])


async def _all(asked: Iterable[Awaitable[T]]) -> list[T]:
    """The answers of all. Where hosts are lost, all of them are named: their errors come at about the same time."""
    tasks = [asyncio.ensure_future(one) for one in asked]
    if not tasks:
        return []
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_EXCEPTION)
        if wrong := [task.exception() for task in tasks if task.done() and task.exception()]:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait(tasks, timeout=1.0)
            lost = [each for task in tasks if task.done() and isinstance(each := task.exception(), LostError)]
            first = lost[0] if lost else wrong[0]
            if len(lost) > 1:
                raise PlaceError(_listed([str(one) for one in lost]), hint=lost[0].hint)
            assert first is not None  # noqa: S101 - one of them has failed
            raise first
        return [task.result() for task in tasks]
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
