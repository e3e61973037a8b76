"""The run's disk is filled to the last byte by others, or takes no record at all: the run ends as it did."""

from __future__ import annotations

import os
import resource
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from disks import disk, fill, fragile, frozen
from launched import Place
from leading import PATIENT, ends_well, lead_of, whole

pytestmark = pytest.mark.real


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Path]:
    with disk(tmp_path, "8m") as place:
        yield place


def begin(here: Place, small: Path, *words: str) -> list[str]:
    here.script(PATIENT)
    (here.folder / "runs").symlink_to(small)
    return ["run", "--workers", "2", *words, "train.py"]


def mute(here: Place) -> int:
    """Its lead can write nothing from now on, whatever file it is: what a disk that turned read-only does to it."""
    lead = lead_of(here)
    resource.prlimit(lead, resource.RLIMIT_FSIZE, (0, 0))
    return lead


def test_a_disk_that_is_full_from_the_middle_to_the_end_hides_nothing(here, small):
    launcher = here.start(*begin(here, small))
    here.event("task-started", 2)
    fill(small)
    out, err = ends_well(here, launcher)
    assert "succeeded" in out
    unwritten = not (here.run_folder() / "report.json").exists()  # the agent's own words make room as it leaves
    assert unwritten == ("report.json could not be written: its disk is full" in err)
    [end] = here.events("run-ended")
    assert end["outcome"] == "succeeded"
    whole(here)
    told = here.call("report")
    assert (told.returncode, "succeeded" in told.stdout) == (0, True)
    assert "succeeded" in here.call("ps").stdout
    here.gone(within=15)


def test_a_failure_on_a_full_disk_is_told_with_its_culprit_and_its_code(here, small):
    launcher = here.start(*begin(here, small, "--max-restarts", "0"))
    here.event("task-started", 2)
    fill(small)
    (here.folder / "fail").touch()
    out, err = launcher.communicate(timeout=60)
    assert launcher.returncode == 1, out + err
    assert "worker:1 exited with code 1" in out
    assert "bad luck" in out


def test_a_lead_that_is_killed_while_the_disk_is_full_has_a_successor(here, small):
    launcher = here.start(*begin(here, small))
    here.event("task-started", 2)
    fill(small)
    for epoch in (2, 3):
        os.kill(lead_of(here), signal.SIGKILL)
        here.event("run-started", epoch=epoch)
    ends_well(here, launcher)
    whole(here)


def test_a_restart_on_a_full_disk_is_carried_out(here, small):
    launcher = here.start(*begin(here, small, "--max-restarts", "2"))
    here.event("task-started", 2)
    fill(small)
    (here.folder / "fail").touch()
    here.event("task-started", 2, generation=2)
    ends_well(here, launcher)
    whole(here)


def test_a_run_whose_disk_the_kernel_has_made_read_only_goes_on_and_ends_as_it_did(here, tmp_path):
    with fragile(tmp_path) as (place, breaks):
        launcher = here.start(*begin(here, place))
        here.event("task-started", 2)
        breaks()
        ends_well(here, launcher)
        assert not here.events("run-ended")
        here.gone(within=15)


@pytest.mark.parametrize("hosts", [1, 2])
def test_a_run_whose_records_can_no_longer_be_written_ends_as_it_did_and_says_that_they_lack_it(here, hosts):
    here.script(PATIENT)
    launcher = here.start("run", "--workers", 2, "--hosts", hosts, "train.py")
    here.event("task-started", 2)
    mute(here)
    out, _ = ends_well(here, launcher)
    assert "succeeded" in out
    assert "warning: the records lack how it ended" in out
    assert not here.events("run-ended")


def test_who_follows_a_run_whose_records_can_no_longer_be_written_exits_as_it_ended(here):
    here.script(PATIENT)
    name = here.call("run", "--workers", 2, "--max-restarts", 0, "--detach", "train.py").stdout.strip()
    here.event("task-started", 2)
    follower = here.start("attach", name)
    assert follower.stdout is not None
    follower.stdout.readline()
    mute(here)
    (here.folder / "fail").touch()
    out, err = follower.communicate(timeout=60)
    assert follower.returncode == 1, out + err
    assert "worker:1 exited with code 1" in out


def test_a_run_whose_records_can_no_longer_be_written_can_be_stopped(here):
    here.script(PATIENT)
    name = here.call("run", "--workers", 2, "--detach", "train.py").stdout.strip()
    here.event("task-started", 2)
    mute(here)
    done = here.call("stop", name)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "has ended: stopped" in done.stdout


#: Says a line each twentieth of a second, until it is told to end.
CHATTY = """
import os, pathlib, time
number = 0
while not pathlib.Path({end!r}).exists():
    print("line", number, flush=True)
    number += 1
    time.sleep(0.05)
print("last", number, flush=True)
"""


@pytest.mark.parametrize("hosts", ["1", "2"])
def test_a_disk_that_hangs_for_longer_than_a_lease_costs_no_host_and_no_line(here, tmp_path, hosts):
    with frozen(tmp_path) as (place, freeze, thaw):
        here.script(CHATTY.format(end=str(here.folder / "end")))
        (here.folder / "runs").symlink_to(place)
        launcher = here.start("run", "--workers", "2", "--hosts", hosts, "--no-preflight", "train.py")
        here.event("task-started", 2)
        freeze()
        time.sleep(12)  # the time is the claim: an agent that is silent for 10 s is given up
        thaw()
        back = here.event("noted", 2 * int(hosts))
        out, _ = ends_well(here, launcher)
        assert "the disk of the run's folder has taken nothing for 5 s" in out
        assert back
        assert not here.events("host-lost")
        for task in ("worker_0", "worker_1"):
            *lines, last = (here.run_folder() / "logs" / task / "g1.a1.out").read_text().splitlines()
            assert lines == [f"line {number}" for number in range(len(lines))]
            assert last == f"last {len(lines)}"
            assert len(lines) > 20 * 6  # it went on all the while
        here.gone(within=15)
