"""The lead is frozen, or its whole host is lost: the run goes on under another one. Real processes."""

from __future__ import annotations

import json
import os
import signal
import time
from pathlib import Path

import pytest

from launched import Place
from leading import PATIENT, lead_of, whole

pytestmark = pytest.mark.real


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
    (here.folder / "end").touch()
    out, err = launcher.communicate(timeout=60)
    assert launcher.returncode == 0, out + err
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
    (here.folder / "end").touch()
    out, err = launcher.communicate(timeout=60)
    assert launcher.returncode == 0, out + err
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
    assert 9 < time.monotonic() - begun < 30
    assert rule(here)["address"] != before
    here.event("host-lost", host=0)
    here.event("task-started", 2, generation=2)
    (here.folder / "end").touch()
    out, err = launcher.communicate(timeout=60)
    assert launcher.returncode == 0, out + err
    assert [event["host"] for event in here.events("host-lost")] == [0]
    assert here.report()["generation"] == 2
    whole(here)
    here.gone(within=3)
