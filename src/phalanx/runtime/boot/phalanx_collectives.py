"""Time in collectives: from the moment a tensor is there to be reduced until the reduced one is.

Two timestamps are put around each collective while a tf.function is traced, and the graph itself adds up what lies
between them, in one variable on the CPU. The tensors pass unchanged. Nothing is measured where that cannot be: in what
XLA compiles (it knows no timestamps), under op determinism (TensorFlow refuses them there, also in graphs traced before
it is enabled: a program that speaks of it anywhere is not measured), where there are GPUs (their
work is ordered by streams and not by what the graph waits for), and in a TensorFlow whose random numbers depend on how
many operations a graph has.
"""

import os
import sys

TYPE_CHECKING = False  # as in phalanx_standby
if TYPE_CHECKING:
    from typing import Any

    from phalanx.runtime.boot.phalanx_life import Line

# Places of the words, as in phalanx_life.
_COLLECTIVE = 15

#: The attribute of a graph that holds the moment when its last collective has ended. It goes with the graph.
_LAST = "_phalanx_collective_ended"

#: What a program that enables op determinism has to say, and bytes of a file that are searched for it.
_WORD, _MOST = b"enable_op_determinism", 1 << 20

#: The collectives of `collective_ops` that are measured.
NAMES = ("all_reduce_v2", "all_gather_v2", "all_to_all_v2")


class Collectives:
    """What this process spends in them."""

    def __init__(self, line: "Line") -> None:
        """`line`: where it is written."""
        self._line = line
        self._sum: "Any" = None  # a variable: seconds of those in graphs
        self._eager = 0  # nanoseconds of those outside any graph
        self._deterministic: "bool | None" = None  # whether the program speaks of op determinism; None: not looked

    def begin(self, tensor: "Any") -> "tuple[Any, Any]":
        """A collective is about to take `tensor`: a mark for `end`, and what it is to take instead."""
        try:
            if _part("eager.context").executing_eagerly():
                return self._line.now(), tensor
            if self._deterministic is None:
                self._deterministic = _speaks_of_determinism()
            if self._deterministic or not _measurable(_part("framework.ops").get_default_graph()):
                return None, tensor
            return self._before(tensor)
        except Exception:  # noqa: BLE001 - another version: not measured, and never the program's trouble
            return None, tensor

    def end(self, mark: "Any", result: "Any") -> None:
        """It has returned."""
        try:
            if type(mark) is int:
                self._eager += self._line.now() - mark
            elif mark is not None:
                self._after(mark, result)
        except Exception:  # noqa: BLE001 - as above
            return

    def look(self, _result: "Any" = None) -> None:
        """Write down how much it was so far. For the main thread, after a step: a read of a variable on the CPU."""
        try:
            inside = 0 if self._sum is None else int(float(self._sum) * 1e9)
            words = self._line.words
            words[_COLLECTIVE] = max(words[_COLLECTIVE], inside + self._eager)  # the clock may have been set back
        except Exception:  # noqa: BLE001 - as above
            return

    def _before(self, tensor: "Any") -> "tuple[Any, Any]":
        """The moment at which the tensor is there, and the tensor as it is then."""
        ops = _part("framework.ops")
        if self._sum is None:
            with ops.init_scope(), ops.device("CPU:0"):
                self._sum = _part("ops.resource_variable_ops").ResourceVariable(
                    0.0, dtype=_part("framework.dtypes").float64, trainable=False, name="phalanx_collective"
                )
        tensor = ops.convert_to_tensor(tensor)
        with ops.control_dependencies([tensor]):
            begun = _part("ops.gen_logging_ops").timestamp()
        with ops.control_dependencies([begun]):
            return begun, _part("ops.gen_array_ops").identity(tensor)

    def _after(self, begun: "Any", result: "Any") -> None:
        """Add what has passed until the result is there. Nothing waits for it: a tf.function runs it all the same.

        Collectives of one graph run one after the other. One whose tensor has waited for its turn begins with that.
        """
        graph = result.graph
        with _part("framework.ops").control_dependencies([result]):
            ended = _part("ops.gen_logging_ops").timestamp()
        before = getattr(graph, _LAST, None)
        if before is not None:
            begun = _part("ops.gen_math_ops").maximum(begun, before)
        setattr(graph, _LAST, ended)
        _part("ops.gen_resource_variable_ops").assign_add_variable_op(self._sum.handle, ended - begun)


def _part(name: str) -> "Any":
    """A module of TensorFlow that is loaded."""
    return sys.modules["tensorflow.python." + name]


def _measurable(graph: "Any") -> bool:
    """Whether more operations in this graph change nothing, are allowed, and tell the truth."""
    return (
        hasattr(_part("framework.random_seed"), "_graph_to_seed_dict")
        and getattr(graph, "building_function", False)
        and not _part("ops.control_flow_util").GraphOrParentsInXlaContext(graph)
        and not _part("eager.context").num_gpus()
        and not _part("framework.config").is_op_determinism_enabled()
    )


def _speaks_of_determinism() -> bool:
    """Whether the script, or a module beside it that is loaded, names the function that enables it."""
    script = getattr(sys.modules.get("__main__"), "__file__", None)
    if script is None:
        return False
    beside = os.path.join(os.path.dirname(os.path.abspath(script)), "")
    files = {os.path.abspath(script)}
    for module in list(sys.modules.values()):
        path = getattr(module, "__file__", None)
        if isinstance(path, str) and path.startswith(beside) and "-packages" + os.sep not in path:
            files.add(path)
    return any(_WORD in _text(path) for path in files)


def _text(path: str) -> bytes:
    if not os.path.isfile(path):  # in an archive
        return b""
    with open(path, "rb") as file:
        return file.read(_MOST)
