"""Proof that a restart went on where the training was: which checkpoint was read, and how many steps it holds."""

from __future__ import annotations

from phalanx.events import Event, Noted, Resumed
from phalanx.states import RunState
from phalanx.taskstate import TaskState


def resumption(state: RunState, now: float) -> tuple[Event, ...]:
    """What the leader's first step proves; empty before it, after it was said, and in a first start from zero.

    A worker that went on from another number of steps than the leader is noted: with a folder for each worker, a kill
    between two saves leaves them apart (facts §3).
    """
    leader = state.leading
    if leader is None or leader.first_step is None or _said(state, leader):
        return ()
    before = state.past[-1].step if state.past else None
    path = leader.restored.path if leader.restored else ""
    lost = max(0, before - leader.base) if before is not None and leader.base is not None else None
    found: list[Event] = [
        Resumed(
            time=now,
            generation=leader.generation,
            attempt=leader.attempt,
            task=leader.id,
            path=path,
            step=leader.base,
            lost=lost,
        )
    ]
    for task in state.tasks.values():
        if task.restored is not None and None not in (task.base, leader.base) and task.base != leader.base:
            words = f"{task.id} went on from {task.base} steps ({task.restored.path}), {leader.id} from {leader.base}"
            found.append(Noted(time=now, task=task.id, message=f"{words}: one shared checkpoint would keep them equal"))
    return tuple(found)


def _said(state: RunState, leader: TaskState) -> bool:
    place = (leader.generation, leader.attempt)
    begins = place == (1, 1) and leader.restored is None
    return begins or any((said.generation, said.attempt) == place for said in state.resumed)
