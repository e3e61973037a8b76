"""How far a program is, and how good: the epochs of `fit`, and the loss of what trains.

No callback is added (ParameterServerStrategy refuses those that have batch hooks, facts §2): the list that holds the
callbacks is heard where it begins and ends an epoch. A loss is read from what a step has returned, once in a while.
"""

TYPE_CHECKING = False  # as in phalanx_standby
if TYPE_CHECKING:
    from typing import Any

    from phalanx.runtime.boot.phalanx_life import Line

# Places of the words, as in phalanx_life.
_EPOCH, _EPOCHS, _PER_EPOCH, _IN_EPOCH, _LOSSES, _LOSS = range(9, 15)

#: What a step of Keras 3 returns: to open it costs an operation, and its `fit` tells the loss at the end of an epoch.
_OPTIONAL = "_OptionalImpl"


class Fit:
    """What a program's `fit` tells of itself. Nothing in it raises."""

    def __init__(self, line: "Line") -> None:
        """`line`: where it is written."""
        self._line = line
        self._held: "Any" = None  # a loss on an accelerator, which may still be on its way
        self._newest: "Any" = None  # a loss that nobody has looked at yet
        self._over = -1  # steps in the last epoch of a `fit` that is through; below 0: none is

    def begins(self, callbacks: "Any") -> None:
        """`callbacks`: the list with which it goes through its epochs."""
        try:
            about = getattr(callbacks, "params", None) or {}
            self._over = -1
            self._set(_EPOCH, 0)
            self._set(_EPOCHS, about.get("epochs"))
            steps, model = about.get("steps"), getattr(callbacks, "model", None)
            if steps:
                each = getattr(model, "steps_per_execution", 1)
                each = int(each.numpy() if hasattr(each, "numpy") else each or 1)  # of tf_keras it is a variable
                steps = -(-int(steps) // max(each, 1))
            self._set(_PER_EPOCH, steps)
        except Exception:  # noqa: BLE001 - not told, and never the program's trouble
            return

    def epoch_begins(self, epoch: "Any") -> None:
        """`epoch` counts from 0."""
        try:
            self._set(_EPOCH, int(epoch) + 1)
            self._set(_IN_EPOCH, 0)
        except Exception:  # noqa: BLE001 - as above
            return

    def epoch_ends(self, logs: "Any") -> None:
        """`logs`: what the epoch has come to, by name, as numbers."""
        try:
            words = self._line.words
            if not words[_PER_EPOCH]:  # a data set that does not know its size: now it is counted
                words[_PER_EPOCH] = words[_IN_EPOCH]
            loss = logs.get("loss") if logs else None
            self._newest = None
            if loss is not None:
                self._write(float(loss))
        except Exception:  # noqa: BLE001 - as above
            return

    def ends(self) -> None:
        """What it has told stays, until something else trains."""
        self._over = self._line.words[_IN_EPOCH]

    def look(self, result: "Any") -> None:
        """Read the loss of a step that has returned `result`. Never waits for the device that computes it."""
        try:
            if 0 <= self._over < self._line.words[_IN_EPOCH]:
                self._over = -1
                self._set(_EPOCH, 0)
            held, self._held, self._newest = self._held, None, None
            loss = _scalar(result)
            if loss is not None and "CPU" not in loss.backing_device:
                self._held, loss = loss, held  # by the next look it has long been there
            if loss is not None:
                self._write(float(loss))
        except Exception:  # noqa: BLE001 - as above
            return

    def keep(self, result: "Any") -> None:
        """What a step has returned that is not looked at. A loss alone is kept: nothing else lives longer for it."""
        try:
            self._newest = _scalar(result) if type(result).__name__ != _OPTIONAL else None
        except Exception:  # noqa: BLE001 - as above
            return

    def at_end(self) -> None:
        """The program is through: the newest loss is read, where that waits for no device."""
        try:
            newest, self._newest = self._newest, None
            if newest is not None and "CPU" in newest.backing_device:
                self._write(float(newest))
        except Exception:  # noqa: BLE001 - as above
            return

    def _set(self, place: int, value: "Any") -> None:
        self._line.words[place] = int(value or 0)

    def _write(self, loss: float) -> None:
        self._line.numbers[_LOSS] = loss
        self._line.words[_LOSSES] += 1


def _scalar(result: "Any") -> "Any":
    """The loss in what a training step returns: a single number, or the one of that name. None where there is none."""
    if type(result).__name__ == _OPTIONAL:
        result = result.get_value() if bool(result.has_value()) else None
    if type(result) is dict:
        result = result.get("loss")
    if type(result).__name__ != "EagerTensor" or not result.dtype.is_floating or result.shape.rank != 0:
        return None
    return result
