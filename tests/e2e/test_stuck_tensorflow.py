"""Real TensorFlow that lives and gets nowhere: TensorFlow alone hangs for ever in each of these (facts §3, §4)."""

from __future__ import annotations

import os
import signal
import time

import pytest

from launched import wait_for

pytestmark = [pytest.mark.real, pytest.mark.tensorflow, pytest.mark.timeout(300)]

#: Two workers that reduce something in each step; then worker 1 does something else, by the word given.
MIRRORED = """
import os, sys, time
what, second = sys.argv[1], os.environ["PHALANX_TASK"] == "worker:1"
if what == "never" and second:
    time.sleep(600)
import tensorflow as tf
strategy = tf.distribute.MultiWorkerMirroredStrategy()
with strategy.scope():
    weights = tf.Variable(tf.zeros([1000]))

@tf.function
def step():
    def one():
        gradient = tf.distribute.get_replica_context().all_reduce("sum", tf.ones([1000]))
        weights.assign_add(gradient * 0.001)
    strategy.run(one)

for _ in range(30):
    step()
    time.sleep(0.05)
time.sleep(1)
for _ in range(100):
    step()
    time.sleep(0.05)
print("trained", flush=True)
while second and what == "loop":
    pass
if second and what == "sleep":
    time.sleep(600)
if second and what == "queue":
    import queue
    queue.Queue().get()
if second and what == "left":
    import threading
    threading.Thread(target=time.sleep, args=(600,)).start()
    sys.exit(0)
while True:
    step()
    time.sleep(0.01)
"""

#: A chief that coordinates a worker and a ps.
SERVED = """
import os, time
import tensorflow as tf
resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
if resolver.task_type in ("worker", "ps"):
    tf.distribute.Server(
        resolver.cluster_spec(), job_name=resolver.task_type, task_index=resolver.task_id, protocol="grpc"
    ).join()
strategy = tf.distribute.ParameterServerStrategy(resolver)
coordinator = tf.distribute.coordinator.ClusterCoordinator(strategy)
with strategy.scope():
    weights = tf.Variable(0.0)

@tf.function
def step():
    weights.assign_add(1.0)

print("coordinating", flush=True)
while True:
    coordinator.schedule(step)
    coordinator.join()
    if float(weights) == 20.0:
        print("trained", flush=True)
    time.sleep(0.02)
"""


@pytest.mark.parametrize("what", ["loop", "sleep", "queue", "left"])
def test_a_worker_that_left_the_collective_is_named_and_its_line_is_in_the_stacks(here, what):
    """R21, R49, R60: it burns a core, sleeps, waits for input, has left; its heartbeats go on, and TensorFlow waits."""
    here.script(MIRRORED)
    launcher = here.start(
        "run", "--workers", 2, "--max-restarts", 0, "--start-timeout", "60s", "--hang", "6s", "train.py", what
    )
    wait_for(lambda: "trained" in here.said("worker:1"), "steps", within=120)
    assert launcher.wait(timeout=150) == 1
    report = here.report()
    assert (report["culprit"], report["victims"]) == ("worker:1", ["worker:0"])
    assert ("end of its program" if what == "left" else "does not take part") in report["cause"]
    if what != "left":
        assert "it is at train.py:" in report["cause"]
    for task in ("worker_0", "worker_1"):
        [stacks] = (here.run_folder() / "stacks" / task).glob("*.txt")
        assert "Threads, as the kernel sees them" in stacks.read_text()
    here.gone(within=5)


def test_a_peer_that_never_starts_is_named_by_the_start_deadline(here):
    """R20: MultiWorkerMirroredStrategy itself would wait an hour."""
    here.script(MIRRORED)
    done = here.call("run", "--workers", 2, "--max-restarts", 0, "--start-timeout", "45s", "train.py", "never")
    assert done.returncode == 1
    assert here.report()["culprit"] == "worker:1"
    assert "never listened" in here.report()["cause"]


@pytest.mark.parametrize("victim", ["worker:0", "worker:1"])
def test_a_frozen_worker_is_named_before_tensorflow_itself_notices(here, victim):
    """Facts §3: TensorFlow takes eight seconds or more, and never ends the frozen one."""
    here.script(MIRRORED)
    launcher = here.start("run", "--workers", 2, "--max-restarts", 0, "train.py", "train")
    wait_for(lambda: "trained" in here.said("worker:1"), "steps", within=120)
    os.kill(here.event("task-started", task=victim)["pid"], signal.SIGSTOP)
    struck = time.time()
    assert launcher.wait(timeout=60) == 1
    assert here.report()["culprit"] == victim
    assert here.event("culprit-named")["time"] - struck < 4.0
    here.gone(within=5)


@pytest.mark.parametrize("victim", ["worker:0", "ps:0", "chief:0"])
def test_a_frozen_task_of_a_parameter_server_job_is_named(here, victim):
    """Facts §4: the coordinator hangs for ever, in silence."""
    here.script(SERVED)
    launcher = here.start("run", "--workers", 1, "--ps", 1, "--max-restarts", 0, "train.py")
    wait_for(lambda: "trained" in here.said("chief:0"), "steps", within=120)
    os.kill(here.event("task-started", task=victim)["pid"], signal.SIGSTOP)
    struck = time.time()
    named = here.event("culprit-named")
    assert (named["task"], named["kind"]) == (victim, "infrastructure")
    assert named["time"] - struck < 4.0
    assert launcher.wait(timeout=60) == 1
    here.gone(within=5)


def test_a_frozen_worker_of_a_parameter_server_job_comes_back_and_the_training_goes_on(here):
    """Facts §4: without us the coordinator hangs; once the frozen worker is gone it goes on."""
    here.script(SERVED.replace("== 20.0", "% 20 == 0"))
    here.start("run", "--workers", 1, "--ps", 1, "train.py")
    wait_for(lambda: "trained" in here.said("chief:0"), "steps", within=120)
    os.kill(here.event("task-started", task="worker:0")["pid"], signal.SIGSTOP)
    here.event("task-listening", task="worker:0", attempt=2)
    before = here.said("chief:0").count("trained")
    wait_for(lambda: here.said("chief:0").count("trained") > before + 1, "more steps", within=120)
    assert {event["task"] for event in here.events("task-exited")} == {"worker:0"}
    assert len(here.events("generation-bound")) == 1
