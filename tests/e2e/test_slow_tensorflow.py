"""Real TensorFlow that is held up by a worker, a link, or a parameter server with all the work; and by nobody."""

from __future__ import annotations

import json

import pytest

from launched import Place, wait_for

pytestmark = [pytest.mark.real, pytest.mark.tensorflow, pytest.mark.timeout(600)]

#: Seconds in which equal workers must not be told apart, and those in which somebody slow must be.
HEALTHY, SOON = 60.0, 120.0

#: Reduces 100 kB a step in a ring, for ever; worker 1 sleeps 20 ms a step while there is `nap`.
MIRRORED = """
import os, time
import tensorflow as tf
strategy = tf.distribute.MultiWorkerMirroredStrategy()
with strategy.scope():
    weights = tf.Variable(tf.zeros([25_000]))

@tf.function
def step():
    def one():
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(weights * weights)
        gradient = tf.distribute.get_replica_context().all_reduce("sum", tape.gradient(loss, weights))
        weights.assign_sub(gradient * 0.001)
    strategy.run(one)

second = os.environ["PHALANX_TASK"] == "worker:1"
while True:
    step()
    if second and os.path.exists("nap"):
        time.sleep(0.02)
"""

#: A ps job whose variables are one large one: it lands on a single ps, unless it is split.
SERVED = """
import os, sys
import tensorflow as tf
resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
if resolver.task_type in ("worker", "ps"):
    tf.distribute.Server(
        resolver.cluster_spec(), job_name=resolver.task_type, task_index=resolver.task_id, protocol="grpc"
    ).join()
strategy = tf.distribute.ParameterServerStrategy(resolver)
coordinator = tf.distribute.coordinator.ClusterCoordinator(strategy)
with strategy.scope():
    table = tf.Variable(tf.ones([500_000, 1]))
    bias = tf.Variable(tf.zeros([10]))

@tf.function
def step():
    def one():
        bias.assign_sub(0.001 * tf.reduce_sum(tf.convert_to_tensor(table)) * tf.ones([10]))
    strategy.run(one)

while True:
    for _ in range(10):
        coordinator.schedule(step)
    coordinator.join()
"""


def found(here: Place, **fields: object) -> dict[str, object]:
    """Wait for the event that says who is slow."""

    def there() -> list[dict[str, object]]:
        told = here.events("slow-found")
        return [one for one in told if all(one.get(name) == value for name, value in fields.items())]

    return wait_for(there, f"slow-found {fields}", within=SOON)[-1]


def diagnosed(here: Place) -> dict[str, object]:
    done = here.call("diagnose", "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_a_slow_worker_and_then_a_slow_link_are_named_and_before_that_nobody(here: Place):
    script = here.script(MIRRORED)
    started = here.call("run", "--workers", 3, "--hosts", 3, "--detach", script)
    assert started.returncode == 0, started.stderr
    first = here.event("task-stepped")["time"]
    wait_for(lambda: here.events()[-1]["time"] > first + HEALTHY, "a healthy minute", within=HEALTHY + SOON)
    assert here.events("slow-found") == []
    said = here.call("diagnose").stdout
    assert "nothing is slow" in said
    assert "worker:2 → worker:0" in said

    (here.folder / "nap").touch()
    slow = found(here, cause="task")
    assert slow["task"] == "worker:1"
    assert slow["factor"] > 1.5
    assert "worker:1 on " in slow["says"]
    assert "slow: worker:1 on " in here.call("ps", "last").stdout
    own = {one["task"]: one["own"] for one in diagnosed(here)["look"]["paces"]["tasks"]}
    assert 0.01 < own["worker:1"] - own["worker:0"] < 0.06
    (here.folder / "nap").unlink()
    here.event("slow-ended", task="worker:1")

    hurt = here.start("chaos", "last", "--fault", "slow:worker:0-worker:1=60s@0s")
    slow = found(here, cause="link")
    assert {slow["task"], slow["peer"]} == {"worker:0", "worker:1"}
    assert slow["factor"] >= 3
    assert "/s, others " in slow["says"]
    # The first word counts what went before within the window too; then it comes down to the 256 KiB a second.
    wait_for(lambda: "kB/s, others " in here.call("diagnose").stdout, "the link's own speed", within=40.0)
    told = [(one["cause"], one.get("task")) for one in here.events("slow-found")]
    assert set(told) == {("task", "worker:1"), ("link", "worker:0")}
    hurt.terminate()
    hurt.communicate()

    assert here.call("stop").returncode == 0
    report = here.report()
    assert {one["cause"] for one in report["slow"]} == {"task", "link"}
    said = here.call("report").stdout
    assert "  slow:\n    worker:1 on " in said
    assert diagnosed(here)["look"]["paces"]["links"]


def test_a_ps_that_holds_all_the_variables_is_told_of_with_the_way_out(here: Place):
    started = here.call("run", "--workers", 1, "--ps", 2, "--detach", here.script(SERVED))
    assert started.returncode == 0, started.stderr
    slow = found(here, cause="server")
    assert slow["task"] == "ps:0"
    assert slow["factor"] > 1.8
    assert "MinSizePartitioner(max_shards=2)" in slow["advice"]
    assert "parameter servers, by bytes: ps:0 " in here.call("diagnose").stdout
    assert here.call("stop").returncode == 0
