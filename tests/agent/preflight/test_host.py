"""Limits, disks, proxies, GPUs, time: each check kept and not kept."""

from __future__ import annotations

import contextlib
import subprocess

import pytest

from phalanx.agent.gpus import Gpu
from phalanx.agent.preflight import limits, storage, surroundings
from phalanx.agent.preflight.asked import Answer


def kernel(folder, *, free=1 << 24, pids=None, memory=None, threads=1):
    """A `/proc` and a control group with these limits."""
    proc, group = folder / "proc", folder / "cgroup" / "job"
    (proc / "self").mkdir(parents=True)
    (proc / "7").mkdir()
    group.mkdir(parents=True)
    (proc / "meminfo").write_text(f"MemTotal: 99 kB\nMemAvailable:   {free} kB\n")
    (proc / "self" / "cgroup").write_text("0::/job\n")
    (proc / "7" / "stat").write_text("7 (python) S " + " ".join(["0"] * 16) + f" {threads} 0 0\n")
    for name, value in (("pids", pids), ("memory", memory)):
        if value is not None:
            (group / f"{name}.max").write_text(f"{value[0]}\n")
            (group / f"{name}.current").write_text(f"{value[1]}\n")
    return {"proc": proc, "cgroup": folder / "cgroup"}


def test_ample_limits_are_no_faults(asked, found, tmp_path, monkeypatch):
    monkeypatch.setattr(limits.resource, "getrlimit", lambda _: (1 << 20, 1 << 20))
    assert found(limits.check, asked(), **kernel(tmp_path, pids=("max", 3), memory=(1 << 40, 0))) == {}


def test_too_few_open_files(asked, found, tmp_path, monkeypatch):
    monkeypatch.setattr(limits.resource, "getrlimit", lambda _: (64, 64))
    assert "a task may open 64 files" in found(limits.check, asked(), **kernel(tmp_path))["open-files"]


def test_too_few_processes_for_the_user(asked, found, tmp_path, monkeypatch):
    """R69: `ulimit -u 256`, many tasks."""
    monkeypatch.setattr(limits.resource, "getrlimit", lambda _: (256, 256))
    monkeypatch.setattr(limits.os, "geteuid", lambda: 1000)
    words = found(limits.check, asked(tasks=3), **kernel(tmp_path))["processes"]
    assert words.startswith("ulimit -u 256 leaves ")
    assert "3 tasks need 360" in words


def test_a_control_group_that_allows_too_few(asked, found, tmp_path):
    words = found(limits.check, asked(tasks=3), **kernel(tmp_path, pids=(300, 100)))["processes"]
    assert "pids.max (300) leaves 200 threads" in words


@pytest.mark.parametrize("how", [{"free": 1 << 10}, {"memory": (1 << 20, 1 << 19)}])
def test_too_little_memory(asked, found, tmp_path, how):
    assert (
        "MiB are free, and 1 tasks need some 600" in found(limits.check, asked(), **kernel(tmp_path, **how))["memory"]
    )


def test_shared_memory(found, tmp_path, monkeypatch):
    assert "there is no" in found(limits.shared_memory, folder=tmp_path / "none")["shm"]
    monkeypatch.setattr(limits, "_SHM", 1 << 60)
    assert "NCCL needs" in found(limits.shared_memory, folder=tmp_path)["shm"]
    monkeypatch.setattr(limits, "_SHM", 1)
    assert found(limits.shared_memory, folder=tmp_path) == {}


def test_disk(asked, found, monkeypatch):
    monkeypatch.setattr(storage, "LEFT", 1)
    assert found(storage.disk, asked()) == {}
    monkeypatch.setattr(storage, "LEFT", 1 << 60)
    assert "MiB left" in found(storage.disk, asked())["disk"]


# The checkpoint folder -----------------------------------------------------------------------------------------------


def meet(asked, writer_folder, reader_folder, **how):
    """What the writer and then a reader find, and what is left in the folder once both are done."""
    writer, reader = storage.Checkpoints(), storage.Checkpoints()
    first, second = Answer(), Answer()
    writer.check(asked(checkpoint=str(writer_folder), writes=True), first)
    reader.check(asked(checkpoint=str(reader_folder), host=1), second, patience=0.3, **how)
    writer.end(keep=True)
    reader.end(keep=True)
    return [{fault.check: fault.words for fault in answer.faults} for answer in (first, second)]


def test_one_folder_for_all_is_shared_and_left_as_it_was(asked, tmp_path):
    """R88."""
    assert meet(asked, tmp_path / "ckpt", tmp_path / "ckpt") == [{}, {}]
    assert list((tmp_path / "ckpt").iterdir()) == []


def test_a_folder_of_each_hosts_own_is_not_shared(asked, tmp_path):
    """R88: missing shards, and a non-chief that cannot restore."""
    (tmp_path / "b").mkdir()
    assert "is there, without" in meet(asked, tmp_path / "a", tmp_path / "b")[1]["checkpoint-shared"]
    assert "is not there" in meet(asked, tmp_path / "a", tmp_path / "c")[1]["checkpoint-shared"]


def test_a_folder_made_for_a_job_that_never_starts_is_taken_away(asked, tmp_path):
    one = storage.Checkpoints()
    one.check(asked(checkpoint=str(tmp_path / "deep" / "ckpt"), writes=True), Answer())
    assert (tmp_path / "deep" / "ckpt" / ".token").read_text() == "secret"
    one.end(keep=False)
    assert not (tmp_path / "deep").exists()


def test_a_folder_that_cannot_be_made_or_written(asked, tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    first, _ = meet(asked, tmp_path / "file" / "ckpt", tmp_path / "file" / "ckpt")
    assert "cannot be made" in first["checkpoint-writable"]
    monkeypatch.setattr(storage.os, "fsync", lambda _: (_ for _ in ()).throw(OSError(30, "Read-only file system")))
    first, _ = meet(asked, tmp_path / "ckpt", tmp_path / "ckpt")
    assert "cannot be written to: Read-only file system" in first["checkpoint-writable"]


def test_a_folder_on_a_cloud_is_tensorflows_own_affair(asked, found):
    assert found(storage.Checkpoints().check, asked(checkpoint="gs://bucket/ckpt", writes=True)) == {}


@pytest.mark.real
def test_a_full_disk_has_no_room(asked, found, tmp_path):
    small = tmp_path / "small"
    small.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=64k", "none", small], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip("mounting a small disk needs root")
    try:
        words = found(storage.Checkpoints().check, asked(checkpoint=str(small / "ckpt"), writes=True))
        assert "has no room" in words["checkpoint-room"]
        subprocess.run(["mount", "-o", "remount,ro", small], check=True)
        words = found(storage.Checkpoints().check, asked(checkpoint=str(small), writes=True))
        assert "Read-only file system" in words["checkpoint-writable"]
    finally:
        with contextlib.suppress(subprocess.CalledProcessError):
            subprocess.run(["umount", small], check=True)


# Proxies, GPUs, time -------------------------------------------------------------------------------------------------


def test_a_proxy_is_said_and_the_clusters_hosts_are_exempt(asked, found):
    """R46."""
    assert found(surroundings.proxies, asked()) == {}
    env = {"no_proxy": "10.0.0.0,10.0.0.1,localhost"}
    words = found(surroundings.proxies, asked(environ={"http_proxy": "http://p:3128"}, env=env))
    assert words.keys() == {"proxy"}
    assert words["proxy"].startswith("http_proxy is set")


def test_a_proxy_that_only_the_task_is_given_is_said_too(asked, found):
    words = found(surroundings.proxies, asked(env={"http_proxy": "http://p:1", "no_proxy": "corp"}))
    assert "http_proxy would be asked for 10.0.0.0" in words["proxy-bypassed"]


@pytest.mark.parametrize(
    ("environ", "env"),
    [
        ({"grpc_proxy": "http://p:1"}, {"no_proxy": "localhost"}),
        ({"https_proxy": "http://p:1", "no_grpc_proxy": "corp"}, {"no_proxy": "10.0.0.0,10.0.0.1"}),
    ],
)
def test_a_proxy_that_would_get_the_clusters_traffic_is_fatal(asked, found, environ, env):
    """R46: gRPC reads no_grpc_proxy first, and then never looks at no_proxy."""
    assert (
        "would be asked for 10.0.0.0" in found(surroundings.proxies, asked(environ=environ, env=env))["proxy-bypassed"]
    )


def test_the_gpus_of_training_tasks_are_told(asked, monkeypatch):
    """R62, R64."""
    monkeypatch.setattr(surroundings, "installed", lambda: tuple(Gpu(index=index) for index in range(4)))
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "2,3")  # the agent's own: what a task is told is among all of the host's
    answer = Answer()
    surroundings.gpus(asked(env={"CUDA_VISIBLE_DEVICES": "2,3"}, same_gpus=True), answer)
    assert [(fact.name, fact.value) for fact in answer.facts] == [("gpus", "2")]


def test_an_allocation_that_ends_soon_is_said(asked, found):
    soon = asked(environ={"SLURM_JOB_END_TIME": "1300"})
    assert found(surroundings.time_left, soon, now=1000.0)["time-left"] == "the allocation ends in 5 min"
    assert found(surroundings.time_left, soon, now=0.0) == {}
    assert found(surroundings.time_left, asked()) == {}


def test_the_clock_is_told_for_the_lead_to_compare(asked):
    answer = Answer()
    surroundings.clock(asked(ahead=-3.25), answer)
    assert [(fact.name, fact.value) for fact in answer.facts] == [("clock", "-3.250")]


def test_an_address_is_exempt_by_the_end_of_its_name():
    assert surroundings.exempt("n1.corp.example", {"no_proxy": "a, .corp.example"})
    assert not surroundings.exempt("n1.corp.example", {"no_proxy": "", "NO_PROXY": ".corp.example"})
