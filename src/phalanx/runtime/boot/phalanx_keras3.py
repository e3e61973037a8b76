"""Keras 3 under MultiWorkerMirroredStrategy with two workers or more: `fit`, `evaluate` and `predict` made to work.

Two functions of Keras are wrong there, each hidden behind the other (facts §1, keras-team/keras#20585): the first batch
is averaged as one value, though it is a structure, only to learn its shapes; and the logs of a step, which are scalars,
are averaged over an axis they do not have. Each is tried on made-up values before it is touched: one that does right
stays as it is, and so does one that does something else.

The logs become the mean over all workers, as Keras means them: callbacks that decide by a log (early stopping, the best
checkpoint) must decide alike everywhere.
"""

import os
import sys

TYPE_CHECKING = False  # as in phalanx_standby
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from phalanx.runtime.boot.phalanx_life import Line

#: What a function of Keras was found to do.
RIGHT, WRONG, UNKNOWN = "right", "wrong", "unknown"

_ISSUE = "keras-team/keras#20585"


def together(strategy: "Any") -> bool:
    """Whether it is a MultiWorkerMirroredStrategy of several workers."""
    if not any(kind.__name__ == "CollectiveAllReduceStrategy" for kind in type(strategy).__mro__):
        return False
    return bool(strategy.extended._in_multi_worker_mode())  # noqa: SLF001 - as Keras asks it


def leads(strategy: "Any") -> bool:
    """Whether this process is the chief, else worker 0."""
    return bool(strategy.extended._is_chief)  # noqa: SLF001 - TensorFlow has no other word for it


def wanted() -> bool:
    """Whether Keras may be touched: `keras: off` says no."""
    return os.environ.get("PHALANX_KERAS") != "off"


def concerns(strategy: "Any") -> bool:
    """Whether what it trains is to be made to work here; None: there is no strategy."""
    return strategy is not None and together(strategy) and wanted()


class Notes:
    """What people should read once in a run: the leader says it, in the first generation."""

    def __init__(self, line: "Line") -> None:
        """Nothing is said yet."""
        self._line, self._said = line, set()  # type: ignore[var-annotated]  # of str

    def say(self, strategy: "Any", message: str) -> None:
        """Once for each message."""
        self.tell(message, leads=leads(strategy))

    def tell(self, message: str, *, leads: bool) -> None:
        """The same, where no strategy says who leads."""
        if message not in self._said and leads and os.environ.get("PHALANX_GENERATION", "1") == "1":
            self._line.say("note", message=message)
        self._said.add(message)


class Mend:
    """Both functions, of the one module `keras.src.backend.tensorflow.trainer`."""

    def __init__(self, notes: Notes, disguise: "Callable[[Any, Any], None]") -> None:
        """`disguise` gives a wrapper the name and the file of what it wraps."""
        self._notes, self._disguise = notes, disguise
        self._module: "Any" = None
        self._found: "dict[str, str] | None" = None

    def take(self, module: "Any") -> None:
        """Put the wrappers in place. They look at nothing before several workers train."""
        self._module = module
        _ = module.tf.distribute.DistributedValues, module.tree.map_structure  # another version has none: left alone
        self._build, self._reduce = module.TensorFlowTrainer._maybe_symbolic_build, module.reduce_per_replica  # noqa: SLF001 - Keras's
        build, reduce, mend = self._build, self._reduce, self

        def _maybe_symbolic_build(self: "Any", iterator: "Any" = None, data_batch: "Any" = None) -> "Any":
            if iterator is not None and mend._is_wrong("build", self._distribute_strategy):
                iterator = mend._of_this_worker(iterator, self._distribute_strategy)
            return build(self, iterator=iterator, data_batch=data_batch)

        def reduce_per_replica(values: "Any", strategy: "Any", reduction: "Any") -> "Any":
            if reduction in ("auto", "mean") and mend._is_wrong("reduce", strategy):
                return module.tree.map_structure(lambda value: mend._mean(value, strategy), values)
            return reduce(values, strategy, reduction)

        self._disguise(_maybe_symbolic_build, build)
        self._disguise(reduce_per_replica, reduce)
        module.TensorFlowTrainer._maybe_symbolic_build = _maybe_symbolic_build  # noqa: SLF001 - as above
        module.reduce_per_replica = reduce_per_replica

    def _is_wrong(self, what: str, strategy: "Any") -> bool:
        try:
            if not concerns(strategy):
                return False
            if self._found is None:
                build, reduce = try_build(self._module, self._build), try_reduce(self._module, self._reduce)
                self._found = {"build": build, "reduce": reduce}
                self._announce(strategy, build, reduce)
            return self._found[what] == WRONG
        except Exception:  # noqa: BLE001 - another version: left alone, and never the program's trouble
            return False

    def _announce(self, strategy: "Any", *found: str) -> None:
        version = getattr(sys.modules.get("keras.src.version"), "__version__", "3")
        if WRONG in found:
            message = f"Keras {version}: fit and evaluate fail with several workers ({_ISSUE}) and are mended in memory"
            self._notes.say(strategy, f"{message}; keras: off leaves them as they are")
        if UNKNOWN in found:
            message = f"Keras {version}: its fit is written in a way that phalanx does not know and is left as it is"
            self._notes.say(strategy, f"{message}; should it fail with several workers, --keras legacy takes tf_keras")

    def _of_this_worker(self, iterator: "Any", strategy: "Any") -> "Any":
        """The same with one batch, of which only what this worker's first replica gets."""
        values = self._module.tf.distribute.DistributedValues

        def local(value: "Any") -> "Any":
            return strategy.experimental_local_results(value)[0] if isinstance(value, values) else value

        for begin, end, batches in iterator:
            return ((begin, end, iter((self._module.tree.map_structure(local, next(batches)),))),)
        return iterator

    def _mean(self, value: "Any", strategy: "Any") -> "Any":
        """Over all replicas of all workers; a log that is no number cannot be averaged and stays this worker's own."""
        tf = self._module.tf
        one = strategy.experimental_local_results(value)[0]
        kind = getattr(one, "dtype", None)
        if kind is None or not (kind.is_floating or kind.is_integer):
            return one
        if kind.is_floating:
            return strategy.reduce("MEAN", value, axis=None)
        total = strategy.reduce("SUM", value, axis=None)
        return total // tf.cast(strategy.num_replicas_in_sync, total.dtype)


# Trials on made-up values: no tensor, no collective -------------------------------------------------------------------


class _Told(Exception):  # noqa: N818 - no error: it ends a trial
    """The function has done what it does wrong."""


def try_build(module: "Any", build: "Callable[..., Any]") -> str:
    """What `_maybe_symbolic_build` does with a batch of two values that are distributed."""
    built: "list[Any]" = []

    class Value(module.tf.distribute.DistributedValues):  # type: ignore[misc]  # TensorFlow's
        def __init__(self) -> None:
            """Of nothing."""

    class Strategy:
        def reduce(self, _op: "Any", value: "Any", axis: "Any" = None) -> str:  # noqa: ARG002 - as TensorFlow's
            if isinstance(value, Value):
                return "one"
            raise _Told

        def experimental_local_results(self, value: "Any") -> "Any":
            return ("one",) if isinstance(value, Value) else (value,)

        def scope(self) -> "Any":
            return _Nothing()

    class Trainer:
        _distribute_strategy = distribute_strategy = Strategy()

        def _symbolic_build(self, iterator: "Any" = None, data_batch: "Any" = None) -> None:  # noqa: ARG002 - as Keras's
            built.append(data_batch)

    try:
        build(Trainer(), iterator=((0, 0, iter(((Value(), Value()),))),))
    except _Told:
        return WRONG
    except Exception:  # noqa: BLE001 - it does something else, and may do it right
        return UNKNOWN
    return RIGHT if built == [("one", "one")] else UNKNOWN


def try_reduce(module: "Any", reduce: "Callable[..., Any]") -> str:
    """What `reduce_per_replica` does with a scalar of each worker."""

    class Extended:
        def _in_multi_worker_mode(self) -> bool:
            return True

    class Strategy(module.tf.distribute.MultiWorkerMirroredStrategy):  # type: ignore[misc]  # TensorFlow's
        extended = Extended()

        def __init__(self) -> None:
            """Of nobody."""

        def reduce(self, _op: "Any", value: "Any", axis: "Any" = 0) -> "Any":
            if axis is None:
                return value
            raise _Told

        def experimental_local_results(self, value: "Any") -> "Any":
            return (value,)

    try:
        reduced = reduce({"loss": 0.5}, Strategy(), "auto")
    except _Told:
        return WRONG
    except Exception:  # noqa: BLE001 - as above
        return UNKNOWN
    return RIGHT if set(reduced) == {"loss"} else UNKNOWN


class _Nothing:
    """A scope that does nothing."""

    def __enter__(self) -> None:
        """Nothing."""

    def __exit__(self, *_about: object) -> None:
        """Nothing."""
