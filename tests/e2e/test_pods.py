"""Pods from their mounts to their exit codes: a run that loses a pod, and the one of its lead, and ends well."""

from __future__ import annotations

import dataclasses
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from launched import wait_for
from phalanx.plan.outline import Outline, Role, Strategy
from phalanx.plan.policies import Policies, Restart
from phalanx.records.folder import RunFolder
from phalanx.records.reader import read_records
from pods import Cluster, LocalPods, can_be_here, event, local_pods, records
from podstories import TRAIN, is_drained_of_a_pod_and_then_of_its_lead, loses_a_pod_and_then_its_lead

pytestmark = [pytest.mark.real, pytest.mark.timeout(240), pytest.mark.skipif(can_be_here() != "", reason=can_be_here())]


def outline(**roles: int) -> Outline:
    command = (sys.executable, "-c", TRAIN)
    return Outline(
        name="job",
        roles=tuple(Role(type=kind, count=count, command=command) for kind, count in roles.items()),
        strategy=Strategy.MWMS,
        cwd="",
        policies=Policies(restart=Restart(max=5)),
    )


FAILS = """
import os, sys
print("epoch 1", flush=True)
sys.exit("ValueError: bad shape") if os.environ["PHALANX_TASK"] == "worker:1" else __import__("time").sleep(60)
"""


@pytest.fixture
def three(tmp_path: Path) -> Iterator[LocalPods]:
    yield from local_pods(tmp_path, outline(worker=3))


def test_a_run_in_pods_survives_the_loss_of_a_pod_and_of_the_pod_of_its_lead(three: LocalPods):
    loses_a_pod_and_then_its_lead(three)
    told = records(three, "worker", 1)
    assert [one["seq"] for one in told] == list(range(1, len(told) + 1))  # each once, in order, none is missing
    assert next(one for one in told if one["event"] == "host-lost")["host"] == 1
    assert {one["role"] for one in told if one["event"] == "host-joined"} == {"worker"}
    assert "worker:1 | up 1 worker:1\n" in three.log("worker", 1)
    assert "worker:0 | up 3 worker:0\n" in three.log("worker", 0)
    assert "replaces the lead's" in three.log("worker", 0)
    assert three.word("worker", 1).startswith("pods succeeded after ")
    assert not records(three, "worker", 2)


def test_pods_that_are_told_to_end_stop_the_group_where_it_can_and_hand_the_lead_over(three: LocalPods):
    is_drained_of_a_pod_and_then_of_its_lead(three)
    told = records(three, "worker", 1)
    assert not [one for one in told if one["event"] in ("host-lost", "culprit-named")]
    assert [one["host"] for one in told if one["event"] == "host-left"] == [1, 0]
    assert {one["epoch"] for one in told} == {1, 100}
    went = next(one for one in told if one["event"] == "host-left" and one["host"] == 0)
    came = next(one for one in told if one["epoch"] == 100)
    assert came["time"] - went["time"] < 8.0  # seconds: no lease was waited for


@pytest.fixture
def failing(tmp_path: Path) -> Iterator[LocalPods]:
    job = outline(worker=2)
    roles = tuple(dataclasses.replace(role, command=(sys.executable, "-c", FAILS)) for role in job.roles)
    policies = dataclasses.replace(job.policies, restart=Restart(max=0))
    yield from local_pods(tmp_path, dataclasses.replace(job, roles=roles, policies=policies))


def fails_by_its_own_program(cluster: Cluster) -> None:
    cluster.start()
    wait_for(lambda: [cluster.code("worker", index) for index in range(2)] == [1, 1], "two exit codes of 1")


def test_the_exit_code_of_every_pod_is_the_runs_and_the_leads_last_word_is_its_report(failing: LocalPods):
    fails_by_its_own_program(failing)
    word = failing.word("worker", 0).splitlines()
    assert word[0].startswith("pods failed after ")
    assert word[0].endswith("after its start: ValueError: bad shape")
    assert word[1] == "first to fail: worker:1 on pods-worker-1-00000 (user)"
    assert "worker:1 | ValueError: bad shape\n" in failing.log("worker", 1)
    assert failing.word("worker", 1) == ""


@pytest.fixture
def alone(tmp_path: Path) -> Iterator[LocalPods]:
    yield from local_pods(tmp_path, outline(worker=1), grace=3.0)


def test_a_pod_alone_that_is_told_to_end_is_gone_in_time_and_the_next_one_begins_anew(alone: LocalPods):
    alone.start()
    event(alone, "worker", 0, "task-started")
    begun = time.monotonic()
    alone.end("worker", 0)
    assert alone.code("worker", 0) == 3
    assert time.monotonic() - begun < alone.grace
    assert "told to end (TERM)" in alone.log("worker", 0)
    alone.replace("worker", 0)
    started = event(alone, "worker", 0, "run-started", epoch=10_001)
    assert started["seq"] == 1
    event(alone, "worker", 0, "task-started", epoch=10_001, generation=1)


def test_a_pod_that_is_told_to_end_before_there_is_a_lead_ends(three: LocalPods):
    three.replace("worker", 1)
    wait_for((three.root("worker", 1) / "runs/pods/agents").exists, "the agent")
    time.sleep(3.0)  # the agent has begun to ask
    three.end("worker", 1)
    assert three.code("worker", 1) == 3
    assert "before it has joined the run" in three.word("worker", 1)


@pytest.fixture
def on_a_volume(tmp_path: Path) -> Iterator[LocalPods]:
    yield from local_pods(tmp_path, outline(worker=3), shared=True)


def test_pods_that_share_a_volume_have_one_story_there_whoever_leads(on_a_volume: LocalPods):
    loses_a_pod_and_then_its_lead(on_a_volume)
    told = records(on_a_volume, "worker", 1)
    assert [one["seq"] for one in told] == list(range(1, len(told) + 1))
    volume = RunFolder(on_a_volume.folder / "volume" / on_a_volume.run)
    assert [record.to_json() for record in read_records(volume.events)] == told
    assert not records(on_a_volume, "worker", 2)
    assert volume.report.exists()
