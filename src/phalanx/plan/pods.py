"""Hosts that are each of one role, and take one task of it: what a job looks like where a pod is a host."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator

from phalanx.errors import PlaceError
from phalanx.names import training_order
from phalanx.plan.bind import serves
from phalanx.plan.host import Host
from phalanx.plan.outline import Outline, Role

#: The port at which a lead answers in its pod, and at which the others would.
PORT = 8476

#: Exit codes of the agent after which another pod would change nothing: failed, wrong input, stopped, and a run that
#: has ended for want of a place. Where only this pod is at fault its code is 3, and another one is to come.
NO_PLACE = 5
FINAL = (1, 2, 4, NO_PLACE)

#: So many GPUs that none is wanting, in a plan that knows none of the machines.
_PLENTY = 1 << 16

#: Above this are the epochs of leads that begin a run anew in a pod which replaces another, a multiple for each.
ANEW = 10_000


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class PodSet:
    """The pods of one role. Pod `i` is the host of number `first` + i, whatever task it carries."""

    role: str
    first: int
    #: How many there are at most: so many numbers are kept for them.
    most: int
    #: How many there are at the beginning.
    count: int


def final(code: int) -> int:
    """What a pod exits with whose run has ended with this code."""
    return NO_PLACE if code == PlaceError.exit_code else code


def one_task_a_host(outline: Outline) -> Outline:
    """The same job where every task has a host of its own."""
    roles = tuple(dataclasses.replace(role, per_host=1) for role in outline.roles)
    return dataclasses.replace(outline, roles=roles, hosts=sum(role.count for role in roles))


def pod_sets(outline: Outline) -> tuple[PodSet, ...]:
    """One a role: the lead's own first, so that its pod 0 is host 0; then as TensorFlow orders tasks."""
    leader = outline.leader
    roles = [role for role in outline.roles if role.count]
    roles.sort(key=lambda role: (leader is None or role.type != leader.type, training_order(role.tasks()[0])))
    return tuple(_numbered(roles))


def _numbered(roles: list[Role]) -> Iterator[PodSet]:
    first = 0
    for role in roles:
        most = max(role.max or 0, role.count)
        yield PodSet(role=role.type, first=first, most=most, count=role.count)
        first += most


def pod_hosts(outline: Outline, address: Callable[[str, int], str], *, folder: str = "") -> tuple[Host, ...]:
    """The hosts of the first generation, as far as they are known before any has joined, with example ports.

    `address`: the name of a role's pod `i`.
    """
    low = outline.ports[0] if outline.ports else 20000
    return tuple(
        Host(
            id=pods.first + index,
            name=address(pods.role, index).partition(".")[0],
            address=address(pods.role, index),
            ports=(low,) if room(outline, pods.role) else (),
            gpus=_PLENTY,
            role=pods.role,
            folder=folder,
        )
        for pods in pod_sets(outline)
        for index in range(pods.count)
    )


def room(outline: Outline, role: str) -> int:
    """Ports that a host of that role holds for one generation."""
    return int(serves(outline, outline.role(role)))
