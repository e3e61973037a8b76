"""What is left of a training that did not come to its end: its newest checkpoint, and the steps that are lost."""

from __future__ import annotations

import dataclasses

from phalanx.states import RunPhase, RunState, steps_done
from phalanx.taskstate import total_steps


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class KeptReport:
    """What a new run would go on from."""

    #: The newest complete checkpoint; empty: none was written, and none read.
    path: str
    #: Training steps that it holds; None where another run wrote it.
    step: int | None
    #: Steps that had been done beyond it; None where nobody can tell.
    lost: int | None


def kept(state: RunState) -> KeptReport | None:
    """None for a run that goes on or has succeeded, and where neither a checkpoint nor a step is known of."""
    if not state.phase.terminal or state.phase is RunPhase.SUCCEEDED:
        return None
    path, step = _newest(state)
    done = steps_done(state)
    if done is None and state.past:
        done = state.past[-1].step
    if not path and done is None:
        return None
    lost = None if done is None or step is None else max(done - step, 0)
    leader = state.leading
    if step is None and leader is not None and leader.saved is not None:  # another run's steps came before both
        lost = max(leader.step - leader.saved.step, 0)
    return KeptReport(path=path, step=step, lost=lost)


def _newest(state: RunState) -> tuple[str, int | None]:
    """The leader's: what others write is for the moment, or for themselves."""
    leader = state.leading
    if leader is not None and leader.saved is not None:
        return leader.saved.path, total_steps(leader, leader.saved.step)
    if leader is not None and leader.restored is not None:
        return leader.restored.path, leader.base
    before = [proof for proof in state.resumed if proof.path]
    known = [(path, step) for path, step in state.saved.items() if step is not None]
    if known:  # the leader has not come so far in this generation
        return max(known, key=lambda one: one[1])
    return (before[-1].path, before[-1].step) if before else ("", 0)
