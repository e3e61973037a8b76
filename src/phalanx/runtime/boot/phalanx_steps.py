"""What the runtime makes of what it hears: which function trains, how far it is, what was saved."""

import sys

TYPE_CHECKING = False  # as in phalanx_standby
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from phalanx.runtime.boot.phalanx_life import Line

# Places of the words, as in phalanx_life.
_STEPS, _STEPPED, _LONGEST, _TRACING, _VALIDATION, _SAVING = range(1, 7)
_IN_EPOCH, _INSIDE = 12, 16

#: How often a function without gradients is called before it is taken for the one that trains.
_A_LOOP = 10

#: By these a training call says that there is no more data, and nothing else.
_NO_MORE = ("OutOfRangeError", "StopIteration")

#: Nanoseconds between two looks at what costs more than a store: a loss, the time in collectives.
_LOOK = 250_000_000


class Steps:
    """Which function trains, and how often it has been called. Nothing in it raises.

    A step is one call, from the main thread and from inside no other, of a tf.function in which gradients were taken
    while it was traced; or of a tape's gradient() outside any; or of ClusterCoordinator.schedule. A program that takes
    no gradients is counted by the function that it calls most.
    """

    def __init__(self, line: "Line") -> None:
        """`line`: where it is written."""
        import _thread

        self.line, self.main_thread, self.ident = line, line.main_thread, _thread.get_ident
        #: The outermost function that runs in the main thread now.
        self.current: "Any" = None
        #: How many functions are being traced, one inside the other.
        self.tracing = 0
        #: Training calls that have begun, of all functions together.
        self.begun = 0
        #: Where a training call waits to be told whether to go on; None: it need not ask.
        self.gate: "Callable[[], bool] | None" = None
        #: What is done once, after the first step, in the main thread.
        self.on_first: "Callable[[], None] | None" = None
        #: Called with what a step has returned: after the first one, and then after one in a while.
        self.looks: "list[Callable[[Any], None]]" = []
        #: Called with what every other step has returned: to keep it, for the end of the program.
        self.keep: "Callable[[Any], None] | None" = None
        self._look_at = 0
        self._counts: "dict[int, int]" = {}
        self._training: "dict[int, Any]" = {}
        self._other, self._row = 0, 0  # the last function that does not train, and how often in a row
        self._paused = True
        self._first_said = False

    def before(self, function: "Any") -> bool:
        """A call begins in the main thread. Whether the program is to leave instead."""
        key = id(function)
        if key in self._training:
            self.begun += 1
            self._row = 0
            self.line.words[_VALIDATION] = 0
            self.line.words[_INSIDE] = 1
            if self.gate is not None and self.gate():
                return True
        elif self._training:
            # Once is anything (a metric, a learning rate); in a row, with no step between, it is validation.
            self._row = self._row + 1 if key == self._other else 1
            self._other = key
            self.line.words[_VALIDATION] = 1
            self.line.words[_INSIDE] = 0
        elif self._counts.get(key, 0) >= _A_LOOP:
            self.line.words[_INSIDE] = 1  # no gradients anywhere: this is what is counted
        self.current = function
        return False

    def after(self, function: "Any", done: bool, result: "Any" = None) -> None:  # noqa: FBT001 - yes or no
        """It has ended: by an exception where it is not `done`, else with this result."""
        self.current = None
        try:
            key = id(function)
            trains = key in self._training
            if (trains or not self._training) and (done or _ran_out()):
                self.line.words[_INSIDE] = 0  # one that an exception ends is where the program has come to
            if not trains and self._row == 1:
                self.line.words[_VALIDATION] = 0
            if self._row > 1:
                self._paused = True
            if not done:
                return
            count = self._counts[key] = self._counts.get(key, 0) + 1
            if trains or (not self._training and count >= _A_LOOP):
                self._step(count, result)
        except Exception:  # noqa: BLE001 - not counted, and never the program's trouble
            return

    def _step(self, count: int, result: "Any") -> None:
        words, now = self.line.words, self.line.now()
        if not self._paused and now - words[_STEPPED] > words[_LONGEST]:
            words[_LONGEST] = now - words[_STEPPED]
        self._paused = False
        words[_STEPPED] = now
        words[_STEPS] = max(words[_STEPS], count)
        words[_IN_EPOCH] += 1
        if now >= self._look_at:
            self._look_at = now + _LOOK
            for look in self.looks:
                look(result)
        elif self.keep is not None:
            self.keep(result)
        if not self._first_said:
            self._first_said = True
            self.line.say("first-step")
            if self.on_first is not None:
                self.on_first()

    def trains(self, function: "Any") -> None:
        """Gradients are taken in it: from now on it counts."""
        try:
            key = id(function)
            if key in self._training:
                return
            if not self._training:
                self.line.words[_STEPS] = self.line.words[_IN_EPOCH] = 0
            if type(function) is object:
                self._training[key] = function
            else:
                self._training[key] = sys.modules["_weakref"].ref(function, lambda _: self._forget(key))
            if self.current is function:
                self.begun += 1
                self.line.words[_INSIDE] = 1
        except Exception:  # noqa: BLE001 - as above
            return

    def _forget(self, key: int) -> None:
        self._training.pop(key, None)
        self._counts.pop(key, None)

    def traces(self, change: int) -> None:
        """One more function is being traced, or one less."""
        self.tracing += change
        self._paused = True
        self.line.words[_TRACING] = max(self.tracing, 0)

    def pause(self) -> None:
        """The gap between the steps around this moment is no measure of anything."""
        self._paused = True


def _ran_out() -> bool:
    """Whether the exception on its way says that the data are at their end."""
    kind = sys.exc_info()[0]
    return kind is not None and kind.__name__ in _NO_MORE


class Deeds:
    """Checkpoints saved and restored: the outermost call that has returned is the one that counts."""

    def __init__(self, steps: Steps, absolute: "Callable[[Any], str]") -> None:
        """`absolute`: makes of a program's path one for everybody."""
        self._steps, self._absolute = steps, absolute
        self._open: "dict[tuple[int, str], list[Any]]" = {}

    def begin(self, kind: str) -> None:
        """A call that saves ("saved") or restores ("restored") begins."""
        inner = self._open.setdefault((self._steps.ident(), kind), [0, None])
        inner[0] += 1
        if self._steps.ident() == self._steps.main_thread:
            self._steps.pause()
            if kind == "saved":
                self._steps.line.words[_SAVING] = inner[0]

    def end(self, kind: str, done: bool, path_of: "Callable[[Any], Any]") -> None:  # noqa: FBT001 - yes or no
        """It has ended: by an exception where it is not `done`."""
        try:
            key = (self._steps.ident(), kind)
            inner = self._open[key]
            inner[0] -= 1
            if kind == "saved" and key[0] == self._steps.main_thread:
                self._steps.line.words[_SAVING] = inner[0]
            path = path_of(inner[1]) if done else None
            if path is not None:
                inner[1] = path
            if inner[0] == 0:
                del self._open[key]
                if done and inner[1] is not None:
                    about = {"step": self._steps.line.words[_STEPS]} if kind == "saved" else {}
                    self._steps.line.say(kind, path=self._absolute(inner[1]), **about)
        except Exception:  # noqa: BLE001 - not told, and never the program's trouble
            return
