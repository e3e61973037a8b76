"""Hosts as they may join, so that `bind` can show a plan before anything has started."""

from __future__ import annotations

import collections
import dataclasses
import itertools

from phalanx.plan.bind import serves
from phalanx.plan.host import Host
from phalanx.plan.outline import Outline
from phalanx.plan.part import part
from phalanx.plan.placement import place
from phalanx.plan.size import at_its_largest, elastic_of

#: The first port shown where the job declares no range. Examples: the real ones are held when agents start.
EXAMPLE_PORT = 20000

_HIGHEST_PORT = 65535

#: More GPUs than any host has, for a preview that does not know them.
_PLENTY = 1 << 16


def preview_hosts(
    outline: Outline,
    *,
    name: str = "localhost",
    address: str = "127.0.0.1",
    folder: str = "",
    machine: Host | None = None,
) -> tuple[Host, ...]:
    """`outline.hosts` hosts on one machine, their ports examples: of the declared range, else from 20000 on.

    Simulated hosts are numbered after the machine, and share what it has. `machine` None takes GPUs for plenty. Raises
    PlaceError where the hosts do not suffice.
    """
    whole = Host(id=0, name="", address="", ports=(), gpus=_PLENTY) if machine is None else machine
    hosts = tuple(
        dataclasses.replace(
            part(whole, number, outline.hosts) if machine is not None else whole,
            id=number,
            name=name if outline.hosts == 1 else f"{name}-{number}",
            address=address,
            folder=folder,
        )
        for number in range(outline.hosts)
    )
    wanted = collections.Counter(
        host.id for task, host in place(outline, hosts).items() if serves(outline, outline.role(task.type))
    )
    low, high = outline.ports or (EXAMPLE_PORT, _HIGHEST_PORT)
    ports = iter(range(low, high + 1))
    return tuple(dataclasses.replace(host, ports=tuple(itertools.islice(ports, wanted[host.id]))) for host in hosts)


def held_ports(outline: Outline) -> tuple[int, ...]:
    """How many ports each host has to hold for one generation, by its number.

    A job that goes on with fewer hosts moves its chief, and what else listens, to any of those that are left.
    """
    wanted = [len(host.ports) for host in preview_hosts(dataclasses.replace(at_its_largest(outline), ports=None))]
    elastic = elastic_of(outline)
    if outline.hosts == 1 or elastic is None or elastic.fewest == elastic.most:
        return tuple(wanted)
    return tuple(max(count, room_anywhere(outline)) for count in wanted)


def room_anywhere(outline: Outline) -> int:
    """Ports with which a host can take whatever a generation may place on it."""
    elastic = elastic_of(outline)
    if elastic is None:
        return len(outline.tasks())
    others = sum(role.count for role in outline.roles if role.type != "worker" and serves(outline, role))
    return elastic.room(elastic.most) + others
