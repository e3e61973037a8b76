"""Which host runs which task: pure, deterministic, and the same for everyone who asks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from phalanx.errors import PlaceError
from phalanx.names import TaskId
from phalanx.plan.host import Host
from phalanx.plan.outline import Outline, Role


def place(outline: Outline, hosts: Sequence[Host]) -> Mapping[TaskId, Host]:
    """Give every task a living host: neighbours in index share a host, so that a ring crosses few links.

    With `per_host` a role fills hosts in their order; without, it spreads evenly. A host of one role is passed over by
    all others. Raises PlaceError where the hosts do not suffice.
    """
    if not hosts:
        message = "no host has joined"
        raise PlaceError(message)
    placed: dict[TaskId, Host] = {}
    for role in outline.roles:
        placed |= _place_role(role, [host for host in hosts if host.takes(role.type)])
    return placed


def fellows(tasks: Iterable[TaskId], placed: Mapping[TaskId, Host]) -> Mapping[int, list[TaskId]]:
    """The same tasks in their order, by the number of their host."""
    found: dict[int, list[TaskId]] = {}
    for task in tasks:
        found.setdefault(placed[task].id, []).append(task)
    return found


def _place_role(role: Role, hosts: Sequence[Host]) -> dict[TaskId, Host]:
    if not hosts:
        if not role.count:
            return {}
        raise PlaceError(f"{role.count} {role.type} tasks, and no host has joined that takes any")
    room = role.per_host if role.per_host is not None else -(-role.count // len(hosts))
    if room * len(hosts) < role.count:
        message = (
            f"{role.count} {role.type} tasks at {room} a host need {-(-role.count // room)} hosts; {len(hosts)} joined"
        )
        raise PlaceError(message, hint="raise --workers-per-host, or give more hosts")
    if role.per_host is not None:
        return {task: hosts[task.index // room] for task in role.tasks()}
    # An even spread: the first `rest` hosts take one task more than the others.
    base, rest = divmod(role.count, len(hosts))
    placed: dict[TaskId, Host] = {}
    tasks = iter(role.tasks())
    for number, host in enumerate(hosts):
        for _ in range(base + (number < rest)):
            placed[next(tasks)] = host
    return placed
