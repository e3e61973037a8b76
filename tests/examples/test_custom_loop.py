"""The example by hand: it knows nothing of phalanx."""

from __future__ import annotations

import itertools
import re

import pytest

from byhand import EXAMPLES, figures, finish, start, start_all

SCRIPT = EXAMPLES / "custom_loop" / "train.py"

pytestmark = [pytest.mark.real, pytest.mark.tensorflow, pytest.mark.timeout(600)]


def test_two_workers_by_hand_train_what_one_does_and_one_resumes_what_two_began(tmp_path):
    workers = start_all({"worker": 2}, SCRIPT, "--epochs", 2, "--checkpoint", tmp_path)
    leader, other = [finish(worker) for worker in workers.values()]
    assert figures(leader, "loss") == figures(other, "loss")
    assert list(tmp_path.glob("workertemp_*")) == []
    assert re.fullmatch(r"accuracy 0\.\d{3}", leader[-1])
    assert "accuracy 0" not in [line[:10] for line in other]

    resumed = finish(start(SCRIPT, "--epochs", 8, "--checkpoint", tmp_path))
    assert resumed[0].startswith("resumed after epoch 2 from ")
    assert float(resumed[-1].removeprefix("accuracy ")) >= 0.95

    alone = figures(finish(start(SCRIPT, "--epochs", 4)), "loss")
    together = figures(leader, "loss") + figures(resumed, "loss")
    assert together[:4] == pytest.approx(alone, abs=2e-3)


def test_a_killed_worker_leaves_nothing_outside_the_checkpoint_folder_and_nothing_that_grows_in_it(tmp_path):
    scratch, checkpoint = tmp_path / "tmp", tmp_path / "ckpt"
    scratch.mkdir()
    for _ in range(2):
        words = ("--epochs", 50, "--checkpoint", checkpoint)
        workers = start_all({"worker": 2}, SCRIPT, *words, TMPDIR=str(scratch))
        try:
            said = workers["worker:1"].stdout
            assert said is not None
            seen = sum(line.startswith("epoch") for line in itertools.islice(said, 3))
            assert seen >= 2, "it has saved once at least"
        finally:
            for worker in workers.values():
                worker.kill()
                worker.communicate()
    assert [left for left in scratch.iterdir() if left.is_dir()] == []  # AutoGraph leaves files of its own
    assert [folder.name for folder in checkpoint.glob("workertemp_*")] == ["workertemp_1"]
