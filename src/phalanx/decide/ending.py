"""What the lead does next, and before a run ends a look, where its leader ran, at what it has left behind."""

from __future__ import annotations

from collections.abc import Sequence

from phalanx.decide.next_step import Action, Say, Wake, next_step
from phalanx.events import OutputsAsked, OutputsFound, RunEnded
from phalanx.plan.policies import Policies
from phalanx.states import RunState

#: Seconds that the look may take: a dead disk is no reason for a run not to end.
PATIENCE = 5.0


def step(state: RunState, policies: Policies, wanted: Sequence[str], now: float) -> tuple[Action, ...]:
    """As `next_step`, but where the run is to end, a look at the `wanted` outputs comes first."""
    actions = next_step(state, policies, now)
    ends = any(isinstance(action, Say) and isinstance(action.event, RunEnded) for action in actions)
    leader = state.leading
    if not ends or not wanted or leader is None or leader.started is None or isinstance(state.outputs, OutputsFound):
        return actions
    host = state.hosts.get(leader.host) if leader.host is not None else None
    if host is None or not host.living:
        return actions
    if state.outputs is None:
        return (Say(event=OutputsAsked(time=now, host=host.id, patterns=tuple(wanted))),)
    until = state.outputs.time + PATIENCE
    return (Wake(at=until),) if now < until else actions
