"""MovieLens under ParameterServerStrategy: {custom loop, tf_keras fit} x {one ps, two ps}, by hand, by phalanx, and hurt."""

from __future__ import annotations

import os
import signal
from functools import partial

import pytest

from byhand import EXAMPLES, epochs, figures, together
from launched import wait_for

FOLDER = EXAMPLES / "recommender"
#: Who always says the mean of all ratings is wrong by 1.12 stars, who knows each movie's and each person's mean, by 0.945.
GOOD = 0.94

pytestmark = [pytest.mark.real, pytest.mark.tensorflow, pytest.mark.timeout(600)]


@pytest.mark.parametrize(("script", "count"), [("loop.py", 6), ("fit.py", 4)])
def test_one_worker_and_two_ps_give_the_same_numbers_by_phalanx_as_by_hand(here, script, count):
    """One worker, since two race for the steps: then no two runs are alike, whoever starts them."""
    by_hand = together({"chief": 1, "worker": 1, "ps": 2}, FOLDER / script, "--epochs", count)["chief:0"]
    done = here.call("run", "--workers", 1, "--ps", 2, FOLDER / script, "--epochs", count)
    assert done.returncode == 0, done.stdout + done.stderr
    lines = epochs(here.said("chief:0"))
    assert lines == epochs("\n".join(by_hand))
    assert figures(lines, "rmse")[-1] < GOOD


@pytest.mark.parametrize(("script", "count"), [("loop.py", 12), ("fit.py", 8)])
def test_a_worker_a_ps_and_the_chief_are_killed_in_turn_and_the_model_is_as_good(here, script, count):
    """R75, R76: facts §4."""
    words = ("--workers", 2, "--ps", 1, "--max-restarts", 4)
    run = here.start("run", *words, FOLDER / script, "--epochs", count, "--checkpoint", here.folder / "ckpt")

    def said() -> str:
        logs = sorted((here.run_folder() / "logs" / "chief_0").glob("*.out"), key=lambda path: path.stat().st_mtime)
        return "".join(path.read_text() for path in logs)

    def reached(epoch: int) -> bool:
        assert run.poll() is None, run.communicate()
        return f"epoch {epoch}/" in said()

    for number, task in enumerate(("worker:1", "ps:0", "chief:0"), 2):
        wait_for(partial(reached, number), f"epoch {number}", within=200)
        os.kill([each["pid"] for each in here.events("task-started") if each["task"] == task][-1], signal.SIGKILL)
        here.event("culprit-named", task=task)
    out, err = run.communicate(timeout=400)
    assert run.returncode == 0, out + err
    assert [event["task"] for event in here.events("culprit-named")] == ["worker:1", "ps:0", "chief:0"]
    lines = epochs(said())
    assert lines[-1].startswith(f"epoch {count}/{count} ")
    assert figures(lines, "rmse")[-1] < GOOD
    here.gone(within=5)
