"""The lead's eyes against a small API server: what it says, and that it never holds the lead up."""

from __future__ import annotations

import asyncio
import dataclasses
import json
import time

import pytest

from kubernetes_api import FakeCluster, served
from kubernetes_objects import RUN, condition, ended, event, job, pod, waiting
from phalanx import events as ev
from phalanx.events import HostJoined, HostLost, RunEnded
from phalanx.hoststate import HostState
from phalanx.lead.inpod import InPod
from phalanx.lead.ownjobs import Facts
from phalanx.lead.platform import Platform, here
from phalanx.states import RunPhase, RunState

pytestmark = pytest.mark.real

FACTS = {"run": RUN, "roles": [["worker", 0, 4], ["ps", 4, 1]], "lead": f"{RUN}-worker-0.{RUN}", "port": 8476}


NAMES = [pod(name)["metadata"]["name"] for name in ("worker-0", "worker-1", "worker-2", "worker-3", "ps-0")]


class FakeLead:
    """Keeps what it is told."""

    def __init__(self):
        self.state = RunState(run=RUN, phase=RunPhase.RUNNING, hosts={n: self.host(n) for n in range(5)})
        self.notes, self.lost, self.stops = [], [], []
        self.because = lambda lost: lost
        self.people = self.roll = self
        self.awaited = {}

    @staticmethod
    def host(number):
        joined = HostJoined(
            time=1.0, host=number, name=NAMES[number], address="a", cpus=1, gpus=0, memory=1, agent_pid=1
        )
        return HostState(id=number, joined=joined)

    def living(self):
        return {n: None for n, host in self.state.hosts.items() if host.living}

    def note(self, message, *, host=None):
        self.notes.append(message)

    def lose(self, host, reason, *, name="", kind="", hint=""):
        if name == self.state.hosts[host].joined.name:
            self.lost.append((host, reason, kind))

    def stop(self, *, by, hard):
        self.stops.append(by)


@pytest.fixture
def cluster():
    found = FakeCluster()
    with served(found) as address:
        found.address = address
        yield found


@pytest.fixture
def api(cluster, tmp_path):
    (tmp_path / "token").write_text("secret")
    (tmp_path / "namespace").write_text("ml")
    host, _, port = cluster.address.removeprefix("http://").partition(":")
    cluster.token = "secret"
    return InPod(host=host, port=int(port), account=tmp_path, secure=False)


class Watched:
    """A lead with its platform, in a loop."""

    def __init__(self, api):
        self.lead = FakeLead()
        self.platform = Platform(self.lead, Facts.of(FACTS), api)

    async def __aenter__(self):
        self.task = self.platform.start()
        return self

    async def __aexit__(self, *wrong):
        self.platform._over.set()
        self.task.cancel()

    async def until(self, found, seconds=8.0):
        end = time.monotonic() + seconds
        while not found():
            assert time.monotonic() < end, (self.lead.notes, self.lead.lost)
            await asyncio.sleep(0.02)
        return found()


async def test_a_container_that_was_oomkilled_loses_its_host_at_once_with_the_limit(cluster, api):
    cluster.put(pod("worker-1"))
    async with Watched(api) as watched:
        await watched.until(lambda: watched.platform._pods)
        cluster.put(pod("worker-1", phase="Failed", state=ended(137, "OOMKilled")))
        await watched.until(lambda: watched.lead.lost)
        assert watched.lead.lost == [
            (1, "its pod was OOMKilled: it used more memory than its limit of 2Gi", "infrastructure")
        ]


async def test_a_deleted_pod_is_noted_at_once_and_lost_once_it_has_ended(cluster, api):
    old = pod("worker-2")
    cluster.put(old)
    async with Watched(api) as watched:
        await watched.until(lambda: watched.platform._pods)
        old["metadata"]["deletionTimestamp"] = "2026-11-30T12:00:30Z"
        cluster.put(old)
        await watched.until(lambda: watched.lead.notes)
        assert watched.lead.notes[0].startswith("the pod of host worker-2 is being deleted")
        new = pod("worker-2", phase="Pending")
        new["metadata"] |= {"name": f"{RUN}-worker-2-new", "uid": "another"}
        cluster.put(new)
        await watched.until(lambda: len(watched.platform._pods) == 2)
        assert watched.lead.lost == []  # it may still save
        cluster.remove(old["metadata"]["name"])
        await watched.until(lambda: watched.lead.lost)
        assert watched.lead.lost[0][1:] == (
            "its pod was deleted: by hand, or since its Job was suspended, scaled down or deleted",
            "preemption",
        )


async def test_the_end_of_a_pod_that_was_replaced_is_no_loss(cluster, api):
    old = pod("worker-2")
    cluster.put(old)
    async with Watched(api) as watched:
        await watched.until(lambda: watched.platform._pods)
        watched.lead.state.hosts[2] = dataclasses.replace(
            watched.lead.state.hosts[2],
            joined=dataclasses.replace(watched.lead.state.hosts[2].joined, name=f"{RUN}-worker-2-new"),
        )
        cluster.remove(old["metadata"]["name"])
        await watched.until(lambda: not watched.platform._pods)
        assert watched.lead.lost == []


async def test_a_lease_that_ends_gets_the_cause_that_the_cluster_has_told(cluster, api):
    cluster.put(pod("worker-3", conditions=[condition("Ready", "", status="False")]))
    async with Watched(api) as watched:
        await watched.until(lambda: watched.lead.notes)
        told = watched.lead.because(HostLost(time=2.0, host=3, reason="its agent no longer answers"))
        assert told.reason.startswith(
            "its agent no longer answers; its pod is on a node node-1 that has not been heard"
        )
        assert told.kind == "infrastructure"


async def test_a_host_that_a_new_lead_awaits_is_lost_where_the_cluster_hears_nothing_of_its_node(cluster, api):
    cluster.put(pod("worker-0", conditions=[condition("Ready", "", status="False")]))
    cluster.put(pod("worker-1", conditions=[condition("Ready", "", status="False")]))
    async with Watched(api) as watched:
        watched.lead.awaited[0] = 99.0
        await watched.until(lambda: watched.lead.lost)
        assert [(host, kind) for host, _, kind in watched.lead.lost] == [(0, "infrastructure")]


async def test_pods_that_wait_for_the_same_are_one_note(cluster, api):
    no_room = condition("PodScheduled", "Unschedulable", "0/3 nodes are available: 3 Insufficient cpu.", status="False")
    async with Watched(api) as watched:
        watched.platform._began -= 60
        watched.lead.state = RunState(run=RUN, phase=RunPhase.JOINING)
        for number in range(1, 4):
            cluster.put(pod(f"worker-{number}", phase="Pending", node="", conditions=[no_room]))
        await watched.until(lambda: len(watched.platform._pods) == 3 and watched.lead.notes)
        await asyncio.sleep(1.2)
        assert watched.lead.notes[-1].startswith(
            "pods wait: worker-1, worker-2, worker-3: waits for a node: 0/3 nodes are available: 3 Insufficient cpu"
        )


async def test_what_only_events_tell_is_asked_for(cluster, api):
    held = pod("worker-1", phase="Pending", state=waiting("ContainerCreating"))
    cluster.put(
        event(held, "FailedMount", 'MountVolume.SetUp failed for volume "x" : secret "s3" not found'), plural="events"
    )
    async with Watched(api) as watched:
        watched.platform._began -= 60
        watched.lead.state = RunState(run=RUN, phase=RunPhase.JOINING)
        cluster.put(held)
        await watched.until(lambda: watched.lead.notes)
        assert 'waits for a volume: secret "s3" not found' in watched.lead.notes[0]


async def test_the_job_of_the_workers_is_resized_when_somebody_scales(cluster, api):
    cluster.put(job("worker", parallelism=2), plural="jobs")
    async with Watched(api) as watched:
        watched.lead.state = RunState(run=RUN, scale=ev.ScaleRequested(time=1.0, by="jane", workers=4))
        await watched.until(lambda: cluster.get(f"{RUN}-worker", plural="jobs")["spec"]["completions"] == 4)
        assert cluster.get(f"{RUN}-worker", plural="jobs")["spec"]["parallelism"] == 4


async def test_a_stop_that_a_client_has_written_into_the_job_is_a_stop(cluster, api):
    held = job("worker", suspend=True)
    held["metadata"]["annotations"] = {"phalanx/stop": "jane@laptop with `phalanx stop`"}
    cluster.put(held, plural="jobs")
    gone = pod("worker-0")
    gone["metadata"]["deletionTimestamp"] = "2026-11-30T12:00:30Z"
    cluster.put(gone)
    async with Watched(api) as watched:
        await watched.until(lambda: watched.lead.stops)
        assert watched.lead.stops == ["jane@laptop with `phalanx stop`"]


async def test_the_image_that_runs_is_noted_by_its_digest_and_two_are_a_warning(cluster, api):
    for number in range(4):
        cluster.put(pod(f"worker-{number}"))
    cluster.put(pod("ps-0"))
    async with Watched(api) as watched:
        await watched.until(lambda: watched.lead.notes)
        assert watched.lead.notes == ["image: registry.example.com/ctr@sha256:5f6a"]
    other = pod("worker-3")
    other["status"]["containerStatuses"][0]["imageID"] = "registry.example.com/ctr@sha256:0000"
    cluster.put(other)
    async with Watched(api) as watched:
        await watched.until(lambda: watched.lead.notes)
        assert watched.lead.notes[0].startswith("the pods run different images: ")


async def test_the_watch_survives_410_429_and_cuts_and_a_token_that_is_renewed(cluster, api, tmp_path):
    cluster.put(pod("worker-1"))
    async with Watched(api) as watched:
        await watched.until(lambda: watched.platform._pods)
        cluster.token = "renewed"
        (tmp_path / "token").write_text("renewed\n")
        cluster.forget()
        cluster.fail(429, headers={"Retry-After": "0"})
        cluster.fail(503)
        cluster.break_streams()
        cluster.put(pod("worker-1", phase="Failed", state=ended(137, "OOMKilled")))
        await watched.until(lambda: watched.lead.lost, 15.0)
        assert watched.lead.notes == []


async def test_a_watch_that_is_refused_is_one_note(cluster, api):
    cluster.forbidden.add(("list", "pods"))
    async with Watched(api) as watched:
        await watched.until(lambda: watched.lead.notes)
        assert "cannot be watched from inside: pods is forbidden" in watched.lead.notes[0]


@pytest.mark.parametrize("code", [1, 2, 3, 4])
async def test_the_report_is_published_and_a_run_that_has_not_ended_well_ends_its_jobs(cluster, api, code):
    for role in ("worker", "ps"):
        cluster.put(job(role), plural="jobs")
    cluster.put({"kind": "ConfigMap", "metadata": {"name": f"{RUN}-report"}}, plural="configmaps")
    async with Watched(api) as watched:
        end = RunEnded(time=1.0, outcome="failed", exit_code=code, cause="no room")
        await watched.platform.close(RunState(end=end), {"report.txt": "failed: no room", "big": "x" * 1_000_000})
    assert cluster.get(f"{RUN}-report", plural="configmaps")["data"] == {"report.txt": "failed: no room"}
    assert cluster.get(f"{RUN}-ps", plural="jobs")["spec"]["activeDeadlineSeconds"] == 1
    own = cluster.get(f"{RUN}-worker", plural="jobs")["spec"]
    assert own["backoffLimit"] == 0
    assert "activeDeadlineSeconds" not in own, "its pod would be deleted, and its log with it"


async def test_a_run_that_has_ended_well_leaves_its_jobs_alone(cluster, api):
    cluster.put(job("worker"), plural="jobs")
    async with Watched(api) as watched:
        end = RunEnded(time=1.0, outcome="succeeded", exit_code=0, cause="worker:0 exited with code 0")
        await watched.platform.close(RunState(end=end), {})
    assert not {"activeDeadlineSeconds", "backoffLimit"} & cluster.get(f"{RUN}-worker", plural="jobs")["spec"].keys()


async def test_a_lead_without_a_token_says_so_once_and_asks_nothing(cluster, tmp_path):
    (tmp_path / "pod.json").write_text(json.dumps(FACTS))
    lead = FakeLead()
    platform = here(lead, mounted=tmp_path / "pod.json", environ={})
    assert platform is not None
    await platform.start()
    await platform.close(RunState(), {})
    assert lead.notes == ["rbac: none: what happens outside the containers is named only while a client follows"]
    assert cluster.asked == []
    assert here(lead, mounted=tmp_path / "nothing") is None
