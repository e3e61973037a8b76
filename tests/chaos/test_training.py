"""Since when a made-up run trains."""

from __future__ import annotations

import dataclasses

from builders import History, history, running
from phalanx import events as ev
from phalanx.chaos.training import STEPLESS, Training
from phalanx.states import RunState


def since(told: History, *times: float, must_listen: bool = True, steps: bool | None = None) -> float | None:
    """Since when it trains, looked at in these seconds."""
    training = Training(steps=steps)
    for now in times:
        training.see(state(told, must_listen=must_listen), now)
    return training.since


def state(told: History, *, must_listen: bool = True) -> RunState:
    return dataclasses.replace(told.state, must_listen=must_listen)


def started() -> History:
    return history("chief:0", "worker:0", "ps:0", strategy="ps").joined().bound().started()


def test_a_group_that_has_only_started_does_not_train():
    assert since(started(), 2.0, 90.0) is None
    assert since(started(), 2.0, 90.0, must_listen=False) == 2.0, "nothing more is known of such a script"


def test_the_chiefs_first_step_is_not_yet_training_while_a_worker_does_not_listen():
    told = started().listening("chief:0", "ps:0").lives(ev.TaskStepped, "chief:0", step=1)
    assert since(told, 2.0, 90.0) is None
    assert since(told.listening("worker:0"), 2.0) == 2.0


def test_a_group_that_listens_is_given_time_for_a_step_that_may_not_be_told():
    told = started().listening()
    assert since(told, 2.0, 1.9 + STEPLESS) is None
    assert since(told, 2.0, 2.0 + STEPLESS) == 2.0 + STEPLESS


def test_whether_steps_are_told_is_known_from_the_run_before():
    assert since(started().listening(), 2.0, 900.0, steps=True) is None
    assert since(started().listening(), 2.0, steps=False) == 2.0
    assert since(running(), 2.0, must_listen=False, steps=True) is None


def test_a_group_that_starts_again_has_to_train_again_and_the_first_moment_stays():
    training, told = Training(), running().lives(ev.TaskStepped, "worker:0", step=1)
    training.see(state(told), 3.0)
    training.see(state(told.exited("worker:1", signal=9).culprit("worker:1", "killed").restarted()), 4.0)
    assert (training.began, training.since) == (3.0, None)
    told.bound().started().listening()
    training.see(state(told), 5.0)
    training.see(state(told.lives(ev.TaskStepped, "worker:0", step=1)), 6.0)
    assert (training.began, training.since) == (3.0, 6.0)
