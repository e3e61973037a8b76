"""What the runtime measures in real TensorFlow: epochs, losses, time in collectives; and that nothing changes by it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from runtime.clusters import run_cluster
from runtime.test_life import program

pytestmark = [pytest.mark.real, pytest.mark.tensorflow, pytest.mark.timeout(600)]

WORKERS = {"worker": 2}

LOOP = """
import json, os, time
import tensorflow as tf
strategy = tf.distribute.MultiWorkerMirroredStrategy()
me = json.loads(os.environ["TF_CONFIG"])["task"]["index"]
tf.random.set_seed(7)
with strategy.scope():
    weight = tf.Variable(tf.random.stateless_normal((64, 32), (1, 2)))
x = tf.random.stateless_normal((16, 64), (me, 3))

def step():
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.nn.dropout(x @ weight, 0.1) ** 2)
    gradient = tf.distribute.get_replica_context().all_reduce("MEAN", tape.gradient(loss, weight))
    weight.assign_sub(0.1 * gradient)
    return loss

@tf.function
def train():
    strategy.run(step)
    return strategy.reduce("MEAN", strategy.run(step), axis=None)  # random numbers follow a collective in one graph

losses = []
for _ in range(40):
    time.sleep(0.02 * me)
    losses.append(float(train()))
print(json.dumps(losses))
"""


@pytest.fixture(scope="module")
def loops(tmp_path_factory: pytest.TempPathFactory):
    """The same two workers with the runtime and without."""
    folder = tmp_path_factory.mktemp("loops")
    return [run_cluster(LOOP, WORKERS, folder, rides=rides) for rides in (True, False)]


def test_losses_of_two_workers_are_the_same_to_the_last_digit_with_the_runtime_and_without(loops):
    said = [[done.out for done in run.values()] for run in loops]
    assert said[0] == said[1], [done.err[-2000:] for run in loops for done in run.values()]
    assert len(json.loads(said[0][0])) == 40


def test_the_loss_of_a_custom_loop_is_what_its_training_function_has_returned(loops):
    for done in loops[0].values():
        losses = json.loads(done.out)
        assert done.sign.step == 40
        assert done.sign.loss in losses[10:]
        assert done.sign.epoch is None


def test_a_straggler_of_20_ms_is_the_one_with_the_least_time_in_collectives(loops):
    """The finder of facts §11; R70."""
    waits, straggles = (loops[0][f"worker:{n}"].sign.collective for n in range(2))
    assert waits > straggles + 0.02 * 40 / 2  # both wait for this machine at times; one for the other at each step


FIT = """
import json, os
os.environ["TF_USE_LEGACY_KERAS"] = "1"
import tensorflow as tf
strategy = tf.distribute.MultiWorkerMirroredStrategy()
tf.keras.utils.set_random_seed(3)
data = tf.data.Dataset.from_tensor_slices((tf.random.stateless_normal((64, 8), (1, 2)), tf.ones((64, 1))))
options = tf.data.Options()
options.experimental_distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy.DATA
data = data.batch(16).repeat().with_options(options)
with strategy.scope():
    model = tf.keras.Sequential([tf.keras.layers.Dense(4), tf.keras.layers.Dropout(0.2), tf.keras.layers.Dense(1)])
    model.compile("adam", "mse")
told = model.fit(data, epochs=3, steps_per_epoch=4, verbose=0)
print(json.dumps(told.history["loss"]))
"""


def test_fit_of_two_workers_tells_its_epochs_and_trains_as_without_the_runtime(tmp_path: Path):
    rides, plain = (run_cluster(FIT, WORKERS, tmp_path, rides=one) for one in (True, False))
    assert [done.out for done in rides.values()] == [done.out for done in plain.values()]
    for done in rides.values():
        sign = done.sign
        assert (sign.step, sign.epoch, sign.epochs, sign.steps_per_epoch, sign.epoch_step) == (12, 3, 3, 4, 4)
        assert sign.loss == pytest.approx(json.loads(done.out)[-1])
        assert sign.collective > 0


SERVERS = """
import json, os, sys, time
os.environ["TF_USE_LEGACY_KERAS"] = "1"
import tensorflow as tf
resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
if resolver.task_type != "chief":
    tf.distribute.Server(resolver.cluster_spec(), resolver.task_type, resolver.task_id, protocol="grpc").join()
strategy = tf.distribute.ParameterServerStrategy(resolver)
x = tf.random.stateless_normal((64, 4), (1, 2))
data = tf.data.Dataset.from_tensor_slices((x, x[:, :1])).batch(8).repeat()
with strategy.scope():
    model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
    model.compile("sgd", "mse", steps_per_execution=2)
told = model.fit(data, epochs=2, steps_per_epoch=6, verbose=0)
print(len(told.history["loss"]), flush=True)
if len(sys.argv) > 1:
    sys.exit()
coordinator = tf.distribute.coordinator.ClusterCoordinator(strategy)
with strategy.scope():
    weight = tf.Variable(3.0)

@tf.function
def step():
    with tf.GradientTape() as tape:
        loss = weight * weight
    weight.assign_sub(0.1 * tape.gradient(loss, weight))
    return loss

for _ in range(5):
    coordinator.schedule(step)
    coordinator.join()
    time.sleep(0.3)
"""


def test_parameter_servers_with_fit_and_with_a_loop_are_not_disturbed(tmp_path: Path):
    """A batch hook would end them (facts §2): epochs are told all the same, and steps are those handed out."""
    roles = {"chief": 1, "worker": 1, "ps": 1}
    chief = run_cluster(SERVERS, roles, tmp_path, leader="chief:0")["chief:0"]
    assert (chief.code, chief.out) == (0, "2\n"), chief.err[-2000:]
    sign = chief.sign
    assert sign.step == 2 * 3 + 5
    assert (sign.epochs, sign.steps_per_epoch) == (2, 3)
    assert sign.epoch is None  # something else trains since
    assert sign.loss is not None  # of the last epoch: nothing is fetched from a worker
    assert sign.collective is None


ALONE = """
import tensorflow as tf
from tensorflow.python.ops import collective_ops
weight = tf.Variable([1.0, 2.0])

def train():
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(weight * weight)
    weight.assign_sub(0.1 * collective_ops.all_reduce_v2(tape.gradient(loss, weight), 1, 1, key))  # a group of one
    return loss

key = 1
measured = tf.function(train)
print([float(measured()) for _ in range(3)])
tf.config.experimental.enable_op_determinism()
key = 2
deterministic = tf.function(train)
print([float(deterministic()) for _ in range(3)])
"""


def test_under_op_determinism_nothing_is_measured_and_all_goes_on(tmp_path: Path):
    """TensorFlow has no timestamps there, and fails the whole step for one."""
    with program(ALONE, tmp_path) as (process, life):
        out, err = process.communicate(timeout=120)
        assert process.returncode == 0, err.decode()[-2000:]
        first, second = map(json.loads, out.splitlines())
        assert first == pytest.approx([5.0, 3.2, 2.048])
        assert second == pytest.approx([loss * 0.64**3 for loss in first])
        assert life.sign().collective is not None
