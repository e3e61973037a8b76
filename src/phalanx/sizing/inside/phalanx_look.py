"""Takes the first training step of a program by its trace: nothing of it is executed, and the process ends there.

Beside the step: every variable that is trained with the kind of its gradient, the optimizers' slots, the batch, and how
fast TensorFlow is on this machine for the three things that steps are made of.
"""

import json
import os
import sys

from phalanx_core import core  # type: ignore[import-not-found]  # it lies beside this file
from phalanx_cost import DATA, Cost, elements  # type: ignore[import-not-found]  # as above

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


#: What stands between `batch_size` and `callbacks` in the arguments of `fit`.
_BEFORE_CALLBACKS = 2


class Look:
    """One look at one program. `hooks` wait for TensorFlow's and Keras' modules; `_take` never returns."""

    def __init__(self, answer: str) -> None:
        """`answer`: the file that gets the JSON."""
        self._answer = answer
        self._sources: "list[tuple[Any, Any]]" = []  # each trained variable with its gradient, as they come
        self._kind, self._spread = "loop", ""
        self._batches: "list[int]" = []
        self._busy, self._reductions = False, 0
        self._servers: "list[Any]" = []  # kept alive

    def hooks(self) -> "dict[str, Any]":
        """Module → what is done once it is loaded."""
        distribute = "tensorflow.python.distribute."
        return {
            "tensorflow.python.eager.polymorphic_function.polymorphic_function": self._functions,
            "tensorflow.python.eager.backprop": self._tapes,
            distribute + "coordinator.cluster_coordinator": self._coordinators,
            distribute + "parameter_server_strategy_v2": self._servers_for,
            distribute + "distribute_lib": self._strategies,
            "tensorflow.python.data.ops.dataset_ops": self._datasets,
            "tensorflow.python.checkpoint.checkpoint": lambda module: _mute(module.Checkpoint, "save", "write"),
            "tensorflow.python.checkpoint.checkpoint_management": lambda module: _mute(
                module.CheckpointManager, "save"
            ),
            "keras.src.models.model": lambda module: _mute(module.Model, "save", "save_weights", "export"),
            "keras.src.backend.tensorflow.trainer": lambda module: self._fits(module.TensorFlowTrainer),
            "tf_keras.src.engine.training": self._legacy,
        }

    # What is heard -----------------------------------------------------------------------------------------------

    def _functions(self, module: "Any") -> None:
        original, look = module.Function._call, self

        def _call(self: "Any", *args: "Any", **kwds: "Any") -> "Any":
            if look._busy or not _outermost():
                return original(self, *args, **kwds)
            concrete, seen, look._reductions = None, len(look._sources), 0
            look._busy = True
            try:
                concrete = self.get_concrete_function(*args, **kwds)
            except Exception:  # noqa: BLE001 - the program shall see its own error, from its own call
                concrete = None
            finally:
                look._busy = False
            if concrete is not None and len(look._sources) > seen:
                look._take(concrete.graph)
            return original(self, *args, **kwds)

        module.Function._call = _call

    def _tapes(self, module: "Any") -> None:
        original, look = module.GradientTape.gradient, self

        def gradient(self: "Any", target: "Any", sources: "Any", *args: "Any", **kwargs: "Any") -> "Any":
            found = original(self, target, sources, *args, **kwargs)
            look._hear(sources, found)
            return found

        module.GradientTape.gradient = gradient

    def _hear(self, sources: "Any", found: "Any") -> None:
        nest = sys.modules["tensorflow.python.util.nest"]
        pairs = zip(nest.flatten(sources), nest.flatten(found))  # noqa: B905 - strict= came with Python 3.10
        self._sources += [(a, b) for a, b in pairs if b is not None and hasattr(a, "shape")]
        if self._sources and _outermost() and not self._busy:
            self._kind = "eager"
            self._take(None)

    def _coordinators(self, module: "Any") -> None:
        look = self

        def schedule(self: "Any", fn: "Any", args: "Any" = None, kwargs: "Any" = None) -> "Any":
            look._kind, look._spread, look._busy = "schedule", "worker", True
            # TensorFlow's own way to know what a function returns: it traces it.
            closure = module.Closure(fn, self._cluster.closure_queue._cancellation_mgr, args=args, kwargs=kwargs)
            concrete = getattr(closure, "_concrete_function", None)
            look._take(None if concrete is None else concrete.graph)

        module.ClusterCoordinator.schedule = schedule

    def _servers_for(self, module: "Any") -> None:
        """The worker and the ps of TF_CONFIG, in this process: a strategy of parameter servers waits for both."""
        original, look = module.ParameterServerStrategyV2.__init__, self

        def begin(self: "Any", cluster_resolver: "Any", *args: "Any", **kwargs: "Any") -> None:
            server_lib = sys.modules["tensorflow.python.training.server_lib"]
            spec = cluster_resolver.cluster_spec()
            for job in ("ps", "worker"):
                look._servers.append(server_lib.Server(spec, job_name=job, task_index=0, protocol="grpc"))
            original(self, cluster_resolver, *args, **kwargs)

        module.ParameterServerStrategyV2.__init__ = begin

    def _strategies(self, module: "Any") -> None:
        for name, means in (
            ("experimental_distribute_dataset", "global"),
            ("distribute_datasets_from_function", "worker"),
        ):
            self._notes(module.StrategyBase, name, means)
        original, look = module.StrategyBase.reduce, self

        def reduce(self: "Any", *args: "Any", **kwargs: "Any") -> "Any":
            look._reductions += 1
            return original(self, *args, **kwargs)

        module.StrategyBase.reduce = reduce

    def _notes(self, owner: "Any", name: str, means: str) -> None:
        original, look = getattr(owner, name), self

        def noted(self: "Any", *args: "Any", **kwargs: "Any") -> "Any":
            look._spread = look._spread or means
            return original(self, *args, **kwargs)

        setattr(owner, name, noted)

    def _datasets(self, module: "Any") -> None:
        original, look = module.DatasetV2.batch, self

        def batch(self: "Any", batch_size: "Any", *args: "Any", **kwargs: "Any") -> "Any":
            if isinstance(batch_size, int):
                look._batches.append(batch_size)
            return original(self, batch_size, *args, **kwargs)

        module.DatasetV2.batch = batch

    def _legacy(self, module: "Any") -> None:
        _mute(module.Model, "save", "save_weights")
        self._fits(module.Model)

    def _fits(self, owner: "Any") -> None:
        original, look = owner.fit, self

        def fit(
            self: "Any", x: "Any" = None, y: "Any" = None, batch_size: "Any" = None, *args: "Any", **kw: "Any"
        ) -> "Any":
            # Epochs, verbose, callbacks: positional ones are as rare as they are lawful.
            before = args[:_BEFORE_CALLBACKS]
            if len(args) > len(before):
                args = (*before, None, *args[len(before) + 1 :])
            else:
                kw["callbacks"] = None
            look._kind = "fit"
            look._spread = look._spread or "global"
            if batch_size is not None or not hasattr(x, "element_spec"):
                look._batches.append(int(batch_size or 32))
            return original(self, x, y, batch_size, *args, **kw)

        owner.fit = fit

    # What is told ------------------------------------------------------------------------------------------------

    def _take(self, graph: "Any") -> None:
        try:
            resident, highest = _held("VmRSS"), _held("VmHWM")
            batch, static = _batch_of(graph)
            batch = batch or (self._batches[-1] if self._batches else 0)
            variables = self._variables(batch)
            shapes = {tuple(one["shape"]) for one in variables}
            told = {
                "kind": self._kind,
                "spread": self._spread,
                "reductions": self._reductions,
                "batch": batch,
                "resident": resident,
                "highest": highest,
                "variables": variables,
                "slots": _slots(),
                "step": Cost(batch or 1, static, shapes).of(graph) if graph is not None else None,
                "machine": core(),
                "keras": next((name for name in ("tf_keras", "keras") if name in sys.modules), ""),
            }
        except Exception as wrong:  # noqa: BLE001 - told as it is, with the place
            import traceback

            told = {"wrong": "%s: %s" % (type(wrong).__name__, wrong), "trace": traceback.format_exc()}
        passing = self._answer + ".new"
        with open(passing, "w", encoding="utf-8") as file:
            json.dump(told, file)
        os.replace(passing, self._answer)
        os._exit(0)  # neither `finally` nor `atexit` of a program that has not trained has anything to do

    def _variables(self, batch: int) -> "list[dict[str, Any]]":
        found: "dict[int, dict[str, Any]]" = {}
        for source, gradient in self._sources:
            one = found.setdefault(
                id(source),
                {
                    "name": str(getattr(source, "name", "")),
                    "shape": [int(side) for side in source.shape],
                    "bytes": _size(source),
                    "rows": None,
                },
            )
            indices = getattr(gradient, "indices", None)
            if indices is not None:
                one["rows"] = _rows(indices, batch)
        return list(found.values())


def _outermost() -> bool:
    import _thread
    import threading

    context = sys.modules["tensorflow.python.eager.context"]
    return context.executing_eagerly() and _thread.get_ident() == threading.main_thread().ident


def _mute(owner: "Any", *names: str) -> None:
    """What would write a checkpoint writes none, and returns the path it was given."""
    for name in names:

        def mute(_self: "Any", path: "Any" = None, *_args: "Any", **_kwargs: "Any") -> "Any":
            return path

        if hasattr(owner, name):
            setattr(owner, name, mute)


def _held(name: str) -> int:
    """Bytes in memory now (VmRSS), or the most so far (VmHWM)."""
    with open("/proc/self/status", encoding="ascii", errors="replace") as file:
        return next(int(line.split()[1]) * 1024 for line in file if line.startswith(name + ":"))


_OPTIMIZERS = (
    ("keras.src.optimizers.base_optimizer", "BaseOptimizer"),
    ("tf_keras.src.optimizers.optimizer", "_BaseOptimizer"),
    ("tf_keras.src.optimizers.legacy.optimizer_v2", "OptimizerV2"),
)


def _slots() -> int:
    """Bytes of the variables that belong to optimizers: moments, and counters."""
    import gc

    kinds = tuple(getattr(sys.modules[module], name) for module, name in _OPTIMIZERS if module in sys.modules)
    total = 0
    seen: "set[int]" = set()
    for one in gc.get_objects():
        if not issubclass(type(one), kinds):  # isinstance would ask objects that load a module when asked
            continue
        listed = one.variables
        for variable in listed() if callable(listed) else listed:
            if id(variable) not in seen:
                seen.add(id(variable))
                total += _size(variable)
    return total


def _size(variable: "Any") -> int:
    """Bytes of a variable: TensorFlow's, or Keras 3's, whose shape and type are plain."""
    tf = sys.modules["tensorflow"]
    return int(elements(tf.TensorShape(variable.shape), 1)) * int(tf.as_dtype(variable.dtype).size)


#: Operations that are looked at on the way back from an index to where it came from.
_FAR = 200


def _rows(indices: "Any", batch: int) -> int:
    """Rows that one step touches, with repeats. A lookup flattens its indices and parts them among shards.

    Of whole numbers that the indices come from, the most whose shape says how many they are for each example.
    """
    if hasattr(indices, "numpy"):
        return int(elements(indices.shape, 1))
    found, parts, front = 0, 1, [indices]
    seen: "set[int]" = set()
    while front and len(seen) < _FAR:
        at = front.pop()
        if id(at) in seen or not at.dtype.is_integer:
            continue
        seen.add(id(at))
        if at.shape.rank is not None and (at.shape.is_fully_defined() or at.shape.rank > 1):
            found = max(found, elements(at.shape, batch or 1))
        elif at.op.type == "DynamicPartition":
            parts = max(parts, int(at.op.get_attr("num_partitions")))
        front += [one for one in at.op.inputs if one.dtype.is_integer]
    return int(max(found, batch) // parts)


def _batch_of(graph: "Any") -> "tuple[int, bool]":
    """The first side of what the step takes from its data, and whether the program has fixed it."""
    for operation in graph.get_operations() if graph is not None else ():
        if operation.type in DATA:
            for output in operation.outputs:
                if output.shape.rank and output.shape[0] is not None and int(output.shape[0]) > 0:
                    return int(output.shape[0]), True
    return 0, False
