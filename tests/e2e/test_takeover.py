"""The lead's process is killed, and the run goes on: real processes, and real TensorFlow that does not notice."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from launched import Place, wait_for
from leading import PATIENT, ends_well, lead_of, whole

pytestmark = pytest.mark.real

DIGITS = Path(__file__).parents[2] / "examples" / "custom_loop" / "train.py"


def kill_lead(here: Place, epoch: int) -> None:
    """And wait until the next one has taken over."""
    os.kill(lead_of(here), signal.SIGKILL)
    here.event("run-started", epoch=epoch)


@pytest.mark.parametrize("hosts", [1, 3])
def test_a_run_whose_lead_is_killed_twice_goes_on_and_ends_well(here, hosts):
    here.script(PATIENT)
    launcher = here.start("run", "--workers", 3, "--hosts", hosts, "train.py")
    here.event("task-started", 3)
    kill_lead(here, 2)
    kill_lead(here, 3)
    ends_well(here, launcher)
    report = here.report()
    assert report["result"] == "succeeded"
    assert len(here.events("host-joined")) == hosts
    whole(here)
    here.gone(within=3)


def test_a_lead_that_is_killed_while_the_run_starts_has_a_successor(here):
    here.script(PATIENT)
    launcher = here.start("run", "--workers", 2, "train.py")
    os.kill(lead_of(here), signal.SIGKILL)
    here.event("task-started", 2)
    ends_well(here, launcher)
    whole(here)
    here.gone(within=3)


def test_a_lead_that_is_killed_in_the_middle_of_a_restart_has_a_successor_that_carries_on(here):
    here.script(PATIENT)
    launcher = here.start("run", "--workers", 2, "--max-restarts", 2, "train.py")
    here.event("task-started", 2)
    (here.folder / "fail").touch()
    here.event("restart-ordered")
    kill_lead(here, 2)
    here.event("task-started", 2, generation=2)
    ends_well(here, launcher)
    assert here.report()["generation"] == 2
    whole(here)
    here.gone(within=3)


def test_the_verbs_find_the_new_lead(here):
    here.script(PATIENT)
    name = here.call("run", "--workers", 2, "--detach", "train.py").stdout.strip()
    here.event("task-started", 2)
    kill_lead(here, 2)
    assert "running" in here.call("ps", name).stdout
    done = here.call("stop", name)
    assert done.returncode == 0, done.stdout + done.stderr
    assert here.report()["result"] == "stopped"
    here.gone(within=3)


def test_a_lead_that_dies_again_and_again_is_given_up_and_the_hosts_end_their_tasks(here):
    here.script(PATIENT)
    launcher = here.start("run", "--workers", 2, "train.py")
    here.event("task-started", 2)
    for epoch in range(2, 7):
        kill_lead(here, epoch)
    os.kill(lead_of(here), signal.SIGKILL)
    out, err = launcher.communicate(timeout=60)
    assert launcher.returncode == 3, out + err
    told = here.call("report").stdout
    for words in (out, told):
        assert "the lead has died 6 times within" in words
        assert "the last time by SIGKILL (killed from outside, or for want of memory: see dmesg)" in words
        assert "given up after" in words
        assert "start it again" in words
    here.gone(within=3)


def test_a_lead_that_cannot_live_is_given_up_with_its_last_line(here):
    here.script(PATIENT)
    launcher = here.start("run", "--workers", 2, "train.py")
    here.event("task-started", 2)
    claim = here.run_folder() / "lead.json"
    claim.unlink()
    claim.mkdir()
    os.kill(lead_of(here), signal.SIGKILL)
    out, err = launcher.communicate(timeout=60)
    assert launcher.returncode == 3, out + err
    for words in (out, here.call("report").stdout):
        assert "the lead has died 6 times within" in words
        assert "with exit code 1 (phalanx.errors.PlaceError:" in words
        assert "lead.json cannot be written: Is a directory)" in words
    here.gone(within=3)


@pytest.mark.tensorflow
@pytest.mark.timeout(240)
def test_a_training_whose_lead_is_killed_ends_at_the_loss_of_an_undisturbed_one(here):
    words = ("--workers", 2, DIGITS, "--epochs", 12)
    undisturbed = here.call("run", "--runs", here.folder / "calm", *words)
    assert undisturbed.returncode == 0, undisturbed.stdout + undisturbed.stderr
    [log] = (here.folder / "calm").glob("*/logs/worker_0/g1.a1.out")
    launcher = here.start("run", *words)
    wait_for(lambda: "epoch 3/" in here.said("worker:0"), "three epochs")
    kill_lead(here, 2)
    assert launcher.wait(timeout=120) == 0
    assert here.report()["generation"] == 1
    for text in (log.read_text(), here.said("worker:0")):
        assert len([line for line in text.splitlines() if line.startswith("epoch ")]) == 12
    assert _epochs(here.said("worker:0")) == _epochs(log.read_text())
    here.gone(within=5)


def _epochs(text: str) -> list[str]:
    return [line for line in text.splitlines() if line.startswith("epoch ")]
