"""Steps/s of a small custom loop with the runtime inside and without it, in interleaved pairs; prints the ratio.

.venv/bin/python bench/runtime.py [pairs, default 5]
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "src"))

from phalanx.agent.life import Life  # noqa: E402 - the path above is what makes it this tree's
from phalanx.agent.standby import boot_env  # noqa: E402 - as above

BOOT = str(ROOT / "src" / "phalanx" / "runtime" / "boot")
ENV = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"}
LOOP = """
import time
import tensorflow as tf
weight = tf.Variable(tf.ones((64, 64)))

@tf.function
def train():
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(tf.matmul(weight, weight))
    weight.assign_sub(1e-9 * tape.gradient(loss, weight))

for _ in range(200):
    train()
start = time.perf_counter()
for _ in range(4000):
    train()
print(4000 / (time.perf_counter() - start))
"""


def steps_per_second(*, runtime: bool) -> float:
    argv = [sys.executable, "-c", LOOP]
    if not runtime:
        return float(subprocess.run(argv, env=ENV, stdout=subprocess.PIPE, check=True).stdout)
    life = Life()
    for number, fd in life.fds.items():
        os.dup2(fd, number, inheritable=True)
    env = {**ENV, **boot_env(ENV, BOOT), **life.env()}
    done = subprocess.run(argv, env=env, stdout=subprocess.PIPE, check=True, pass_fds=tuple(life.fds))
    for number in life.fds:
        os.close(number)
    assert life.sign().step == 4200  # noqa: S101 - a bench that measures nothing is worse than none
    life.close()
    return float(done.stdout)


def main() -> None:
    pairs = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    ratios = []
    for _ in range(pairs):
        with_it, without = steps_per_second(runtime=True), steps_per_second(runtime=False)
        ratios.append(with_it / without)
        print(f"with {with_it:7.0f} steps/s   without {without:7.0f}   ratio {ratios[-1]:.3f}", flush=True)
    print(f"median ratio {statistics.median(ratios):.3f} of {pairs} pairs")


if __name__ == "__main__":
    main()
