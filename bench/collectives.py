"""What the runtime costs two workers a step, with the time in collectives measured: wall clock and CPU, in turns.

    .venv/bin/python bench/collectives.py [pairs of processes, default 3] [size of the layer, default 64]

Both workers have traced the same step twice, with timestamps around its collective and without, and hook and unhook the
runtime every few steps, in the same order; so both sides have the same memory, the same threads and the same moment.
A layer of 64 is all communication (1 to 2 ms a step), one of 1024 computes.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
from pathlib import Path

from runtime import BOOT, QUIET, placed

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "src"))

from phalanx.agent.life import Life  # noqa: E402 - the path above is what makes it this tree's
from phalanx.agent.ports import PortHolder  # noqa: E402 - as above
from phalanx.agent.standby import boot_env  # noqa: E402 - as above

BLOCK, BLOCKS = 40, 60

WORKER = f"""
BLOCK, BLOCKS = {BLOCK}, {BLOCKS}"""
WORKER += """
import resource, statistics, sys, time
import tensorflow as tf
from tensorflow.python.eager.polymorphic_function import polymorphic_function
from tensorflow.python.ops import collective_ops
size = int(sys.argv[1])
strategy = tf.distribute.MultiWorkerMirroredStrategy()
with strategy.scope():
    weight = tf.Variable(tf.ones((size, size)))

def replica():
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(tf.matmul(weight, weight))
    gradient = tf.distribute.get_replica_context().all_reduce("MEAN", tape.gradient(loss, weight))
    weight.assign_sub(1e-9 * gradient)
    return loss

def made():
    return tf.function(lambda: strategy.run(replica))

function = polymorphic_function.Function
hooked, plain = function._call, function._call.__wrapped__
timed = made()
timed()
collective_ops.all_reduce_v2 = collective_ops.all_reduce_v2.__wrapped__
untimed = made()
untimed()

def block(call, step):
    function._call = call
    wall, cpu = time.perf_counter(), time.process_time()
    for _ in range(BLOCK):
        step()
    return (time.perf_counter() - wall) / BLOCK, (time.process_time() - cpu) / BLOCK

ratios, cpus = [], []
with_it, without = (hooked, timed), (plain, untimed)
for _ in range(5):
    block(*with_it), block(*without)
for _ in range(BLOCKS):
    a, b, c, d = (block(*each) for each in (with_it, without, without, with_it))
    ratios.append((a[0] + d[0]) / (b[0] + c[0]))
    cpus.append((a[1] + d[1]) / (b[1] + c[1]))
print(statistics.median(ratios), statistics.median(cpus), (b[0] + c[0]) / 2)
"""


def pair(size: int) -> list[list[float]]:
    """Two workers: of each how many times as long a step takes, how much more CPU, and how long one is without."""
    holder = PortHolder()
    workers = [f"127.0.0.1:{port}" for port in holder.hold(2)]
    started = []
    for index in range(2):
        task = {"cluster": {"worker": workers}, "task": {"type": "worker", "index": index}}
        env = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", "TF_NUM_INTRAOP_THREADS": "1", "TF_GRPC_REUSE_PORT": "1"}
        env["TF_CONFIG"] = json.dumps(task)
        life = Life()
        env |= {**boot_env(env, BOOT), **life.env()}
        argv = ["taskset", "-c", str(index % (os.cpu_count() or 1)), sys.executable, "-c", WORKER, str(size)]
        with placed(life.fds):
            process = subprocess.Popen(argv, env=env, pass_fds=tuple(life.fds), **QUIET)
        started.append((process, life))
    figures = []
    for process, life in started:
        out = process.communicate()[0]
        assert life.sign().collective, "nothing was measured"  # noqa: S101 - a bench that measures nothing is worse than none
        figures.append(list(map(float, out.split())))
    holder.release_all()
    return figures


def main() -> None:
    pairs = int(sys.argv[1]) if len(sys.argv) > 1 else 3
    size = int(sys.argv[2]) if len(sys.argv) > 2 else 64
    print(f"load {os.getloadavg()[0]:.1f} before", flush=True)
    found = []
    for _ in range(pairs):
        for wall, cpu, step in pair(size):
            found.append((wall, cpu))
            print(f"a step of {step * 1e3:.2f} ms: {wall - 1:+.2%} wall clock, {cpu - 1:+.2%} CPU", flush=True)
    walls, cpus = zip(*found, strict=True)
    print(f"median: {statistics.median(walls) - 1:+.2%} wall clock, {statistics.median(cpus) - 1:+.2%} CPU")
    print(f"load {os.getloadavg()[0]:.1f} after")


if __name__ == "__main__":
    main()
