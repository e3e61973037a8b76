"""What a host is asked to look at before step one, and the two things it may answer: facts and faults. Pure."""

from __future__ import annotations

import dataclasses
import math

from phalanx.plan.outline import Strategy
from phalanx.plan.plan import Plan

#: Up to this many hosts, every pair is tried; beyond, every host tries its neighbours, the leader's host and a few.
ALL_PAIRS = 64

#: The part of the start deadline for which a name may stay unknown: late DNS is no failure (R44).
_SHARE = 0.9


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Peer:
    """A host to reach, at the ports it holds for its tasks."""

    host: int
    name: str
    address: str
    ports: tuple[int, ...]


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Checklist:
    """One host's part of the preflight."""

    #: This host among them: its own address must be its own.
    peers: tuple[Peer, ...]
    #: How many hosts and how many tasks of the cluster there are in all.
    hosts: int
    tasks: int
    #: Seconds for which a name may stay unknown.
    patience: float
    checkpoint: str = ""
    #: Whether this host writes the token that the others read.
    writes: bool = False
    #: Whether every training task must see the same number of GPUs.
    same_gpus: bool = False
    #: Later generations look only at what may have changed.
    again: bool = False
    #: Checks that the user has switched off.
    ignored: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Fact:
    """Something that is so on a host, to be compared with the others: `tensorflow` is `2.21.0`."""

    name: str
    value: str
    #: What it is a fact of, where a host has several: the script's path.
    of: str = ""


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Fault:
    """What a check has found wrong on a host, in words without the host's name."""

    check: str
    words: str
    #: The other host, where it lies between two.
    peer: int | None = None


def checklists(plan: Plan) -> dict[int, Checklist]:
    """By host with tasks: what it is to look at. The leader's host, else the first, writes the token."""
    used = list(dict.fromkeys(task.host for task in plan.tasks))
    ports: dict[int, list[int]] = {}
    for task in plan.tasks:
        if task.port is not None:
            ports.setdefault(task.host, []).append(task.port)
    peers = [
        Peer(host=host.id, name=host.name, address=host.address, ports=tuple(ports[host.id]))
        for host in plan.hosts
        if host.id in ports
    ]
    at = {peer.host: number for number, peer in enumerate(peers)}
    outline = plan.outline
    leader = plan.task(outline.leader).host if outline.leader else used[0]
    return {
        host: Checklist(
            peers=tuple(peers[number] for number in tried(len(peers), at[host], at.get(leader, 0)))
            if host in at
            else (),
            hosts=len(used),
            tasks=sum(map(len, ports.values())),
            patience=_SHARE * outline.policies.health.start,
            checkpoint=outline.checkpoint or "",
            writes=host == leader,
            same_gpus=outline.strategy is Strategy.MWMS,
            again=plan.generation > 1,
            ignored=outline.policies.preflight.ignore,
        )
        for host in used
    }


def tried(hosts: int, own: int, leader: int) -> list[int]:
    """Which of `hosts` the one at `own` tries, itself included, by their places in the row."""
    if hosts <= ALL_PAIRS:
        return list(range(hosts))
    # At the distances 2, 4, 8 …: the graph of all who try is connected, and no two hosts try the same few.
    far = [own + 2 ** (step + 1) for step in range(math.ceil(math.log2(hosts)))]
    return sorted({number % hosts for number in (own - 1, own, own + 1, leader, *far)})
