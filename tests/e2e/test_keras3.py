"""Keras 3's `fit` with several workers: as tf_keras trains, with its callbacks, and across a kill (facts §1)."""

from __future__ import annotations

import functools
import json
import os
import signal
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from launched import Place, place

pytestmark = [pytest.mark.real, pytest.mark.tensorflow, pytest.mark.timeout(600)]

#: One path for all workers everywhere (R87). With `kill`, worker 1 dies when it has saved its third epoch, and with
#: Keras 3 the first worker has not: copies of their own would be an epoch apart. (tf_keras saves together.)
TRAIN = """
import json, os, signal, sys, time
import numpy as np
import tensorflow as tf

keras = tf.keras
strategy = tf.distribute.MultiWorkerMirroredStrategy()
first = strategy.extended._is_chief
x = np.random.RandomState(0).rand(48, 4).astype("float32")
y = x.sum(1, keepdims=True)
with strategy.scope():
    constant = keras.initializers.Constant
    model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(3, "relu", kernel_initializer=constant(0.1)),
                              keras.layers.Dense(1, kernel_initializer=constant(0.2))])
    model.compile(keras.optimizers.SGD(0.1, momentum=0.5), "mse", metrics=["mae"])
three = model.__module__.startswith("keras.")

class Strike(keras.callbacks.Callback):
    def __init__(self, who, deed):
        super().__init__()
        self.who, self.deed = who, deed

    def on_epoch_end(self, epoch, logs=None):
        if "kill" in sys.argv and os.environ["PHALANX_GENERATION"] == "1" and epoch == 2 and first == self.who:
            self.deed()

callbacks = [
    Strike(True, lambda: time.sleep(60 * three)),
    keras.callbacks.BackupAndRestore("backup"),
    keras.callbacks.ModelCheckpoint("last.weights.h5", save_weights_only=True),
    keras.callbacks.CSVLogger("log.csv", append=True),
    Strike(False, lambda: os.kill(os.getpid(), signal.SIGKILL)),
]
options = tf.data.Options()
options.experimental_distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy.DATA
data = tf.data.Dataset.from_tensor_slices((x, y)).batch(12).with_options(options)
told = {"dataset": model.fit(data, epochs=1, verbose=0).history}
told["numpy"] = model.fit(x, y, batch_size=12, epochs=4, shuffle=False, verbose=0, validation_data=(x, y),
                          callbacks=callbacks).history
if three:
    model.load_weights("last.weights.h5")
told["evaluate"] = model.evaluate(data, verbose=0, return_dict=True)
told["predict"] = model.predict(x, batch_size=12, verbose=0)[:, 0].tolist()
if three:
    told["on_batch"] = model.train_on_batch(x[:12], y[:12], return_dict=True)
    model.save("model.keras")  # by all at once
    saved = keras.models.load_model("model.keras")
    assert np.array_equal(saved.get_weights()[0], model.get_weights()[0])
print("told", json.dumps(told, default=float), flush=True)
"""

SHAPES = {
    "one worker": ("--workers", 1),
    "two workers": ("--workers", 2),
    "three workers": ("--workers", 3),
    "chief and worker": ("--workers", 1, "--chief"),
}
Run = Callable[..., Place]


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Run]:
    """Runs the script in that shape with that Keras, once for all tests of this page."""
    open_places = []

    @functools.cache
    def run(shape: str, keras: str, *words: str) -> Place:
        made = place(tmp_path_factory.mktemp("keras"))
        here = next(made)
        open_places.append(made)
        launcher = here.start("run", *SHAPES[shape], "--keras", keras, here.script(TRAIN), *words)
        out, err = launcher.communicate(timeout=500)
        assert launcher.returncode == 0, out + err
        return here

    yield run
    for made in open_places:
        next(made, None)


def told(here: Place) -> list[dict[str, Any]]:
    """What each task of the last generation has printed."""
    logs = sorted((here.run_folder() / "logs").glob("*/*.out"), key=lambda log: log.name)
    last = [log for log in logs if log.name == logs[-1].name]
    return [json.loads(line[5:]) for log in last for line in log.read_text().splitlines() if line.startswith("told ")]


def notes(here: Place) -> list[str]:
    said = [note["message"] for note in here.events("noted")]
    return [message for message in said if message.startswith(("Keras", "BackupAndRestore"))]


def alike(found: Any, wanted: Any) -> None:
    """Equal to six digits, whatever it is made of."""
    if isinstance(wanted, dict):
        for name, value in wanted.items():
            alike(found[name], value)
    else:
        assert found == pytest.approx(wanted, rel=1e-6, abs=1e-7)


@pytest.mark.parametrize("shape", SHAPES)
def test_keras_3_trains_as_tf_keras_does(ran: Run, shape: str) -> None:
    """keras-team/keras#20585: fit, evaluate and predict, from numpy and a dataset, with validation and callbacks."""
    legacy, three = told(ran(shape, "legacy")), told(ran(shape, "auto"))
    assert len(legacy) == len(three) == (3 if shape == "three workers" else 1 if shape == "one worker" else 2)
    for one in (*legacy, *three):
        alike(one, legacy[0])


def test_what_was_mended_and_rewritten_is_said_once(ran: Run) -> None:
    for shape in ("three workers", "chief and worker"):
        said = notes(ran(shape, "auto"))
        first = "chief:0" if shape == "chief and worker" else "worker:0"
        assert len(said) == 2, said
        assert "fit and evaluate fail with several workers (keras-team/keras#20585) and are mended" in said[0]
        assert said[1].startswith(f"BackupAndRestore and CSVLogger: {first} keeps the path of the script")
    assert notes(ran("one worker", "auto")) == []
    assert notes(ran("two workers", "legacy")) == []


def test_files_under_one_path_are_the_first_workers_and_whole(ran: Run) -> None:
    """R87: nobody meets a file that another has open, and nothing is left beside them."""
    here = ran("three workers", "auto")
    found = {path.name for path in here.folder.iterdir()}
    assert found == {"train.py", "runs", "last.weights.h5", "log.csv", "model.keras"}
    rows = (here.folder / "log.csv").read_text().splitlines()
    assert [row.partition(",")[0] for row in rows] == ["epoch", "0", "1", "2", "3"]
    own = [str(path.relative_to(here.run_folder() / "tasks")) for path in here.run_folder().glob("tasks/*/keras/*")]
    assert sorted(own) == ["worker_1/keras/1-log.csv", "worker_2/keras/1-log.csv"]


@pytest.mark.parametrize("keras", ["auto", "legacy"])
def test_a_worker_killed_between_two_saves_leaves_nobody_an_epoch_apart(ran: Run, keras: str) -> None:
    """R87; the backup of the first worker is what all go on from."""
    here, undisturbed = ran("two workers", keras, "kill"), ran("two workers", keras)
    killed = here.event("task-exited", task="worker:1")
    assert killed["signal"] == signal.SIGKILL
    restored = {event["task"]: event["path"] for event in here.events("checkpoint-restored")}
    assert set(restored) == {"worker:0", "worker:1"}
    assert len({os.path.realpath(path) for path in restored.values()}) == 1
    for one in told(here):
        assert len(one["numpy"]["loss"]) == (2 if keras == "auto" else 1)  # the epochs after the first worker's backup
        alike({name: values[-1] for name, values in one["numpy"].items()}, {
            name: values[-1] for name, values in told(undisturbed)[0]["numpy"].items()
        })  # fmt: skip
        alike(one["evaluate"], told(undisturbed)[0]["evaluate"])
