"""When an elastic group changes its size: at once where somebody asks, after a cool-down where a host has come."""

from __future__ import annotations

from phalanx import events as ev
from phalanx.plan.policies import Policies
from phalanx.states import RunPhase, RunState


def resize(state: RunState, policies: Policies, now: float) -> ev.ResizeOrdered | float | None:  # noqa: PLR0911 - one return a rule
    """The order to stop for another size; the time at which there will be one; None where the size is right.

    Only growth and what somebody asked for come this way: a lost host ends its generation by itself.
    """
    if state.phase is not RunPhase.RUNNING or state.bound is None:
        return None
    before = workers(state)
    going = [host for host in state.hosts.values() if host.leaving and uses(state, host.id)]
    if going:
        size = state.elastic.size(living_hosts(state), state.asked) if state.elastic else None
        why = f"host {going[0].joined.name} is taken away"
        return ev.ResizeOrdered(time=now, generation=state.generation, before=before, workers=size or before, why=why)
    if state.elastic is None:
        return None
    size = state.elastic.size(living_hosts(state), state.asked)
    if size is None or size == before:
        return None
    if size == state.asked and state.scale is not None and state.scale.time >= state.bound:
        why = f"scaled from {before} to {size} workers"
    elif size > before:
        why = f"grown from {before} to {size} workers: {living_hosts(state)} hosts are there"
        if now < (due := state.bound + policies.resize.cooldown):
            return due
    else:
        return None
    return ev.ResizeOrdered(time=now, generation=state.generation, before=before, workers=size, why=why)


def workers(state: RunState) -> int:
    """Workers of this generation."""
    return sum(task.type == "worker" for task in state.tasks)


def living_hosts(state: RunState) -> int:
    """Hosts whose agents are expected to answer, and to stay."""
    return sum(host.living and not host.leaving for host in state.hosts.values())


def uses(state: RunState, host: int) -> bool:
    """Whether a task of this generation is there, or will be."""
    return any(task.host == host and not task.phase.over for task in state.tasks.values())


def can_start(state: RunState) -> bool:
    """Whether the living hosts suffice for a generation, perhaps a smaller one."""
    living = living_hosts(state)
    if state.elastic is None:
        return living >= state.wanted_hosts
    return state.elastic.size(living, state.asked) is not None
