"""When an elastic group changes its size: at once where somebody asks, after a cool-down where a host has come."""

from __future__ import annotations

from collections.abc import Iterable

from phalanx import events as ev
from phalanx.names import TaskId
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
    before, hosts = workers(state.tasks), living_hosts(state)
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


def living_hosts(state: RunState) -> int:
    """Hosts whose agents are expected to answer, and to stay."""
    return sum(host.living and not host.leaving for host in state.hosts.values())


def uses(state: RunState, host: int) -> bool:
    """Whether a task of this generation is there, or will be."""
    return any(task.host == host and not task.phase.over for task in state.tasks.values())


def outline_for(outline: Outline, state: RunState, hosts: int) -> Outline:
    """The job in the size that these hosts take."""
    size = state.elastic.size(hosts, state.asked) if state.elastic else None
    return outline if size is None else resized(outline, size)


def can_start(state: RunState) -> bool:
    """Whether the living hosts suffice for a generation, perhaps a smaller one."""
    living = living_hosts(state)
    if state.elastic is None:
        return living >= state.wanted_hosts
    return state.elastic.size(living, state.asked) is not None
