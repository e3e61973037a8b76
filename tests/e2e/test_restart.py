"""The whole group comes back as a new generation: real processes, and real TensorFlow that resumes."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from launched import wait_for

DIGITS = Path(__file__).parents[2] / "examples" / "digits" / "train.py"

#: Fails once in its second worker, then does well; says where it runs.
ONCE = """
import os, sys, time
print("up", os.environ["PHALANX_GENERATION"], os.environ["TF_CONFIG"], flush=True)
if os.environ["PHALANX_GENERATION"] == "1":
    if os.environ["PHALANX_TASK"] == "worker:1":
        sys.exit("bad luck")
    time.sleep(60)
"""


@pytest.mark.real
def test_a_failed_group_starts_again_whole_on_new_ports_and_the_report_tells_both_stories(here):
    here.script(ONCE)
    done = here.call("run", "--workers", 2, "--max-restarts", 2, "train.py")
    assert done.returncode == 0, done.stdout + done.stderr
    report = here.report()
    assert (report["result"], report["generation"]) == ("succeeded", 2)
    assert [(past["number"], past["culprit"], past["restart"]) for past in report["past"]] == [
        (1, "worker:1", "restart 1 of 2")
    ]
    bound = here.events("generation-bound")
    ports = [{place["address"] for place in event["places"]} for event in bound]
    assert not ports[0] & ports[1]
    logs = sorted(path.name for path in (here.run_folder() / "logs" / "worker_1").glob("*.out"))
    assert logs == ["g1.a1.out", "g2.a1.out"]
    assert "generation 1 ended" in done.stdout
    here.gone(within=3)


@pytest.mark.real
def test_without_a_budget_the_first_failure_ends_the_run(here):
    here.script(ONCE)
    assert here.call("run", "--max-restarts", 0, "--workers", 2, "train.py").returncode == 1
    assert here.report()["past"] == []


@pytest.mark.real
@pytest.mark.tensorflow
@pytest.mark.timeout(240)
def test_a_killed_worker_costs_at_most_one_epoch_and_the_result_is_that_of_an_undisturbed_run(here):
    """R74: SIGKILL in mid-run, restart of the whole group, resume from the checkpoint."""
    words = ("--workers", 2, "--max-restarts", 3, DIGITS, "--epochs", 12, "--checkpoint")
    undisturbed = here.call("run", "--runs", here.folder / "calm", *words, here.folder / "calm-ckpt")
    assert undisturbed.returncode == 0, undisturbed.stdout + undisturbed.stderr
    [log] = (here.folder / "calm").glob("*/logs/worker_0/g1.a1.out")
    calm = [line for line in log.read_text().splitlines() if line.startswith("epoch ")]
    launcher = here.start("run", *words, here.folder / "ckpt")
    wait_for(lambda: "epoch 4/" in here.said("worker:0"), "four epochs")
    os.kill(here.event("task-started", task="worker:1")["pid"], signal.SIGKILL)
    assert launcher.wait(timeout=120) == 0
    report = here.report()
    assert (report["generation"], report["past"][0]["culprit"]) == (2, "worker:1")
    second = (here.run_folder() / "logs" / "worker_0" / "g2.a1.out").read_text()
    resumed = [line for line in second.splitlines() if line.startswith("epoch ")]
    assert resumed
    assert resumed == calm[-len(resumed) :]
    assert int(resumed[0].split()[1].split("/")[0]) >= 4
    here.gone(within=5)
