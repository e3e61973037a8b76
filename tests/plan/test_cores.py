"""Which cores each task of a host gets, whatever the machine and however many they are."""

from __future__ import annotations

import dataclasses
import itertools

import hypothesis.strategies as st
import pytest
from hypothesis import given

from outlines import a_host, unhurried
from phalanx.names import TaskId
from phalanx.plan.bind import bind
from phalanx.plan.cores import Want, split
from phalanx.plan.cpulist import cpus_of, text_of
from phalanx.plan.host import Host
from phalanx.plan.outline import Outline, Role, Sharing, Strategy
from phalanx.plan.part import part


def cores(count: int, *, first: int = 0, sibling: int = 0):
    """`count` cores from CPU `first` on; with `sibling`, each has a second CPU so many numbers above."""
    return tuple((cpu, cpu + sibling) if sibling else (cpu,) for cpu in range(first, first + count))


def shares(nodes, *wants: dict) -> list[tuple[int, ...]]:
    tasks = [TaskId("worker", number) for number in range(len(wants))]
    found = split(nodes, [Want(task=task, **want) for task, want in zip(tasks, wants, strict=True)])
    return [found.cpus.get(task, ()) for task in tasks]


@st.composite
def machines(draw):
    """Up to four NUMA nodes of unequal size, with one or two CPUs a core."""
    width = draw(st.integers(1, 2))
    numbers = itertools.count()
    return tuple(
        tuple(tuple(next(numbers) for _ in range(width)) for _ in range(size))
        for size in draw(st.lists(st.integers(0, 9), min_size=1, max_size=4))
    )


wants = st.lists(st.fixed_dictionaries({"cpus": st.none() | st.integers(1, 6)}), min_size=1, max_size=20)


@unhurried
@given(machines(), wants)
def test_whoever_is_pinned_gets_whole_cores_of_the_machine_and_nobody_is_left_without(nodes, asked):
    there = {core for node in nodes for core in node}
    got = shares(nodes, *asked)
    if any(got):
        assert all(got)
        for mine in got:
            assert set(mine) == {cpu for core in there if core[0] in mine for cpu in core}


@unhurried
@given(machines(), wants)
def test_what_a_task_was_promised_is_its_own(nodes, asked):
    got = shares(nodes, *asked)
    for (want, mine), (_, other) in itertools.permutations(list(zip(asked, got, strict=True)), 2):
        if want["cpus"] is not None and mine:
            assert want["cpus"] <= len(mine)
            assert not set(mine) & set(other)


@unhurried
@given(machines(), st.integers(1, 20))
def test_tasks_that_were_promised_nothing_cover_the_machine_and_have_equally_much(nodes, count):
    got = shares(nodes, *[{}] * count)
    if any(got):
        total = {cpu for node in nodes for core in node for cpu in core}
        assert set().union(*got) == total
        # What each CPU is worth to a task is one part of those who share it.
        users = {cpu: sum(cpu in mine for mine in got) for cpu in total}
        worth = [sum(1 / users[cpu] for cpu in mine) for mine in got]
        assert max(worth) <= min(worth) * 1.1 + 1e-9


@unhurried
@given(machines(), st.integers(1, 20))
def test_with_a_core_for_each_no_two_tasks_have_their_own_in_common(nodes, count):
    got = shares(nodes, *[{}] * count)
    if count <= sum(map(len, nodes)):
        common = set(got[0]).intersection(*got) if count > 1 else set()
        alone = [set(mine) - common for mine in got]
        assert all(alone)
        spare = [cpu for cpu, n in ((c, sum(c in a for a in alone)) for c in set().union(*alone)) if n > 1]
        assert not spare or len(nodes) > 1  # what a node has left over is its own tasks'


@pytest.mark.parametrize(
    ("nodes", "tasks", "got"),
    [
        ((cores(2),), 2, [(0,), (1,)]),
        ((cores(2),), 4, [(0,), (1,), (0,), (1,)]),
        ((cores(2),), 3, [(), (), ()]),
        ((cores(4),), 6, [(0, 1), (2, 3), (0, 1), (2, 3), (0, 1), (2, 3)]),
        ((cores(4),), 3, [(0, 3), (1, 3), (2, 3)]),
        ((cores(2, sibling=4), cores(2, first=2, sibling=4)), 2, [(0, 1, 4, 5), (2, 3, 6, 7)]),
        ((cores(5), cores(5, first=5)), 4, [(0, 1, 4), (2, 3, 4), (5, 6, 9), (7, 8, 9)]),
        ((cores(3),), 1, [(0, 1, 2)]),
        ((cores(3),), 20, [()] * 20),  # 7, 7 and 6 of them: a sixth more work for some
    ],
)
def test_cores_are_split_evenly(nodes, tasks, got):
    assert shares(nodes, *[{}] * tasks) == got


def test_a_task_is_put_near_its_gpus():
    nodes = (cores(4), cores(4, first=4))
    assert shares(nodes, {"near": (1,)}, {"near": (0,)}) == [(4, 5, 6, 7), (0, 1, 2, 3)]


def test_a_promise_is_counted_in_cpus_and_kept_in_whole_cores():
    assert shares((cores(4, sibling=4),), {"cpus": 3}, {}) == [(0, 1, 4, 5), (2, 3, 6, 7)]


def test_promises_that_cannot_be_kept_pin_nobody_and_say_why():
    found = split((cores(2),), [Want(task=TaskId("worker", 0), cpus=2), Want(task=TaskId("ps", 0))])
    assert (found.cpus, found.why) == ({}, "the cpus of its tasks are 2 cores of 2, which leaves some task none")


def job(workers: int, sharing: Sharing = Sharing(), **more) -> Outline:  # noqa: B008 - frozen
    role = Role(type="worker", count=workers, command=("python", "train.py"), **more)
    return Outline(name="job", roles=(role,), strategy=Strategy.MWMS, cwd="/work", sharing=sharing)


def test_a_plan_says_which_cpus_and_a_lone_task_has_all():
    host = a_host(cpus=4, nodes=(cores(4),))
    assert [task.cpus for task in bind(job(2), [host], run="r", generation=1).tasks] == [(0, 1), (2, 3)]
    assert [task.cpus for task in bind(job(1), [host], run="r", generation=1).tasks] == [()]


def test_a_plan_pins_nobody_where_it_was_told_so_or_where_the_host_cannot():
    host = a_host(cpus=4, nodes=(cores(4),))
    off = bind(job(2, Sharing(pin=False)), [host], run="r", generation=1)
    shared = bind(job(2), [dataclasses.replace(host, nodes=(), unpinned="too busy")], run="r", generation=1)
    assert [task.cpus for task in (*off.tasks, *shared.tasks)] == [()] * 4
    assert (off.unpinned, shared.unpinned) == ({}, {0: "too busy"})


def threads(outline: Outline, **has) -> str | None:
    return env_of(outline, a_host(**has)).get("TF_NUM_INTRAOP_THREADS")


def test_threads_follow_from_the_job_and_the_machine_and_not_from_who_is_on_it():
    """Else the last digits of a training would."""
    free = {"cpus": 4, "nodes": (cores(4),)}
    assert (
        threads(job(2), **free)
        == threads(job(2), cpus=4, unpinned="busy")
        == threads(job(2, Sharing(pin=False)), **free)
        == "2"
    )
    assert (threads(job(3), **free), threads(job(9), **free)) == ("2", "1")
    assert threads(job(2, cpus=3), **free) == "3"
    assert threads(job(1), **free) is None


def test_threads_are_counted_where_cpu_time_is_limited_and_the_users_own_number_stays():
    assert (threads(job(2), cpus=64, quota=4.0), threads(job(1), cpus=64, quota=4.0)) == ("2", "4")
    assert threads(job(2, env={"TF_NUM_INTRAOP_THREADS": "7"}), cpus=64, quota=4.0) == "7"
    assert threads(job(2, Sharing(threads=False)), cpus=64, quota=4.0) is None


def env_of(outline: Outline, host: Host) -> dict[str, str]:
    return dict(bind(outline, [host], run="r", generation=1).tasks[0].env)


def test_a_task_with_one_cpu_has_a_second_thread_between_operations_or_a_worker_of_a_ps_hangs():
    """facts §4."""
    two = a_host(cpus=2, nodes=(cores(2),))
    assert env_of(job(2), two)["TF_NUM_INTEROP_THREADS"] == "2"
    assert env_of(job(2, Sharing(threads=False)), two)["TF_NUM_INTEROP_THREADS"] == "2"
    assert env_of(job(2, env={"TF_NUM_INTEROP_THREADS": "1"}), two)["TF_NUM_INTEROP_THREADS"] == "1"
    ps = dataclasses.replace(job(1), strategy=Strategy.PS)
    assert env_of(ps, a_host(cpus=1))["TF_NUM_INTEROP_THREADS"] == "2"
    for free in (a_host(cpus=2), a_host(cpus=4, nodes=(cores(4),))):
        assert "TF_NUM_INTEROP_THREADS" not in env_of(job(2), free)


def test_simulated_hosts_share_the_machine():
    machine = a_host(cpus=4, nodes=(cores(2), cores(2, first=2)), gpus=3, gpu_nodes=(0, 0, 1))
    halves = [part(machine, number, 2) for number in range(2)]
    assert [half.nodes for half in halves] == [(cores(2), ()), ((), cores(2, first=2))]
    assert [(half.gpus, half.devices) for half in halves] == [(1, ("0",)), (1, ("1",))]
    thirds = [part(machine, number, 3) for number in range(3)]
    assert {third.nodes for third in thirds} == {()}
    assert [third.devices for third in thirds] == [("0",), ("1",), ("2",)]
    assert [part(a_host(gpus=1), number, 2).gpus for number in range(2)] == [1, 0]
    assert part(machine, 0, 1) == machine


@given(st.sets(st.integers(0, 300)))
def test_a_cpu_list_reads_back(cpus):
    assert cpus_of(text_of(cpus)) == tuple(sorted(cpus))


def test_a_cpu_list_is_the_kernels():
    assert (text_of((0, 1, 2, 8)), cpus_of("0-2,8\n")) == ("0-2,8", (0, 1, 2, 8))
