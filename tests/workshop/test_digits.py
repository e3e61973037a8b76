"""The example by hand: it knows nothing of phalanx."""

from __future__ import annotations

import itertools
import json
import os
import re
import socket
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "examples/digits/train.py"


def start(*words: object, tf_config: dict | None = None, **more: str) -> subprocess.Popen[str]:
    env = {name: value for name, value in os.environ.items() if name != "TF_CONFIG"} | more
    if tf_config:
        env["TF_CONFIG"] = json.dumps(tf_config)
    return subprocess.Popen(
        [sys.executable, SCRIPT, *map(str, words)], env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def finish(process: subprocess.Popen[str]) -> list[str]:
    """Its lines on standard output, once it has ended well."""
    out, err = process.communicate(timeout=90)
    assert process.returncode == 0, err
    return out.splitlines()


def free_addresses(count: int) -> list[str]:
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    addresses = [f"127.0.0.1:{each.getsockname()[1]}" for each in sockets]
    for each in sockets:
        each.close()
    return addresses


def figures(lines: list[str]) -> dict[int, float]:
    """Epoch → loss."""
    found = (re.fullmatch(r"epoch (\d+)/\d+ loss (\d\.\d{4}) accuracy 0\.\d{3}", line) for line in lines)
    return {int(match[1]): float(match[2]) for match in found if match}


@pytest.mark.real
@pytest.mark.tensorflow
def test_two_workers_by_hand_train_what_one_does_and_one_resumes_what_two_began(tmp_path):
    cluster = {"worker": free_addresses(2)}
    workers = [
        start(
            "--epochs",
            2,
            "--checkpoint",
            tmp_path,
            tf_config={"cluster": cluster, "task": {"type": "worker", "index": i}},
        )
        for i in range(2)
    ]
    leader, other = [finish(worker) for worker in workers]
    assert figures(leader) == figures(other)
    assert list(tmp_path.glob("workertemp_*")) == []
    assert re.fullmatch(r"accuracy 0\.\d{3}", leader[-1])
    assert "accuracy 0" not in [line[:10] for line in other]

    resumed = finish(start("--epochs", 8, "--checkpoint", tmp_path))
    assert resumed[0].startswith("resumed after epoch 2 from ")
    assert float(resumed[-1].removeprefix("accuracy ")) >= 0.95

    alone = figures(finish(start("--epochs", 4)))
    together = figures(leader) | figures(resumed)
    assert [together[epoch] for epoch in alone] == pytest.approx(list(alone.values()), abs=2e-3)


@pytest.mark.real
@pytest.mark.tensorflow
def test_a_killed_worker_leaves_nothing_outside_the_checkpoint_folder_and_nothing_that_grows_in_it(tmp_path):
    scratch, checkpoint = tmp_path / "tmp", tmp_path / "ckpt"
    scratch.mkdir()
    for _ in range(2):
        cluster = {"worker": free_addresses(2)}
        workers = [
            start(
                *("--epochs", 50, "--checkpoint", checkpoint),
                tf_config={"cluster": cluster, "task": {"type": "worker", "index": index}},
                TMPDIR=str(scratch),
            )
            for index in range(2)
        ]
        try:
            assert workers[1].stdout is not None
            seen = sum(line.startswith("epoch") for line in itertools.islice(workers[1].stdout, 3))
            assert seen >= 2, "it has saved once at least"
        finally:
            for worker in workers:
                worker.kill()
                worker.communicate()
    assert [left for left in scratch.iterdir() if left.is_dir()] == []  # AutoGraph leaves files of its own
    assert [folder.name for folder in checkpoint.glob("workertemp_*")] == ["workertemp_1"]
