"""What the trace of a training step costs: operations and bytes, fixed ones and those of each example."""

import math

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_FREE = frozenset(
    (
        *("Const", "Placeholder", "VarHandleOp", "ReadVariableOp", "VarIsInitializedOp", "NoOp", "Assert"),
        *("Identity", "IdentityN", "StopGradient", "PreventGradient", "ControlTrigger"),
        *("Shape", "Reshape", "ExpandDims", "Squeeze", "Pack", "StridedSlice"),
    )
)
DATA = ("IteratorGetNext", "OptionalGetValue", "MultiDeviceIteratorGetNextFromShard")
_CALLS = ("PartitionedCall", "StatefulPartitionedCall")


class Cost:
    """Each operation as floating-point operations and bytes moved: a part for the step, and a part for each example."""

    def __init__(self, batch: int, static: bool, weights: "set[tuple[int, ...]]") -> None:  # noqa: FBT001 - as told
        self._batch, self._static, self._weights = batch, static, weights
        #: Whether there is a loop whose turns nobody can count.
        self.loops = False
        self._examples: "set[int]" = set()  # the tensors that hold a batch, where the program has fixed its size

    def of(self, graph: "Any") -> "dict[str, Any]":
        """Rows of operations, the most bytes alive at once, and whether there are loops, as JSON takes them."""
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
            both = [(self._flops(operation, times), self._moved(operation, times)) for times in (1, 2)]
            row = (
                *_line(both[0][0], both[1][0], self._batch),
                *_line(both[0][1], both[1][1], self._batch),
            )
            rows[row] = rows.get(row, 0) + 1

    def _follow(self, operation: "Any") -> None:
        """A size may be that of a batch by chance: only what comes of the data is one, and no gradient of a weight."""
        kind = operation.type
        held = kind in DATA or any(id(one) in self._examples for one in operation.inputs)
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
        sides: "list[int | None]" = tensor.shape.as_list()
        if id(tensor) in self._examples:
            return [self._batch * times, *(int(side or 1) for side in sides[1:])]
        return [self._batch * times if side is None else int(side) for side in sides]

    def _count(self, tensor: "Any", times: int) -> int:
        return math.prod(self._sides(tensor, times))

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
            return 2.0 * self._count(operation.outputs[0], times) * math.prod(depth)
        if kind in ("Conv2DBackpropInput", "Conv3DBackpropInputV2"):
            return 2.0 * self._count(inputs[2], times) * math.prod(self._sides(inputs[1], 1)[:-1])
        if kind in ("Conv2DBackpropFilter", "Conv3DBackpropFilterV2"):
            return 2.0 * self._count(inputs[2], times) * math.prod(self._sides(operation.outputs[0], 1)[:-1])
        if kind == "Einsum" and inputs[1:]:
            parts = [self._count(one, times) for one in (*inputs, operation.outputs[0])]
            return 2.0 * math.sqrt(math.prod(parts))
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


def elements(shape: "Any", batch: int) -> int:
    """How many; what is not known counts as one batch."""
    if shape.rank is None:
        return batch
    return math.prod(batch if side is None else int(side) for side in shape.as_list())
