"""An elastic run with real processes: scaled, left by a host, joined by one."""

from __future__ import annotations

import json
import os
import signal

import pytest

from launched import wait_for

pytestmark = pytest.mark.real

#: Says who it is among how many, and goes on until the file is there.
PATIENT = """
import json, os, pathlib, signal, sys, time
signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
workers = len(json.loads(os.environ["TF_CONFIG"])["cluster"]["worker"])
print("up", os.environ["PHALANX_TASK"], workers, flush=True)
while not pathlib.Path("enough").exists():
    time.sleep(0.05)
"""


def sizes(here):
    return [len(event["places"]) for event in here.events("generation-bound")]


def up(here, generation, workers):
    def all_there():
        logs = [here.run_folder() / "logs" / f"worker_{number}" / f"g{generation}.a1.out" for number in range(workers)]
        return all(log.exists() and f" {workers}\n" in log.read_text() for log in logs)

    wait_for(all_there, f"generation {generation} with {workers} workers")


def test_a_run_is_scaled_up_and_down_and_ends_well(here):
    """R85."""
    here.script(PATIENT)
    launcher = here.start("run", "--workers", 2, "--min-workers", 1, "--max-workers", 4, "train.py")
    up(here, 1, 2)
    done = here.call("scale", "last", 4)
    assert done.returncode == 0, done.stderr
    assert "4 workers asked for, 2 run now" in done.stdout
    up(here, 2, 4)
    assert here.call("scale", "last", 1).returncode == 0
    up(here, 3, 1)
    refused = here.call("scale", "last", 5)
    assert (refused.returncode, refused.stdout) == (2, "")
    assert "5 workers: this job takes 1 to 4" in refused.stderr
    (here.folder / "enough").touch()
    assert launcher.wait(timeout=60) == 0
    assert sizes(here) == [2, 4, 1]
    report = here.report()
    assert [past["restart"] for past in report["past"]] == ["scaled from 2 to 4 workers", "scaled from 4 to 1 worker"]
    assert here.call("scale", "last", 2).returncode == 2
    here.gone(within=5)


def test_a_lost_host_is_replaced_by_phalanx_join(here):
    """R84: it shrinks, and what joins is given the lost number."""
    here.script(PATIENT)
    launcher = here.start("run", "--workers", 2, "--hosts", 2, "--min-workers", 1, "train.py")
    up(here, 1, 2)
    os.kill(here.event("host-joined", host=1)["agent_pid"], signal.SIGKILL)
    up(here, 2, 1)
    joiner = here.start("join", "last")
    assert "host 1 has joined" in joiner.stdout.readline()
    assert here.event("host-joined", 3)["host"] == 1
    (here.folder / "enough").touch()
    assert launcher.wait(timeout=60) == 0
    assert joiner.wait(timeout=30) == 0
    here.gone(within=5)


def test_ctrl_c_takes_a_joined_host_away_and_costs_nothing(here):
    here.script(PATIENT)
    launcher = here.start("run", "--workers", 1, "--max-workers", 2, "--hosts", 1, "train.py")
    here.event("task-started")
    joiner = here.start("join", "last")
    assert "host 1 has joined" in joiner.stdout.readline()
    joiner.send_signal(signal.SIGINT)
    assert joiner.wait(timeout=30) == 0
    assert here.event("host-left")["host"] == 1
    assert here.events("host-lost") == []
    crowded = here.call("join", "last", "--host", 0)
    assert crowded.returncode == 2
    (here.folder / "enough").touch()
    assert launcher.wait(timeout=60) == 0
    ended = here.call("join", "last")
    assert (ended.returncode, "has ended already" in ended.stderr) == (2, True)


def test_a_run_that_is_not_elastic_cannot_be_scaled(here):
    here.script(PATIENT.replace('json.loads(os.environ["TF_CONFIG"])["cluster"]["worker"]', "[1]"))
    launcher = here.start("run", "--workers", 1, "train.py")
    wait_for(lambda: "up" in here.said("worker:0"), "it is up")
    refused = here.call("scale", "last", 2)
    assert refused.returncode == 2
    assert json.dumps(here.events("scale-requested")) == "[]"
    (here.folder / "enough").touch()
    assert launcher.wait(timeout=60) == 0
