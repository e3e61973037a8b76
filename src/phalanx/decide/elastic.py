"""When an elastic group changes its size: at once where somebody asks, after a cool-down where a host has come."""

from __future__ import annotations

import collections
from collections.abc import Collection, Iterable

from phalanx import events as ev
from phalanx.names import TaskId
from phalanx.plan.host import Host
from phalanx.plan.outline import Outline
from phalanx.plan.policies import Policies
from phalanx.plan.size import resized
from phalanx.states import RunPhase, RunState


def resize(state: RunState, policies: Policies, now: float) -> ev.ResizeOrdered | float | None:
    """The order to stop for another size; the time at which there will be one; None where the size is right.

    Only growth, what somebody asked for, and hosts that are taken away come this way: a lost host ends its generation
    by itself.
    """
    if state.phase is not RunPhase.RUNNING or state.bound is None:
        return None
    before, hosts = workers(state.tasks), living_hosts(state, "worker")
    size = (state.elastic.size(hosts, state.asked) if state.elastic else None) or before
    going = next((host for host in state.hosts.values() if host.leaving and uses(state, host.id)), None)
    if going is not None:
        why = f"host {going.joined.name} is taken away"
    elif size == before:
        return None
    elif size == state.asked and state.scale is not None and state.scale.time >= state.bound:
        why = f"scaled from {before} to {_workers(size)}"
    elif size > before:
        why = f"grown from {before} to {_workers(size)}: {hosts} hosts are there"
        if now < (due := state.bound + policies.resize.cooldown):
            return due
    else:
        return None
    return ev.ResizeOrdered(time=now, generation=state.generation, before=before, workers=size, why=why)


def workers(tasks: Iterable[TaskId]) -> int:
    """How many of the tasks a size counts."""
    return sum(task.type == "worker" for task in tasks)


def _workers(count: int) -> str:
    return f"{count} worker" if count == 1 else f"{count} workers"


def living_hosts(state: RunState, kind: str = "") -> int:
    """Hosts whose agents are expected to answer, and to stay; with `kind` those of them that take tasks of it."""
    return sum(
        host.living and not host.leaving and (not kind or host.joined.role in ("", kind))
        for host in state.hosts.values()
    )


def of_roles(state: RunState) -> bool:
    """Whether hosts take tasks of one role alone, as pods do: then each carries one."""
    return any(host.joined.role for host in state.hosts.values())


def missing(state: RunState, *, whole: bool = False) -> dict[str, tuple[int, int]]:
    """By role, where hosts are of roles: how many are there and how many are needed, for those that have too few.

    `whole`: as many as declared, where the workers of an elastic job may be fewer to begin with.
    """
    if not of_roles(state):
        return {}
    needed = collections.Counter(task.type for task in state.tasks)
    if state.elastic is not None:
        needed["worker"] = state.elastic.count if whole else state.elastic.fewest
    there = {kind: living_hosts(state, kind) for kind in sorted(needed)}
    return {kind: (there[kind], count) for kind, count in sorted(needed.items()) if there[kind] < count}


def awaits(state: RunState) -> str:
    """Whom a generation waits for, in words: `1 of 2 hosts are there`, `0 of 1 ps and 1 of 2 worker pods are there`."""
    if short := missing(state):
        roles = " and ".join(f"{there} of {count} {kind}" for kind, (there, count) in short.items())
        return f"{roles} pods are there"
    return f"{living_hosts(state)} of {state.wanted_hosts} hosts are there"


def uses(state: RunState, host: int) -> bool:
    """Whether a task of this generation is there, or will be."""
    return any(task.host == host and not task.phase.over for task in state.tasks.values())


def outline_for(outline: Outline, state: RunState, hosts: Collection[Host]) -> Outline:
    """The job in the size that these hosts take."""
    for_workers = sum(host.takes("worker") for host in hosts)
    size = state.elastic.size(for_workers, state.asked) if state.elastic else None
    return outline if size is None else resized(outline, size)


def can_start(state: RunState) -> bool:
    """Whether the living hosts suffice for a generation, perhaps a smaller one."""
    if of_roles(state):
        return not missing(state)
    living = living_hosts(state)
    if state.elastic is None:
        return living >= state.wanted_hosts
    return state.elastic.size(living, state.asked) is not None


def is_complete(state: RunState) -> bool:
    """Whether every host that was declared has come."""
    return not missing(state, whole=True) if of_roles(state) else living_hosts(state) >= state.wanted_hosts
