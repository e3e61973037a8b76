"""The whole group comes back as a new generation: real processes, and real TensorFlow that resumes."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import pytest

from launched import Place, wait_for

DIGITS = Path(__file__).parents[2] / "examples" / "custom_loop" / "train.py"

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


@pytest.mark.real
@pytest.mark.tensorflow
@pytest.mark.timeout(500)
def test_restarts_are_warm_each_time_and_the_result_is_that_of_an_undisturbed_run(here):
    """Two kills, two generations of standbys; one standby is killed as well, and nothing is left at the end."""
    words = ("--workers", 2, "--max-restarts", 3, DIGITS, "--epochs", 30, "--checkpoint")
    calm = here.call("run", "--runs", here.folder / "calm", *words, here.folder / "calm-ckpt")
    assert calm.returncode == 0, calm.stdout + calm.stderr
    [log] = (here.folder / "calm").glob("*/logs/worker_0/g1.a1.out")
    calm_epochs = [line for line in log.read_text().splitlines() if line.startswith("epoch ")]
    launcher = here.start("run", *words, here.folder / "ckpt", "--steps-delay", 0.1)
    first = ready(here, 1)
    assert 2 * 50e6 < first["bytes"] < 2 * 600e6
    assert "2 standbys (" in here.call("ps", "last").stdout
    one = next(pid for pid, command in here.processes().items() if is_standby(pid) and "train.py" in command)
    os.kill(one, signal.SIGKILL)
    ready(here, 2)
    for generation, victim in ((1, "worker:1"), (2, "worker:0")):
        if generation > 1:
            ready(here, 3)
        [pid] = [e["pid"] for e in here.events("task-started") if (e["task"], e["generation"]) == (victim, generation)]
        os.kill(pid, signal.SIGKILL)
        wait_for(lambda g=generation: len(started(here, g + 1)) == 2, f"generation {generation + 1}")
        assert [e["standby"] for e in started(here, generation + 1)] == [True, True]
    third = here.run_folder() / "logs" / "worker_0" / "g3.a1.out"
    wait_for(lambda: third.exists() and third.read_text().count("\nepoch ") >= 2, "two epochs of the third generation")
    resumed = [line for line in third.read_text().splitlines() if line.startswith("epoch ")][:2]
    at = calm_epochs.index(resumed[0])
    assert at >= 2
    assert calm_epochs[at : at + 2] == resumed
    launcher.terminate()
    assert launcher.wait(timeout=60) == 4
    assert [past["culprit"] for past in here.report()["past"]] == ["worker:1", "worker:0"]
    here.gone(within=5)


def ready(here: Place, number: int) -> dict[str, Any]:
    """Standbys step back: on a busy machine they take a while."""
    full = wait_for(
        lambda: [event for event in here.events("standbys-ready") if event["count"] == 2][number - 1 :],
        f"two standbys for the {number}. time",
        within=150,
    )
    return full[0]


def started(here: Place, generation: int) -> list[dict[str, object]]:
    return [event for event in here.events("task-started") if event["generation"] == generation]


def is_standby(pid: int) -> bool:
    """One of a later generation: it knows its run, and not which task it will be."""
    try:
        environ = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return False
    return (
        any(entry.startswith(b"PHALANX_BOOT_FDS=") for entry in environ)
        and not any(entry.startswith(b"PHALANX_TASK=") for entry in environ)
        and (Path(f"/proc/{pid}/fd/198")).exists()
    )
