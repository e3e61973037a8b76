"""The lead is frozen, or its whole host is lost: the run goes on under another one. Real processes."""

from __future__ import annotations

import json
import os
import signal
import time
from pathlib import Path

import pytest

from launched import Place, wait_for
from leading import PATIENT, ends_well, lead_of, whole
from phalanx.decide.quorum import LEASE

pytestmark = pytest.mark.real

DIGITS = Path(__file__).parents[2] / "examples" / "custom_loop" / "train.py"


def rule(here: Place) -> dict:
    """Who leads by the run's folder."""
    return json.loads((here.run_folder() / "lead.json").read_text())


def agent_of(here: Place, host: int) -> int:
    return here.event("host-joined", host=host)["agent_pid"]


def stopped(pid: int) -> bool:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "T"


@pytest.mark.timeout(120)
def test_a_frozen_lead_is_killed_at_the_end_of_its_lease_and_has_a_successor(here):
    here.script(PATIENT)
    launcher = here.start("run", "--workers", 3, "--hosts", 3, "train.py")
    here.event("task-started", 3)
    frozen = lead_of(here)
    os.kill(frozen, signal.SIGSTOP)
    begun = time.monotonic()
    here.event("run-started", epoch=2)
    assert 8 < time.monotonic() - begun < 25
    assert rule(here)["epoch"] == 2
    assert rule(here)["pid"] != frozen
    time.sleep(2)
    ends_well(here, launcher)
    assert not here.events("host-lost")
    whole(here)
    here.gone(within=3)


@pytest.mark.timeout(120)
def test_a_lead_whose_agent_alone_is_killed_goes_on_and_loses_that_host(here):
    here.script(PATIENT)
    launcher = here.start("run", "--workers", 3, "--hosts", 3, "--min-workers", 1, "train.py")
    here.event("task-started", 3)
    os.kill(agent_of(here, 0), signal.SIGKILL)
    here.event("host-lost", host=0)
    here.event("task-started", 2, generation=2)
    ends_well(here, launcher)
    assert {event["epoch"] for event in here.events()} == {1}
    whole(here)
    here.gone(within=3)


@pytest.mark.timeout(120)
def test_a_run_whose_first_host_is_lost_with_its_lead_goes_on_under_the_next_host(here):
    here.script(PATIENT)
    launcher = here.start("run", "--workers", 3, "--hosts", 3, "--min-workers", 1, "train.py")
    here.event("task-started", 3)
    before = rule(here)["address"]
    lead, agent = lead_of(here), agent_of(here, 0)
    for pid in (agent, lead):
        os.kill(pid, signal.SIGKILL)
    begun = time.monotonic()
    here.event("run-started", epoch=2)
    assert time.monotonic() - begun < LEASE  # nobody listens where it was: its agent is gone as well
    assert rule(here)["address"] != before
    here.event("host-lost", host=0)
    here.event("task-started", 2, generation=2)
    ends_well(here, launcher)
    assert [event["host"] for event in here.events("host-lost")] == [0]
    assert here.report()["generation"] == 2
    whole(here)
    here.gone(within=3)


@pytest.mark.timeout(120)
def test_an_agent_that_thaws_after_its_lease_is_refused_and_ends_its_tasks(here):
    here.script(PATIENT)
    launcher = here.start("run", "--workers", 3, "--hosts", 3, "--min-workers", 1, "train.py")
    here.event("task-started", 3)
    agent = agent_of(here, 2)
    task = here.event("task-started", host=2)["pid"]
    os.kill(agent, signal.SIGSTOP)
    here.event("host-lost", host=2)
    assert stopped(agent)
    assert task in here.processes()
    os.kill(agent, signal.SIGCONT)
    wait_for(lambda: not {agent, task} & here.processes().keys(), "the lost host's end", within=10)
    assert "was given up" in (here.run_folder() / "agents" / "2.log").read_text()
    here.event("task-started", 2, generation=2)
    ends_well(here, launcher)
    assert here.report()["result"] == "succeeded"
    here.gone(within=3)


@pytest.mark.timeout(120)
def test_an_agent_of_a_detached_run_that_stays_frozen_leaves_no_task_behind(here):
    here.script(PATIENT)
    here.call("run", "--workers", 2, "--hosts", 2, "--max-restarts", 0, "--detach", "train.py")
    here.event("task-started", 2)
    agent = agent_of(here, 1)
    task = here.event("task-started", host=1)["pid"]
    os.kill(agent, signal.SIGSTOP)
    wait_for(lambda: task not in here.processes(), "the end of its task", within=45)
    wait_for(lambda: set(here.processes()) == {agent}, "the end of all the others", within=20)
    assert here.report()["result"] == "failed"
    os.kill(agent, signal.SIGCONT)
    here.gone(within=10)


@pytest.mark.timeout(120)
def test_an_attached_run_that_has_lost_its_first_agent_still_ends_with_its_launcher(here):
    here.script(PATIENT)
    launcher = here.start("run", "--workers", 2, "--hosts", 2, "--min-workers", 1, "train.py")
    here.event("task-started", 2)
    for pid in (agent_of(here, 0), lead_of(here)):
        os.kill(pid, signal.SIGKILL)
    here.event("task-started", generation=2)
    launcher.kill()
    wait_for(lambda: here.events("run-ended"), "the end of the run")
    assert here.report()["result"] == "stopped"
    assert len(here.events("stop-requested")) == 1
    here.gone(within=5)


@pytest.mark.timeout(120)
def test_the_verbs_find_a_lead_on_another_host_and_the_old_one_thaws_to_no_avail(here):
    """The whole first host is frozen, lead and agent; then it comes back."""
    here.script(PATIENT)
    name = here.call("run", "--workers", 2, "--hosts", 2, "--min-workers", 1, "--detach", "train.py").stdout.strip()
    here.event("task-started", 2)
    old, agent = lead_of(here), agent_of(here, 0)
    for pid in (agent, old):
        os.kill(pid, signal.SIGSTOP)
    here.event("run-started", epoch=2)
    assert "running" in here.call("ps", name).stdout
    for pid in (old, agent):
        os.kill(pid, signal.SIGCONT)
    wait_for(lambda: old not in here.processes(), "the old lead's end", within=10)
    assert "lead of" in (here.run_folder() / "agents" / "0.log").read_text()
    assert {event["epoch"] for event in here.events()[-1:]} == {2}
    done = here.call("stop", name)
    assert done.returncode == 0, done.stdout + done.stderr
    assert here.report()["result"] == "stopped"
    assert [event["epoch"] for event in here.events()] == sorted(event["epoch"] for event in here.events())
    whole(here)
    here.gone(within=5)


@pytest.mark.timeout(120)
def test_a_run_whose_lead_is_frozen_is_stopped_by_its_successor(here):
    here.script(PATIENT)
    name = here.call("run", "--workers", 2, "--detach", "train.py").stdout.strip()
    here.event("task-started", 2)
    os.kill(lead_of(here), signal.SIGSTOP)
    done = here.call("stop", name)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "its successor is awaited" in done.stderr
    assert "has ended: stopped" in done.stdout
    assert [event["epoch"] for event in here.events("stop-requested")] == [2]
    whole(here)
    here.gone(within=5)


@pytest.mark.timeout(120)
def test_a_run_whose_first_host_has_just_been_lost_is_stopped_by_the_next_one(here):
    here.script(PATIENT)
    name = here.call("run", "--workers", 2, "--hosts", 2, "--min-workers", 1, "--detach", "train.py").stdout.strip()
    here.event("task-started", 2)
    for pid in (agent_of(here, 0), lead_of(here)):
        os.kill(pid, signal.SIGKILL)
    done = here.call("stop", name)
    assert done.returncode == 0, done.stdout + done.stderr
    assert here.report()["result"] == "stopped"
    here.gone(within=5)


@pytest.mark.timeout(120)
def test_the_other_verbs_wait_for_the_successor_of_a_frozen_lead_too(here):
    here.script(PATIENT)
    launcher = here.start("run", "--workers", 1, "--max-workers", 2, "train.py")
    here.event("task-started")
    os.kill(lead_of(here), signal.SIGSTOP)
    verbs = [here.start(*words) for words in (("scale", "last", 1), ("stacks", "last", "worker:0"))]
    for verb in verbs:
        out, err = verb.communicate(timeout=60)
        assert verb.returncode == 0, out + err
        assert "its successor is awaited" in err
    assert [event["workers"] for event in here.events("scale-requested")] == [1]
    ends_well(here, launcher)


@pytest.mark.timeout(120)
def test_an_interrupt_that_a_frozen_lead_has_not_heard_is_told_to_its_successor(here):
    here.script(PATIENT)
    launcher = here.start("run", "--workers", 2, "train.py")
    here.event("task-started", 2)
    os.kill(lead_of(here), signal.SIGSTOP)
    launcher.send_signal(signal.SIGINT)
    out, err = launcher.communicate(timeout=60)
    assert launcher.returncode == 4, out + err
    assert "asking until it does, or its successor" in out
    here.gone(within=5)


@pytest.mark.tensorflow
@pytest.mark.timeout(240)
def test_a_training_that_loses_its_first_host_and_lead_shrinks_and_goes_on_from_its_checkpoint(here):
    words = ("--epochs", 40, "--steps-delay", 0.02, "--checkpoint", here.folder / "checkpoint")
    launcher = here.start("run", "--workers", 2, "--hosts", 2, "--min-workers", 1, DIGITS, *words)
    wait_for(lambda: "epoch 3/" in here.said("worker:0"), "three epochs")
    for pid in (agent_of(here, 0), lead_of(here)):
        os.kill(pid, signal.SIGKILL)
    out, err = launcher.communicate(timeout=200)
    assert launcher.returncode == 0, out + err
    assert here.report()["generation"] == 2
    log = (here.run_folder() / "logs" / "worker_0" / "g2.a1.out").read_text()
    assert "resumed after epoch" in log
    assert "epoch 40/40" in log
    assert [event["host"] for event in here.events("host-lost")] == [0]
    whole(here)
    here.gone(within=5)
