"""Takes the first training step of a program by its trace: nothing of it is executed, and the process ends there.

Beside the step: every variable that is trained with the kind of its gradient, the optimizers' slots, the batch, and how
fast TensorFlow is on this machine for the three things that steps are made of.
"""

import json
import os
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class Look:
    """One look at one program. `hooks` wait for TensorFlow's and Keras' modules; `_take` never returns."""

    def __init__(self, answer: str) -> None:
        """`answer`: the file that gets the JSON."""
        self._answer, self._sources = answer, []  # type: ignore[var-annotated]  # (source, gradient), as they come
        self._kind, self._batches, self._spread = "loop", [], ""  # type: ignore[var-annotated]  # of ints
        self._busy = False
        self._servers = []  # type: ignore[var-annotated]  # kept alive

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
            "tf_keras.src.engine.training": lambda module: (
                _mute(module.Model, "save", "save_weights"),
                self._fits(module.Model),
            ),
        }

    # What is heard -----------------------------------------------------------------------------------------------

    def _functions(self, module: "Any") -> None:
        original, look = module.Function._call, self

        def _call(self: "Any", *args: "Any", **kwds: "Any") -> "Any":
            if look._busy or not _outermost():
                return original(self, *args, **kwds)
            concrete, seen = None, len(look._sources)
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
        from tensorflow.python.util import nest  # the program has loaded it

        pairs = list(zip(nest.flatten(sources), nest.flatten(found)))
        self._sources += [(a, b) for a, b in pairs if b is not None and hasattr(a, "shape")]
        if self._sources and _outermost() and not self._busy:
            self._kind = "eager"
            self._take(None)

    def _coordinators(self, module: "Any") -> None:
        look = self

        def schedule(self: "Any", fn: "Any", args: "Any" = None, kwargs: "Any" = None) -> "Any":
            look._kind, look._busy = "schedule", True
            # TensorFlow's own way to know what a function returns: it traces it.
            closure = module.Closure(fn, self._cluster.closure_queue._cancellation_mgr, args=args, kwargs=kwargs)
            concrete = getattr(closure, "_concrete_function", None)
            look._take(None if concrete is None else concrete.graph)

        module.ClusterCoordinator.schedule = schedule

    def _servers_for(self, module: "Any") -> None:
        """The worker and the ps of TF_CONFIG, in this process: a strategy of parameter servers waits for both."""
        original, look = module.ParameterServerStrategyV2.__init__, self

        def __init__(self: "Any", cluster_resolver: "Any", *args: "Any", **kwargs: "Any") -> None:
            from tensorflow.python.training import server_lib

            spec = cluster_resolver.cluster_spec()
            for job in ("ps", "worker"):
                look._servers.append(server_lib.Server(spec, job_name=job, task_index=0, protocol="grpc"))
            original(self, cluster_resolver, *args, **kwargs)

        module.ParameterServerStrategyV2.__init__ = __init__

    def _strategies(self, module: "Any") -> None:
        for name, means in (
            ("experimental_distribute_dataset", "global"),
            ("distribute_datasets_from_function", "worker"),
        ):
            self._notes(module.StrategyBase, name, means)

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

    def _fits(self, owner: "Any") -> None:
        original, look = owner.fit, self

        def fit(
            self: "Any", x: "Any" = None, y: "Any" = None, batch_size: "Any" = None, *args: "Any", **kw: "Any"
        ) -> "Any":
            # epochs, verbose, callbacks: positional ones are as rare as they are lawful.
            args = (*args[:2], None, *args[3:]) if len(args) > 2 else args
            if len(args) <= 2:
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
                "batch": batch,
                "resident": resident,
                "highest": highest,
                "variables": variables,
                "slots": _slots(),
                "step": _Cost(batch or 1, static, shapes).of(graph) if graph is not None else None,
                "machine": _machine(),
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

    from tensorflow.python.eager import context

    return context.executing_eagerly() and _thread.get_ident() == threading.main_thread().ident


def _mute(owner: "Any", *names: str) -> None:
    """What would write a checkpoint writes none, and returns the path it was given."""
    for name in names:

        def mute(self: "Any", path: "Any" = None, *args: "Any", **kwargs: "Any") -> "Any":
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
    total, seen = 0, set()
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
    import tensorflow as tf

    return _elements(tf.TensorShape(variable.shape), 1) * int(tf.as_dtype(variable.dtype).size)


def _rows(indices: "Any", batch: int) -> int:
    """Rows that one step touches, with repeats. A lookup flattens its indices, and parts them among shards: look behind.

    Of whole numbers that the indices come from, the most whose shape says how many they are for each example.
    """
    if hasattr(indices, "numpy"):
        return _elements(indices.shape, 1)
    found, parts, seen, front = 0, 1, set(), [indices]
    while front and len(seen) < 200:
        at = front.pop()
        if id(at) in seen or not at.dtype.is_integer:
            continue
        seen.add(id(at))
        if at.shape.rank is not None and (at.shape.is_fully_defined() or at.shape.rank > 1):
            found = max(found, _elements(at.shape, batch or 1))
        elif at.op.type == "DynamicPartition":
            parts = max(parts, int(at.op.get_attr("num_partitions")))
        front += [one for one in at.op.inputs if one.dtype.is_integer]
    return max(found, batch) // parts


def _elements(shape: "Any", batch: int) -> int:
    """How many; what is not known counts as one batch."""
    if shape.rank is None:
        return batch
    total = 1
    for side in shape.as_list():
        total *= batch if side is None else int(side)
    return total


def _batch_of(graph: "Any") -> "tuple[int, bool]":
    """The first side of what the step takes from its data, and whether the program has fixed it."""
    for operation in graph.get_operations() if graph is not None else ():
        if operation.type in _DATA:
            for output in operation.outputs:
                if output.shape.rank and output.shape[0] is not None and int(output.shape[0]) > 0:
                    return int(output.shape[0]), True
    return 0, False


# The cost of a step --------------------------------------------------------------------------------------------------

_FREE = frozenset(
    "Const Placeholder Identity IdentityN ReadVariableOp Reshape NoOp Shape StopGradient PreventGradient ExpandDims "
    "Squeeze VarHandleOp Pack StridedSlice VarIsInitializedOp Assert ControlTrigger".split()
)
_DATA = ("IteratorGetNext", "OptionalGetValue", "MultiDeviceIteratorGetNextFromShard")
_CALLS = ("PartitionedCall", "StatefulPartitionedCall")


class _Cost:
    """Each operation as floating-point operations and bytes moved: a part for the step, and a part for each example."""

    def __init__(self, batch: int, static: bool, weights: "set[tuple[int, ...]]") -> None:  # noqa: FBT001 - as told
        self._batch, self._static, self._weights = batch, static, weights
        self.loops = False
        self._examples: "set[int]" = set()  # the tensors that hold a batch, where the program has fixed its size

    def of(self, graph: "Any") -> "dict[str, Any]":
        rows: "dict[tuple[float, ...], int]" = {}
        self._add(graph, rows)  # first: it finds which tensors hold a batch
        peaks = [_peak(graph, lambda tensor, times=times: self._bytes(tensor, times)) for times in (1, 2)]
        fixed, each = _line(peaks[0], peaks[1], self._batch)
        return {
            "operations": [[*row, count] for row, count in rows.items()],
            "peak": [fixed, each],
            "loops": self.loops,
        }

    def _add(self, graph: "Any", rows: "dict[tuple[float, ...], int]") -> None:
        for operation in graph.get_operations():
            self._follow(operation)
            if operation.type in _CALLS:
                name = operation.get_attr("f").name
                inner = graph._get_function(name)
                if getattr(inner, "graph", None) is not None:
                    self._add(inner.graph, rows)
                continue
            self.loops = self.loops or operation.type in ("While", "StatelessWhile")
            if operation.type in _FREE:
                continue
            both = []
            for times in (1, 2):
                both.append((self._flops(operation, times), self._moved(operation, times)))
            row = (
                *_line(both[0][0], both[1][0], self._batch),
                *_line(both[0][1], both[1][1], self._batch),
            )
            rows[row] = rows.get(row, 0) + 1

    def _follow(self, operation: "Any") -> None:
        """A size may be that of a batch by chance: only what comes of the data is one, and no gradient of a weight."""
        kind = operation.type
        held = kind in _DATA or any(id(one) in self._examples for one in operation.inputs)
        if kind == "Placeholder":
            held = _sides_of(operation.outputs[0]) not in self._weights
        summed = (
            "BackpropFilter" in kind or "Segment" in kind or (kind == "MatMul" and operation.get_attr("transpose_a"))
        )
        if self._static and held and not summed:
            self._examples.update(
                id(one) for one in operation.outputs if one.shape.rank and one.shape[0] == self._batch
            )

    def _sides(self, tensor: "Any", times: int) -> "list[int]":
        if tensor.shape.rank is None:
            return [self._batch * times]
        sides = tensor.shape.as_list()
        if id(tensor) in self._examples:
            return [self._batch * times] + sides[1:]
        return [self._batch * times if side is None else side for side in sides]

    def _count(self, tensor: "Any", times: int) -> int:
        total = 1
        for side in self._sides(tensor, times):
            total *= side
        return total

    def _bytes(self, tensor: "Any", times: int) -> int:
        return self._count(tensor, times) * max(tensor.dtype.size, 0) if tensor.dtype.name != "resource" else 0

    def _flops(self, operation: "Any", times: int) -> float:
        kind, inputs = operation.type, operation.inputs
        if kind in ("MatMul", "BatchMatMul", "BatchMatMulV2", "BatchMatMulV3"):
            turned = operation.get_attr("transpose_a" if kind == "MatMul" else "adj_x")
            sides = self._sides(inputs[0], times)
            return 2.0 * self._count(operation.outputs[0], times) * sides[-2 if turned else -1]
        if kind in ("Conv2D", "Conv3D", "DepthwiseConv2dNative"):
            sides = self._sides(inputs[1], 1)
            depth = sides[:2] if kind == "DepthwiseConv2dNative" else sides[:-1]
            return 2.0 * self._count(operation.outputs[0], times) * _product(depth)
        if kind in ("Conv2DBackpropInput", "Conv3DBackpropInputV2"):
            return 2.0 * self._count(inputs[2], times) * _product(self._sides(inputs[1], 1)[:-1])
        if kind in ("Conv2DBackpropFilter", "Conv3DBackpropFilterV2"):
            return 2.0 * self._count(inputs[2], times) * _product(self._sides(operation.outputs[0], 1)[:-1])
        if kind == "Einsum" and len(inputs) == 2:
            parts = [self._count(one, times) for one in (*inputs, operation.outputs[0])]
            return 2.0 * float(_product(parts)) ** 0.5
        return 0.0

    def _moved(self, operation: "Any", times: int) -> float:
        kind = operation.type
        outputs = sum(self._bytes(one, times) for one in operation.outputs)
        if kind in ("ResourceGather", "GatherV2", "ResourceGatherNd"):
            return 2.0 * outputs
        inputs = sum(self._bytes(one, times) for one in operation.inputs)
        if kind.startswith("ResourceScatter"):
            return 3.0 * inputs
        if kind in ("AssignAddVariableOp", "AssignSubVariableOp"):
            return 3.0 * inputs
        if kind == "AssignVariableOp":
            return 2.0 * inputs
        if kind.startswith("ResourceApply"):
            return 3.0 * inputs * (4 if "Adam" in kind else 2)
        return float(inputs + outputs)


def _line(one: float, two: float, batch: int) -> "tuple[float, float]":
    """What is there anyway, and what each example adds, by the sums for one batch and for two."""
    each = max(two - one, 0.0) / batch
    return round(max(one - each * batch, 0.0), 3), round(each, 6)


def _sides_of(tensor: "Any") -> "tuple[int, ...]":
    return tuple(tensor.shape.as_list()) if tensor.shape.rank is not None else ()


def _product(numbers: "Any") -> int:
    total = 1
    for number in numbers:
        total *= number
    return total


def _peak(graph: "Any", size: "Any") -> int:
    """The most bytes of tensors alive at once, in the order of the trace: activations, gradients, what updates need."""
    last: "dict[int, int]" = {}
    operations = graph.get_operations()
    for number, operation in enumerate(operations):
        for tensor in operation.inputs:
            last[id(tensor)] = number
    ends: "dict[int, list[int]]" = {}
    alive = most = 0
    for number, operation in enumerate(operations):
        if operation.type not in _FREE:
            for tensor in operation.outputs:
                alive += size(tensor)
                ends.setdefault(last.get(id(tensor), number), []).append(size(tensor))
        most = max(most, alive)
        alive -= sum(ends.pop(number, ()))
    return most


# The machine ---------------------------------------------------------------------------------------------------------


def _machine() -> "dict[str, Any]":
    """What one core does of what steps are made of, by CPU time, so that others on the machine do not count."""
    import tensorflow as tf

    with tf.device("CPU:0"):
        square = tf.random.uniform((384, 384))
        flops = 2 * 384.0**3 / _cost(lambda: tf.linalg.matmul(square, square), 0.3)
        wide = tf.random.uniform((8 << 20,))
        moved = 2 * 4.0 * (8 << 20) / _cost(lambda: tf.multiply(wide, 1.5), 0.3)

        @tf.function(autograph=False)
        def chain(number: "Any") -> "Any":
            for _ in range(200):
                number = tf.tanh(number)
            return number

        number = tf.constant([0.5])
        chain.get_concrete_function(number)
        operation = _cost(lambda: chain(number), 0.1) / 200
    return {"flops": flops, "moved": moved, "operation": operation}


def _cost(what: "Any", seconds: float) -> float:
    """CPU seconds of one call: the least of several blocks."""
    what()
    least, end = float("inf"), time.process_time() + seconds
    while time.process_time() < end:
        start = time.process_time()
        for _ in range(8):
            what()
        least = min(least, (time.process_time() - start) / 8)
    return least
