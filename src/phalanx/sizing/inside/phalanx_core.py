"""How fast one core is for what training steps are made of, asked of the TensorFlow that will train."""

import mmap
import sys
import time

from phalanx_ring import ring  # type: ignore[import-not-found]  # it lies beside this file

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


def core() -> "dict[str, Any]":
    """What one core does of what steps are made of, by CPU time, so that others on the machine count less."""
    tf = sys.modules["tensorflow"]
    with tf.device("CPU:0"):
        square, thin = tf.random.uniform((1024, 1024)), tf.random.uniform((64, 1024))
        flops = 2 * 64 * 1024.0**2 / _cost(lambda: tf.linalg.matmul(thin, square), 0.3)
        wide = tf.random.uniform((16 << 20,))
        moved = 2 * 4.0 * (16 << 20) / _cost(lambda: tf.multiply(wide, 1.5), 0.5)

        def many(number: "Any") -> "Any":
            for _ in range(200):
                number = tf.tanh(number)
            return number

        number, chain = tf.constant([0.5]), tf.function(many, autograph=False)
        chain.get_concrete_function(number)
        operation = _cost(lambda: chain(number), 0.1) / 200
    anew = _anew()
    return {"flops": flops, "moved": moved, "operation": operation, "anew": anew, **ring(anew)}


#: Bytes of memory that is asked of the kernel, and written piece by piece.
_ASKED, _PIECE = 64 << 20, 1 << 20


def _anew() -> float:
    """CPU seconds that a byte costs the first time it is written, beyond what each later time costs."""
    piece, costs = bytes(_PIECE), []
    with mmap.mmap(-1, _ASKED) as memory:
        for _ in range(2):
            start = time.process_time()
            for at in range(0, _ASKED, _PIECE):
                memory[at : at + _PIECE] = piece
            costs.append(time.process_time() - start)
    return max(costs[0] - costs[1], 0.0) / _ASKED


def _cost(what: "Callable[[], Any]", seconds: float) -> float:
    """CPU seconds of one call: the median of several."""
    what()
    costs: "list[float]" = []
    end = time.process_time() + seconds
    while time.process_time() < end or not costs:
        start = time.process_time()
        what()
        costs.append(time.process_time() - start)
    return sorted(costs)[len(costs) // 2]
