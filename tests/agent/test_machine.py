"""Memory as the kernel tells it, and a process that steps back and comes forward again."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from phalanx.agent.machine import Machine, Memory

MEMINFO = "MemTotal:       1000000 kB\nMemFree:          10000 kB\nMemAvailable:    600000 kB\n"
KB = 1024


def told(folder: Path, **groups: tuple[str, str, int]) -> Machine:
    """A machine with these cgroups: name → limit, used, inactive files."""
    (folder / "proc" / "self").mkdir(parents=True)
    (folder / "proc" / "meminfo").write_text(MEMINFO)
    (folder / "proc" / "self" / "cgroup").write_text("0::/pod/task\n")
    for name, (limit, used, files) in groups.items():
        group = folder / "cg" / name.replace("_", "/")
        group.mkdir(parents=True, exist_ok=True)
        (group / "memory.max").write_text(f"{limit}\n")
        (group / "memory.current").write_text(f"{used}\n")
        (group / "memory.stat").write_text(f"anon 5\ninactive_file {files}\n")
    return Machine(proc=folder / "proc", cgroups=folder / "cg")


def test_memory_is_what_the_kernel_calls_available(tmp_path):
    assert told(tmp_path).memory() == Memory(total=1_000_000 * KB, available=600_000 * KB)


def test_the_tightest_cgroup_counts_and_file_caches_in_it_are_free(tmp_path):
    machine = told(tmp_path, pod=("400000000", "350000000", 50_000_000), pod_task=("max", "300000000", 0))
    assert machine.memory() == Memory(total=400_000_000, available=100_000_000)


@pytest.mark.parametrize("seen", ["kubepods/pod1/c1", "."])  # without a namespace the folder is the root itself
def test_a_containers_limit_of_version_1_counts_where_it_is_seen(tmp_path, seen):
    machine = told(tmp_path)
    (tmp_path / "proc/self/cgroup").write_text("10:cpu,cpuacct:/x\n4:memory:/kubepods/pod1/c1\n0::/\n")
    group = tmp_path / "cg" / "memory" / seen
    group.mkdir(parents=True)
    (group / "memory.limit_in_bytes").write_text("400000000\n")
    (group / "memory.usage_in_bytes").write_text("350000000\n")
    (group / "memory.stat").write_text("inactive_file 1\ntotal_inactive_file 50000000\n")
    if seen != ".":
        (tmp_path / "cg/memory/memory.limit_in_bytes").write_text("9223372036854771712\n")
    assert machine.memory() == Memory(total=400_000_000, available=100_000_000)


def test_what_cannot_be_read_is_nothing(tmp_path):
    machine = Machine(proc=tmp_path, cgroups=tmp_path)
    assert machine.memory() == Memory(total=0, available=0)
    assert (machine.unique(1), machine.resident(1)) == (0, 0)
    machine.step_back(1)
    machine.step_up(1)


@pytest.fixture
def sleeper() -> Iterator[int]:
    with subprocess.Popen([sys.executable, "-c", "print(1, flush=True); input()"], stdin=-1, stdout=-1) as process:
        assert process.stdout is not None
        process.stdout.readline()
        yield process.pid
        process.kill()
        process.stdin.close()


@pytest.mark.real
def test_a_process_steps_back_and_is_as_before_when_it_comes_forward(sleeper):
    machine, score = Machine(), Path(f"/proc/{sleeper}/oom_score_adj")
    before = (os.getpriority(os.PRIO_PROCESS, sleeper), os.sched_getscheduler(sleeper), score.read_text())
    machine.step_back(sleeper)
    assert os.getpriority(os.PRIO_PROCESS, sleeper) > before[0] or os.sched_getscheduler(sleeper) == os.SCHED_BATCH
    assert int(score.read_text()) > int(before[2])
    machine.step_up(sleeper)
    assert (os.getpriority(os.PRIO_PROCESS, sleeper), os.sched_getscheduler(sleeper), score.read_text()) == before


@pytest.mark.real
def test_memory_of_a_living_process_is_known(sleeper):
    machine = Machine()
    assert 0 < machine.unique(sleeper) < machine.resident(sleeper) < machine.memory().total
