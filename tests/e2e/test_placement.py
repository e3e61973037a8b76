"""The cores that tasks really have: from their first line, in every thread, cold, warm, and after a restart."""

from __future__ import annotations

import json
import os
import signal

import pytest

from launched import wait_for

pytestmark = [pytest.mark.real, pytest.mark.timeout(300)]

ALL = sorted(os.sched_getaffinity(0))

#: Says where its threads may run, one of them started by an import before the identity was known; stays until told.
SCRIPT = """\
import threading
import early
import json, os, sys, time

threads = [os.sched_getaffinity(int(thread)) for thread in os.listdir("/proc/self/task")]
early.go.set()
print(json.dumps({"cpus": sorted(set.union(*threads)), "same": len({frozenset(each) for each in threads}) == 1,
                  "queues": os.environ.get("TF_GRPC_WORKER_CACHE_QUEUES")}), flush=True)
stay = sys.argv[1:] == ["stay"]
while stay and os.environ["PHALANX_GENERATION"] == "1":
    time.sleep(0.05)
"""
EARLY = "import threading\ngo = threading.Event()\nthreading.Thread(target=go.wait, daemon=True).start()\n"


@pytest.fixture
def script(here):
    packages = here.folder / "packages"
    packages.mkdir()
    (packages / "early.py").write_text(EARLY)
    here.environ["PYTHONPATH"] += f":{packages}"
    return here.script(SCRIPT, "work.py")


def told(here, generation: int = 1) -> list[dict]:
    logs = here.run_folder() / "logs"
    paths = [logs / f"worker_{n}" / f"g{generation}.a1.out" for n in range(2)]
    return [json.loads(wait_for(lambda path=path: path.exists() and path.read_text(), str(path))) for path in paths]


def free(here) -> bool:
    """Whether others of this machine have made the agent give way, as a busy one does."""
    notes = [event["message"] for event in here.events("noted") if "pinned" in event["message"]]
    return bool(notes) and not notes[-1].startswith("pinned again")


def planned(here) -> list[list[int]]:
    bound = here.event("generation-bound")
    return [place.get("cpus", ALL) for place in bound["places"]]


@pytest.mark.skipif(len(ALL) % 2, reason="an odd number of cores does not divide")
def test_each_worker_has_cores_of_its_own_and_so_has_the_standby_that_takes_its_place(here, script):
    launcher = here.start("run", "--strategy", "none", "--workers", 2, script, "stay")
    first, places = told(here), planned(here)
    assert [one["same"] for one in first] == [True, True]
    assert [one["cpus"] for one in first] == places
    if not free(here):
        assert not set(places[0]) & set(places[1])
        assert sorted(places[0] + places[1]) == ALL
    here.event("standbys-ready", count=2)
    os.kill(here.event("task-started", task="worker:1")["pid"], signal.SIGKILL)
    assert launcher.wait(timeout=60) == 0
    assert all(event["standby"] for event in here.events("task-started") if event["generation"] == 2)
    wanted = [ALL, ALL] if free(here) else places
    assert [(one["cpus"], one["same"]) for one in told(here, 2)] == [(cpus, True) for cpus in wanted]


def test_pinning_can_be_turned_off_and_a_lone_task_has_all_cores(here, script):
    assert here.call("run", "--no-pin", "--strategy", "none", "--workers", 2, script).returncode == 0
    assert [one["cpus"] for one in told(here)] == [ALL, ALL]
    assert here.call("run", "--name", "alone", script).returncode == 0
    assert json.loads(here.said("worker:0"))["cpus"] == ALL


def test_a_cold_start_is_pinned_before_the_program_is_there(here):
    (here.folder / "job.yaml").write_text(
        "command: [sh, -c, 'grep Cpus_allowed_list /proc/self/status']\nruntime: off\nstrategy: none\n"
        "roles: {worker: {count: 2, cpus: 1}}\n"
    )
    assert here.call("run", "job.yaml").returncode == 0
    if len(ALL) > 1 and not free(here):
        assert [here.said(f"worker:{n}").split()[-1] for n in range(2)] == [str(cpu) for cpu in ALL[:2]]
