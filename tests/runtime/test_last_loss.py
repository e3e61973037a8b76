"""The loss that a run ends with is that of its last step, however seldom one is read."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from phalanx.runtime.boot.phalanx_fit import Fit
from phalanx.runtime.boot.phalanx_steps import Steps


class EagerTensor:
    """As much of one as is looked at."""

    dtype = SimpleNamespace(is_floating=True)

    def __init__(self, value: float, *, rank: int = 0, device: str = "CPU:0") -> None:
        self.value, self.shape, self.backing_device = value, SimpleNamespace(rank=rank), device

    def __float__(self) -> float:
        return self.value


def line() -> Any:
    return SimpleNamespace(words=[0] * 32, numbers=[0.0] * 32, main_thread=0, now=lambda: 1, say=lambda *_: None)


def trained(losses: list[Any]) -> tuple[Any, Fit]:
    """A loop of so many steps, all within one look."""
    memory = line()
    steps, fit = Steps(memory), Fit(memory)
    steps.looks, steps.keep = [fit.look], fit.keep
    function = object()
    steps.trains(function)
    for loss in losses:
        steps.before(function)
        steps.after(function, True, loss)  # noqa: FBT003 - it is done
    return memory, fit


def test_the_last_loss_of_a_short_loop_is_read_at_the_end_of_the_program():
    memory, fit = trained([EagerTensor(58.0), EagerTensor(60.0), {"loss": EagerTensor(62.0)}])
    assert memory.numbers[14] == 58.0
    fit.at_end()
    assert (memory.numbers[14], memory.words[13]) == (62.0, 2)
    fit.at_end()
    assert memory.words[13] == 2


def test_at_the_end_no_device_is_waited_for_and_nothing_but_a_loss_is_kept():
    for last in (EagerTensor(62.0, device="GPU:0"), EagerTensor(62.0, rank=2), "text", None):
        memory, fit = trained([EagerTensor(58.0), last])
        fit.at_end()
        assert memory.numbers[14] == 58.0


def test_what_an_epoch_came_to_is_not_replaced_by_its_last_batch():
    memory, fit = trained([EagerTensor(58.0), EagerTensor(62.0)])
    fit.epoch_ends({"loss": 60.0})
    fit.at_end()
    assert memory.numbers[14] == 60.0
