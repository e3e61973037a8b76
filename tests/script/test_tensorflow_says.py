"""The tables of the rules against TensorFlow and Keras themselves: what is said to happen, happens."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from phalanx.script.rules import context

pytestmark = [pytest.mark.tensorflow, pytest.mark.real]

#: Each name is called with one argument list after the other until one makes the context, in a fork of its own.
CONTEXT = """
import json, os, sys
import tensorflow as tf
from tensorflow.python.eager import context
if os.environ.get("TF_USE_LEGACY_KERAS"):
    import tf_keras as keras
else:
    import keras

ARGUMENTS = ["1.0", "[1.0]", "", "1", "[[1.0]]", "[1.0], [1.0]", "[1], 0", "[[1.0]], [[1.0]]", "[1.0], tf.float32",
             "[1], 2", "[1.0], [1]", "[1], 1", "[1.0], 0.0, 1.0", "[1.0], [0], [1]", "True, [1], [2]", "'/tmp'",
             "'cpu:0'", "'adam'", "['a']", "'x', 4", "[1.0], [True]", "[[1.0]], 1", "[[[1.0]]], [1, 1]",
             "[1.0], [[1, 1]]", "[[1.0]], [[1.0]], 1", "[[1, 2]], [2]"]

def tried(name):
    for arguments in ARGUMENTS if name not in HARMLESS else ARGUMENTS[2:4]:
        try:
            eval(f"{name}({arguments})")
        except BaseException:
            pass
        if context.context()._context_handle is not None:
            return b"y"
    return b"n"

def makes(name):
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        os.write(write, tried(name))
        os._exit(0)
    os.close(write)
    said = os.read(read, 1)
    os.close(read)
    os.waitpid(pid, 0)
    return said == b"y"

HARMLESS = sys.argv[1].split()
print(json.dumps({name: makes(name) for name in [*HARMLESS, *sys.argv[2:]]}))
"""

HARMLESS = (
    "tensorflow.random.set_seed",
    "tensorflow.config.list_physical_devices",
    "tensorflow.distribute.cluster_resolver.TFConfigClusterResolver",
    "tensorflow.data.Options",
    "tensorflow.train.Checkpoint",
    "keras.layers.Dense",
    "keras.losses.MeanSquaredError",
)

#: What Keras 3 does with what a rule is about: the rule, a program, and the beginning of what it raises.
KERAS_3 = {
    "keras3-name-gone": ("tf.keras.callbacks.experimental", "AttributeError"),
    "keras3-name-gone (legacy)": ("tf.keras.optimizers.legacy.Adam()", "ImportError"),
    "keras3-method-gone": ("model().fit_generator", "AttributeError"),
    "keras3-weights-path": ("model().save_weights('w.h5')", "ValueError: The filename must end in `.weights.h5`"),
    "keras3-weights-path (callback)": ("ModelCheckpoint('w', save_weights_only=True)", "ValueError: When using"),
    "keras3-model-path": ("model().save('folder')", "ValueError: Invalid filepath extension for saving"),
    "keras3-model-path (callback)": ("ModelCheckpoint('ckpt')", "ValueError: The filepath provided must end in"),
    "keras3-reset-states": ("keras.metrics.Mean().reset_states()", "AttributeError: 'Mean' object has no attribute"),
    "keras3-lr": ("model().optimizer.lr", "AttributeError: 'SGD' object has no attribute 'lr'"),
    "keras3-optimizer-lr": ("keras.optimizers.Adam(lr=0.1)", "ValueError: Argument(s) not recognized: {'lr': 0.1}"),
    "keras3-fit-argument": ("model().fit([[1.0]], [1.0], workers=2)", "TypeError"),
    "keras3-symbolic": ("tf.reduce_mean(keras.layers.Dense(1)(keras.Input((3,))))", "ValueError: A KerasTensor cannot"),
    "script-estimator-gone": ("tf.estimator", "AttributeError: module 'tensorflow' has no attribute 'estimator'"),
    "script-estimator-gone (compat)": ("tf.compat.v1.estimator", "AttributeError"),
    "tensorflow-name-gone": ("tf.train.Server", "AttributeError"),
    "ps-without-resolver": ("tf.distribute.ParameterServerStrategy()", "TypeError"),
    "fewer-files-than-workers": ("shard(0)", "InvalidArgumentError"),
    "fewer-files-than-workers (FILE)": ("shard(0, policy('FILE'))", "InvalidArgumentError"),
    "fewer-files-than-workers (names)": ("shard(0, names=True)", "InvalidArgumentError"),
    "fewer-files-than-workers (of memory)": (
        "list(distribute._AutoShardDataset(tf.data.Dataset.range(8).with_options(policy('FILE')), 2, 0))",
        "NotFoundError",
    ),
}
RAISES = """
import json, os, sys, tempfile
import tensorflow as tf, keras
from keras.callbacks import ModelCheckpoint
from tensorflow.python.data.experimental.ops import distribute

os.chdir(tempfile.mkdtemp())

def model():
    made = keras.Sequential([keras.Input((1,)), keras.layers.Dense(1)])
    made.compile("sgd", "mse")
    return made

def policy(name):
    options = tf.data.Options()
    options.experimental_distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy[name]
    return options

def shard(index, options=tf.data.Options(), names=False):
    with tf.io.TFRecordWriter("one.tfrecord") as file:
        file.write(b"x")
    data = tf.data.TFRecordDataset("one.tfrecord")
    if names:
        data = tf.data.Dataset.list_files("one.tfrecord").interleave(tf.data.TFRecordDataset)
    return list(distribute._AutoShardDataset(data.with_options(options), 2, index))

def raised(program):
    try:
        eval(program)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return ""

unchanged = model()
before = float(unchanged.optimizer.learning_rate.numpy())
unchanged.optimizer.lr = 0.5
said = {name: raised(program) for name, program in json.loads(sys.argv[1]).items()}
print(json.dumps([said, before == float(unchanged.optimizer.learning_rate.numpy())]))
"""


def _ask(program: str, *words: str, legacy: bool = False) -> object:
    env = {**os.environ, "CUDA_VISIBLE_DEVICES": "", "TF_CPP_MIN_LOG_LEVEL": "3"}
    env.pop("TF_USE_LEGACY_KERAS", None)
    if legacy:
        env["TF_USE_LEGACY_KERAS"] = "1"
    done = subprocess.run(
        [sys.executable, "-c", program, *words], env=env, capture_output=True, text=True, timeout=100, check=True
    )
    return json.loads(done.stdout.splitlines()[-1])


def _spelled(name: str) -> str:
    return name.replace("tensorflow.", "tf.", 1)


@pytest.mark.parametrize("legacy", [False, True], ids=["keras-3", "tf-keras"])
def test_every_call_that_is_said_to_make_the_context_makes_it(legacy):
    names = [*sorted(context.CREATES), *(f"keras.{name}" for name in sorted(context.OF_KERAS))]
    names += [f"tensorflow.data.Dataset.{way}" for way in ("range", "from_tensor_slices", "list_files")]
    said = _ask(CONTEXT, " ".join(map(_spelled, HARMLESS)), *map(_spelled, names), legacy=legacy)
    assert isinstance(said, dict)
    assert [name for name in names if not said[_spelled(name)]] == []
    assert [name for name in HARMLESS if said[_spelled(name)]] == []


def test_what_keras_3_is_said_to_refuse_it_refuses():
    said, lr_changes_nothing = _ask(RAISES, json.dumps({name: program for name, (program, _) in KERAS_3.items()}))
    assert {name: said[name][: len(start)] for name, (_, start) in KERAS_3.items()} == {
        name: start for name, (_, start) in KERAS_3.items()
    }
    assert lr_changes_nothing
