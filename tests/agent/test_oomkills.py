"""The kernel's own count tells an out-of-memory kill from any other SIGKILL."""

from __future__ import annotations

from pathlib import Path

import pytest

from phalanx.agent.oomkills import OomKills

PID = 7
#: The same count as three kernels tell it, and in the group's own folder or, inside a container, at the root.
PLACES = {
    "cgroup 2": ("0::/pod/task\n", "cg/pod/task/memory.events", "low 0\noom 3\noom_kill {}\noom_group_kill 0\n"),
    "cgroup 2 in a container": ("0::/pod/task\n", "cg/memory.events", "oom_kill {}\n"),
    "cgroup 1": (
        "5:cpu:/\n4:memory:/pod\n0::/\n",
        "cg/memory/pod/memory.oom_control",
        "oom_kill_disable 0\nunder_oom 0\noom_kill {}\n",
    ),
    "cgroup 1 in a container": ("4:memory:/pod\n", "cg/memory/memory.oom_control", "oom_kill {}\n"),
    "no group at all": ("0::/\n", "proc/vmstat", "pgfault 5\noom_kill {}\n"),
}


class Kernel:
    def __init__(self, folder: Path, place: str) -> None:
        groups, file, self.text = PLACES[place]
        self.file = folder / file
        self.file.parent.mkdir(parents=True)
        self.process = folder / "proc" / str(PID)
        self.process.mkdir(parents=True)
        (self.process / "cgroup").write_text(groups)
        self.count(2)
        self.kills = OomKills(proc=folder / "proc", cgroups=folder / "cg")

    def count(self, kills: int) -> None:
        self.file.write_text(self.text.format(kills))

    def bury(self) -> None:
        (self.process / "cgroup").unlink()


@pytest.mark.parametrize("place", PLACES)
def test_a_count_that_grew_shortly_before_the_end_is_an_out_of_memory_kill(tmp_path, place):
    kernel = Kernel(tmp_path, place)
    for now in range(100, 110):
        kernel.kills.look([PID], now)
    assert not kernel.kills.killed(PID, 109.5)
    kernel.count(3)
    kernel.bury()
    kernel.kills.look([PID], 110)
    assert kernel.kills.killed(PID, 110.5)


def test_a_dying_process_that_the_kernel_shows_at_the_root_is_still_counted_in_its_group(tmp_path):
    kernel = Kernel(tmp_path, "cgroup 1")
    (tmp_path / "cg" / "memory" / "memory.oom_control").write_text("oom_kill 0\n")
    kernel.kills.look([PID], 100)
    kernel.count(3)
    (kernel.process / "cgroup").write_text("4:memory:/\n")
    kernel.kills.look([PID], 101)
    assert kernel.kills.killed(PID, 101.5)


def test_a_kill_of_long_ago_is_not_this_one(tmp_path):
    kernel = Kernel(tmp_path, "cgroup 2")
    kernel.kills.look([PID], 100)
    kernel.count(3)
    for now in range(101, 110):
        kernel.kills.look([PID], now)
    assert not kernel.kills.killed(PID, 109.5)


def test_where_nothing_counts_nothing_is_said_and_a_process_can_be_forgotten(tmp_path):
    assert not OomKills(proc=tmp_path, cgroups=tmp_path).killed(PID, 1.0)
    kernel = Kernel(tmp_path, "cgroup 1")
    kernel.kills.look([PID], 100)
    kernel.count(3)
    kernel.kills.forget(PID)
    assert not kernel.kills.killed(PID, 100.5)
