"""The life line: what the agent sees of a process without asking it anything."""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from subprocess import Popen
from typing import Any

import pytest

from phalanx.agent.life import Life, Sign
from phalanx.agent.standby import boot_env
from runtime.starts import BOOT, riding

pytestmark = pytest.mark.real


@contextmanager
def program(text: str, folder: Path, *options: str) -> Iterator[tuple[Popen[bytes], Life]]:
    env = {"PATH": os.environ["PATH"], "HOME": str(folder), "TF_CPP_MIN_LOG_LEVEL": "3"}
    with riding([sys.executable, *options, "-c", text], env={**env, **boot_env(env, BOOT)}, cwd=folder) as started:
        yield started


def until(true: Callable[[], Any], what: str, within: float = 60.0) -> Any:
    deadline = time.monotonic() + within
    while time.monotonic() < deadline:
        if found := true():
            return found
        time.sleep(0.01)
    raise AssertionError(what)


def test_a_process_that_never_attaches_shows_nothing(tmp_path: Path) -> None:
    with program("print('here')", tmp_path, "-S") as (process, life):
        assert process.wait(60) == 0
        assert life.pid is None
        assert life.sign() == Sign()
        assert not asyncio.run(life.stacks())
        assert life.facts() is None


def test_stacks_of_all_threads_are_written_while_the_main_thread_is_in_c(tmp_path: Path) -> None:
    text = """
import ctypes, os, threading
def waits_in_a_thread():
    threading.Event().wait()
threading.Thread(target=waits_in_a_thread, daemon=True).start()
def waits_in_c():
    print("ready", flush=True)
    ctypes.CDLL(None).read(os.pipe()[0], ctypes.create_string_buffer(1), 1)
waits_in_c()
"""
    with program(text, tmp_path) as (process, life):
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        for _ in range(2):  # the second replaces the first
            said = asyncio.run(life.stacks())
            assert said.count("in waits_in_a_thread") == said.count("in waits_in_c") == 1
        assert process.poll() is None


def test_a_process_that_has_become_another_program_is_not_signalled(tmp_path: Path) -> None:
    with program("import os; os.execvp('sh', ['sh', '-c', 'echo ready; read x; exec sleep 60'])", tmp_path) as (
        process,
        life,
    ):
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        assert not asyncio.run(life.stacks())


def test_a_program_at_its_end_is_finished_while_a_thread_of_its_goes_on(tmp_path: Path) -> None:
    text = "import threading; threading.Thread(target=threading.Event().wait).start()"
    with program(text, tmp_path) as (process, life):
        until(lambda: life.sign().doing == "finished", "finished")
        assert process.poll() is None
        assert life.facts() == [{"is": "finished"}]


def test_the_end_of_a_forked_child_is_not_that_of_the_program(tmp_path: Path) -> None:
    text = """
import multiprocessing, threading
child = multiprocessing.get_context("fork").Process(target=print, args=("child",))
child.start()
child.join()
print("joined", flush=True)
threading.Event().wait()
"""
    with program(text, tmp_path) as (process, life):
        assert process.stdout is not None
        assert [process.stdout.readline() for _ in range(2)] == [b"child\n", b"joined\n"]
        assert life.sign().doing == ""
        assert life.facts() == []


RAISES = """
import json, sys, threading
sys.excepthook = lambda *about: print("my own words", file=sys.stderr)
def read(row):
    try:
        row["x"]
    except KeyError as missing:
        raise ValueError("row 3 is broken: \N{SNOWMAN}\\nsee above") from missing
def load():
    json.loads("{}", object_hook=read)
load()
"""


def test_the_exception_that_ends_a_program_is_told_whatever_its_own_hook_prints(tmp_path: Path) -> None:
    with program(RAISES, tmp_path) as (process, life):
        assert process.wait(60) == 1
        raised, finished = until(life.facts, "facts")
        assert finished == {"is": "finished"}
        said, where = "ValueError: row 3 is broken: \N{SNOWMAN}\nsee above", "<string>:8 in read"
        assert (raised["is"], raised["said"], raised["where"]) == ("raised", said, where)
        whole = json.loads(life.text(raised["bytes"]))
        assert [(one["type"], one["frames"][-1]["in"]) for one in whole["raised"]] == [
            ("ValueError", "read"),
            ("KeyError", "read"),
        ]


@pytest.mark.parametrize("text", ["import threading, sys; sys.exit('no')", "import threading"])
def test_a_program_that_leaves_by_itself_raised_nothing(tmp_path: Path, text: str) -> None:
    with program(text, tmp_path) as (process, life):
        process.wait(60)
        assert until(life.facts, "facts") == [{"is": "finished"}]


LOOP = """
import os, sys, threading
import tensorflow as tf
weight = tf.Variable(3.0)

@tf.function
def train():
    with tf.GradientTape() as tape:
        loss = weight * weight
    weight.assign_sub(0.1 * tape.gradient(loss, weight))

@tf.function
def validate():
    return weight * weight

@tf.function
def rate():
    return weight + 1.0

checkpoint = tf.train.Checkpoint(weight=weight)
manager = tf.train.CheckpointManager(checkpoint, "saved", max_to_keep=1)
checkpoint.restore(manager.latest_checkpoint)
for epoch in range(2):
    for _ in range(5):
        train()
        rate()
    for _ in range(40):
        validate()
    manager.save()
checkpoint.restore(manager.latest_checkpoint)
print("trained", flush=True)
sys.stdin.read() or threading.Event().wait()
"""


@pytest.mark.tensorflow
def test_a_custom_loop_is_counted_by_the_function_that_takes_gradients(tmp_path: Path) -> None:
    with program(LOOP, tmp_path) as (process, life):
        assert process.stdout is not None
        assert process.stdout.readline() == b"trained\n"
        sign = life.sign()
        assert (sign.step, sign.doing, sign.dropped) == (10, "validation", 0)
        assert sign.stepped is not None
        assert 0 < time.time() - sign.stepped < 60
        assert sign.loss is None  # its function returns nothing
        latest = str(tmp_path / "saved" / "ckpt-")
        assert life.facts() == [
            {"is": "first-step"},
            {"is": "saved", "path": latest + "1", "step": 5},
            {"is": "saved", "path": latest + "2", "step": 10},
            {"is": "restored", "path": latest + "2"},
        ]


FIT = """
import os
os.environ["TF_USE_LEGACY_KERAS"] = "%d"
import numpy as np
import tensorflow as tf
keras = tf.keras
model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(1)])
model.compile("sgd", "mse")
x = np.ones((32, 4), "float32")
model.fit(x, x[:, :1], batch_size=8, epochs=2, verbose=0, validation_data=(x, x[:, :1]),
          callbacks=[keras.callbacks.BackupAndRestore("backup", delete_checkpoint=False),
                     keras.callbacks.ModelCheckpoint("best.weights.h5", save_weights_only=True)])
"""


@pytest.mark.tensorflow
@pytest.mark.parametrize("legacy", [0, 1])
def test_fit_is_counted_in_batches_and_its_callbacks_save(legacy: int, tmp_path: Path) -> None:
    for start in range(2):
        with program(FIT % legacy, tmp_path) as (process, life):
            assert process.wait(120) == 0, process.communicate()[1].decode()
            sign, facts = life.sign(), life.facts()
            assert facts is not None
            restored = [Path(fact["path"]).name for fact in facts if fact["is"] == "restored"]
            if start == 0:
                assert (sign.step, sign.doing) == (8, "finished")
                assert (sign.epoch, sign.epochs, sign.steps_per_epoch, sign.epoch_step) == (2, 2, 4, 4)
                assert sign.loss is not None
                assert 0 < sign.loss < 100
                assert sign.collective is None  # it trains alone
                assert not restored
                saved = [(Path(fact["path"]).name, fact["step"]) for fact in facts if fact["is"] == "saved"]
                backup = ["ckpt-1", "ckpt-2"] if legacy else ["backup", "backup"]
                assert sorted(saved) == sorted(
                    [(backup[0], 4), ("best.weights.h5", 4), (backup[1], 8), ("best.weights.h5", 8)]
                )
            else:
                assert sign.step is None
                assert restored == (["ckpt-2"] if legacy else ["backup"])
