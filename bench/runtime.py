"""What the runtime inside a task costs a training step, in CPU time: finer than the machine's noise.

    .venv/bin/python bench/runtime.py [processes, default 7] [fours of processes, default 10]

Two readings. *In turns within a process*: the hook of the step is taken out and put back every few hundred steps, so
that both sides have the same memory, the same threads and the same moment. *Processes*: with the life line and without,
in turns, by the CPU time that the kernel has counted; what differs between two starts of the same program is in that
too, and how much that is the last line says. The step is as small as they come (some 60 us of CPU): the cost is the
same in microseconds for a larger one.
"""

from __future__ import annotations

import contextlib
import os
import statistics
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "src"))

from phalanx.agent.life import Life  # noqa: E402 - the path above is what makes it this tree's
from phalanx.agent.standby import boot_env  # noqa: E402 - as above

BOOT = str(ROOT / "src" / "phalanx" / "runtime" / "boot")
ENV = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", "TF_NUM_INTRAOP_THREADS": "1", "TF_NUM_INTEROP_THREADS": "1"}
QUIET: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
WARM, BLOCK, BLOCKS, STEPS = 500, 250, 160, 30_000

LOOP = """
import resource, statistics, sys, time
import tensorflow as tf
weight = tf.Variable(tf.ones((64, 64)))

@tf.function
def train():
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(tf.matmul(weight, weight))
    weight.assign_sub(1e-9 * tape.gradient(loss, weight))

def cpu():
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime

def steps(count):
    start = cpu()
    for _ in range(count):
        train()
    return (cpu() - start) / count * 1e6
"""
WHOLE = f"{LOOP}\nsteps({WARM})\nprint(steps({STEPS}))"
#: Blocks in the order with, without, without, with: what drifts cancels out.
TURNS = f"""{LOOP}
from tensorflow.python.eager.polymorphic_function import polymorphic_function
function = polymorphic_function.Function
hooked = function._call
plain = hooked.__wrapped__
def block(call):
    function._call = call
    return steps({BLOCK})
steps({WARM})
ratios, costs = [], []
for _ in range({BLOCKS}):
    first, second, third, fourth = map(block, (hooked, plain, plain, hooked))
    costs.append((first + fourth - second - third) / 2)
    ratios.append((first + fourth) / (second + third))
print(statistics.median(ratios), statistics.median(costs), statistics.median([second, third]))
"""


@contextlib.contextmanager
def placed(fds: Mapping[int, int]) -> Iterator[None]:
    """The files at the numbers they have in the child, while it is started."""
    for number, fd in fds.items():
        os.dup2(fd, number, inheritable=True)
    yield
    for number in fds:
        os.close(number)


def figures(program: str, *, runtime: bool) -> list[float]:
    argv = [sys.executable, "-c", program]
    if not runtime:
        return list(map(float, subprocess.run(argv, env=ENV, check=True, **QUIET).stdout.split()))
    life = Life()
    env = {**ENV, **boot_env(ENV, BOOT), **life.env()}
    with placed(life.fds):
        done = subprocess.run(argv, env=env, check=True, pass_fds=tuple(life.fds), **QUIET)
    step = life.sign().step
    life.close()
    assert step in (WARM + STEPS, WARM + 2 * BLOCK * BLOCKS), step  # noqa: S101 - a bench that measures nothing is worse than none
    return list(map(float, done.stdout.split()))


def spread(ratios: Sequence[float]) -> str:
    low, middle, high = statistics.quantiles(ratios, n=4)
    return f"{middle - 1:+.2%} (quartiles {low - 1:+.2%} to {high - 1:+.2%}, of {len(ratios)})"


def main() -> None:
    processes = int(sys.argv[1]) if len(sys.argv) > 1 else 7
    pairs = int(sys.argv[2]) if len(sys.argv) > 2 else 10
    print(f"load {os.getloadavg()[0]:.1f} before", flush=True)
    ratios = []
    for _ in range(processes):
        ratio, cost, step = figures(TURNS, runtime=True)
        ratios.append(ratio)
        print(f"one process: {ratio - 1:+.2%}, {cost:.2f} us a step of {step:.0f} us", flush=True)
    print(f"in turns within a process: {spread(ratios)}")
    between, same = [], []
    for _ in range(pairs):
        first, plain, other, second = (figures(WHOLE, runtime=one)[0] for one in (True, False, False, True))
        between.append((first + second) / (plain + other))
        same.append(plain / other)
        print(f"with {first:.1f}, {second:.1f}   without {plain:.1f}, {other:.1f} us of CPU a step", flush=True)
    print(f"processes:      {spread(between)}")
    print(f"two without it: {spread(same)}")
    print(f"load {os.getloadavg()[0]:.1f} after")


if __name__ == "__main__":
    main()
