"""The cores of a machine, its GPUs and the limits on both, read from made-up files and a made-up library."""

from __future__ import annotations

import ctypes
from pathlib import Path

import pytest

from phalanx.agent import gpus, topology
from phalanx.agent.facts import this_machine


def machine(folder: Path, *, nodes: dict[int, str] | None = None, siblings: dict[int, str] | None = None) -> Path:
    """A `/sys/devices/system` with these NUMA nodes and these threads of a core, as cpulists."""
    for node, cpus in (nodes or {}).items():
        (folder / f"node/node{node}").mkdir(parents=True)
        (folder / f"node/node{node}/cpulist").write_text(f"{cpus}\n")
    for cpu, threads in (siblings or {}).items():
        (folder / f"cpu/cpu{cpu}/topology").mkdir(parents=True)
        (folder / f"cpu/cpu{cpu}/topology/thread_siblings_list").write_text(f"{threads}\n")
        (folder / f"cpu/cpu{cpu}/topology/physical_package_id").write_text(f"{cpu % 2}\n")
    return folder


def test_cores_are_told_by_node_with_all_their_threads(tmp_path):
    siblings = {cpu: f"{cpu % 4},{cpu % 4 + 4}" for cpu in range(8)}
    system = machine(tmp_path, nodes={0: "0-1,4-5", 1: "2-3,6-7"}, siblings=siblings)
    assert topology.nodes(frozenset(range(8)), system) == {0: ((0, 4), (1, 5)), 1: ((2, 6), (3, 7))}


def test_only_cpus_that_we_may_use_count(tmp_path):
    siblings = {cpu: f"{cpu % 4},{cpu % 4 + 4}" for cpu in range(8)}
    system = machine(tmp_path, nodes={0: "0-7"}, siblings=siblings)
    assert topology.nodes(frozenset({1, 5, 6}), system) == {0: ((1, 5), (6,))}


def test_without_nodes_packages_stand_for_them_and_without_either_each_cpu_is_a_core(tmp_path):
    system = machine(tmp_path / "packages", siblings={cpu: str(cpu) for cpu in range(4)})
    assert topology.nodes(frozenset(range(4)), system) == {0: ((0,), (2,)), 1: ((1,), (3,))}
    assert topology.nodes(frozenset({0, 3}), tmp_path / "nothing") == {0: ((0,), (3,))}


@pytest.mark.parametrize(
    ("cgroup", "files", "quota"),
    [
        ("0::/a/b", {"cpu.max": "max 100000", "a/cpu.max": "250000 100000", "a/b/cpu.max": "400000 100000"}, 2.5),
        ("0::/", {"cpu.max": "150000 100000"}, 1.5),
        (
            "4:cpu,cpuacct:/k",
            {"cpu,cpuacct/k/cpu.cfs_quota_us": "200000", "cpu,cpuacct/k/cpu.cfs_period_us": "100000"},
            2.0,
        ),
        # The container's own folder lies at the root, and the path is the host's.
        ("4:cpu:/elsewhere", {"cpu/cpu.cfs_quota_us": "50000", "cpu/cpu.cfs_period_us": "100000"}, 0.5),
        ("4:cpu:/", {"cpu/cpu.cfs_quota_us": "-1", "cpu/cpu.cfs_period_us": "100000"}, 0.0),
        ("", {}, 0.0),
    ],
)
def test_the_tightest_limit_on_cpu_time_counts(tmp_path, cgroup, files, quota):
    (tmp_path / "proc/self").mkdir(parents=True)
    (tmp_path / "proc/self/cgroup").write_text(f"3:memory:/x\n{cgroup}\n")
    for name, text in files.items():
        path = tmp_path / "cgroup" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{text}\n")
    assert topology.quota(tmp_path / "proc", tmp_path / "cgroup") == quota


def test_nobody_pins_where_cpu_time_is_limited(monkeypatch):
    monkeypatch.setattr(topology, "quota", lambda: 0.5)
    host = this_machine({})
    assert (host.nodes, host.quota) == ((), 0.5)
    assert "its cgroup gives it the time of 0.5 cores" in host.unpinned


class Nvml:
    """As libnvidia-ml answers: cards by their bus, each whole or cut into slices."""

    def __init__(self, *cards: tuple[str, int], broken: int = -1) -> None:
        self.cards, self.broken, self.open = cards, broken, 0

    def nvmlInit_v2(self) -> int:  # noqa: N802 - its name
        self.open += 1
        return 0

    def nvmlShutdown(self) -> int:  # noqa: N802 - its name
        self.open -= 1
        return 0

    def nvmlDeviceGetCount_v2(self, count) -> int:  # noqa: N802 - its name
        count._obj.value = len(self.cards)
        return 0

    def nvmlDeviceGetHandleByIndex_v2(self, index, handle) -> int:  # noqa: N802 - its name
        handle._obj.value = 100 * (index + 1)
        return 15 if index == self.broken else 0

    def nvmlDeviceGetPciInfo_v3(self, handle, info) -> int:  # noqa: N802 - its name
        info._obj.bus_id = self._card(handle)[0].encode()
        return 0

    def nvmlDeviceGetMigMode(self, handle, now, pending) -> int:  # noqa: N802 - its name
        now._obj.value = pending._obj.value = int(self._card(handle)[1] > 0)
        return 0

    def nvmlDeviceGetMaxMigDeviceCount(self, _handle, most) -> int:  # noqa: N802 - its name
        most._obj.value = 7
        return 0

    def nvmlDeviceGetMigDeviceHandleByIndex(self, handle, number, out) -> int:  # noqa: N802 - its name
        out._obj.value = handle.value + number + 1
        return 0 if number < self._card(handle)[1] else 6

    def nvmlDeviceGetUUID(self, handle, text, _size) -> int:  # noqa: N802 - its name
        text.value = f"{'MIG' if handle.value % 100 else 'GPU'}-{handle.value}-uuid".encode()
        return 0

    def _card(self, handle: ctypes.c_void_p) -> tuple[str, int]:
        return self.cards[(handle.value or 0) // 100 - 1]


def plugged(folder: Path, **nodes: int) -> Path:
    for bus, node in nodes.items():
        (folder / f"0000:{bus}:00.0").mkdir(parents=True)
        (folder / f"0000:{bus}:00.0/numa_node").write_text(f"{node}\n")
    return folder


def test_gpus_are_told_by_their_number_with_their_numa_node(tmp_path):
    library = Nvml(("00000000:3B:00.0", 0), ("00000000:D8:00.0", 0))
    found = gpus.installed(nvml=lambda: library, pci=plugged(tmp_path, **{"3b": 0, "d8": 1}))
    assert [(gpu.name, gpu.node) for gpu in found] == [("0", 0), ("1", 1)]
    assert library.open == 0


def test_a_card_that_is_cut_is_told_as_its_slices_and_a_broken_one_not_at_all(tmp_path):
    library = Nvml(("00000000:3B:00.0", 2), ("00000000:D8:00.0", 0), ("00000000:E8:00.0", 0), broken=2)
    found = gpus.installed(nvml=lambda: library, pci=plugged(tmp_path, **{"3b": -1}))
    assert [(gpu.name, gpu.node) for gpu in found] == [("MIG-101-uuid", None), ("MIG-102-uuid", None), ("1", None)]


@pytest.mark.parametrize(
    ("said", "names"),
    [
        ("1,0", ["1", "0"]),
        ("GPU-200", ["1"]),
        ("1,7,0", ["1"]),
        ("0,0", ["0"]),
        ("-1", []),
        ("", []),
        ("NoDevFiles", []),
    ],
)
def test_an_outer_choice_of_gpus_is_kept_to_as_cuda_reads_it(said, names):
    library = Nvml(("00000000:3B:00.0", 0), ("00000000:D8:00.0", 0))
    found = gpus.chosen(said, gpus.installed(nvml=lambda: library))
    assert [gpu.name for gpu in found] == names


def test_without_the_library_the_drivers_folder_says_how_many(tmp_path):
    pci = plugged(tmp_path / "pci", **{"3b": 1})
    (tmp_path / "driver/0000:3b:00.0").mkdir(parents=True)
    (tmp_path / "driver/0000:d8:00.0").mkdir()
    about = "Model: \t\t NVIDIA H200\nIRQ:   \t\t 37\nGPU UUID: \t GPU-{}\nVideo BIOS: \t 96.00\n"
    (tmp_path / "driver/0000:3b:00.0/information").write_text(about.format("2f1c0a11-9b2e"))
    (tmp_path / "driver/0000:d8:00.0/information").write_text(about.format("????????-????"))
    found = gpus.installed(nvml=lambda: None, driver=tmp_path / "driver", pci=pci)
    assert [(gpu.name, gpu.node, gpu.uuid) for gpu in found] == [("0", 1, "GPU-2f1c0a11-9b2e"), ("1", None, "")]
    assert [gpu.name for gpu in gpus.chosen("GPU-2f1c,1", found)] == ["0", "1"]
    assert gpus.installed(nvml=lambda: None, driver=tmp_path / "none") == ()
