"""What must hold of every plan, whatever the job and whichever hosts answered."""

from __future__ import annotations

import dataclasses
import itertools
import json

import hypothesis.strategies as st
import pytest
from hypothesis import given

from outlines import host_lists, outlines, unhurried
from phalanx.errors import PlaceError
from phalanx.names import TaskId
from phalanx.plan.bind import bind, serves
from phalanx.plan.host import Host
from phalanx.plan.outline import Outline, Role, Strategy


def outline(*roles: Role, strategy: Strategy = Strategy.MWMS, **more) -> Outline:
    return Outline(name="job", roles=roles, strategy=strategy, cwd="/work", **more)


def role(kind: str, count: int = 1, **more) -> Role:
    return Role(type=kind, count=count, command=("python", "train.py"), **more)


def hosts(count: int, *, ports: int = 9, gpus: int = 0) -> list[Host]:
    return [
        Host(
            id=i,
            name=f"n{i}",
            address=f"10.0.0.{i}",
            ports=tuple(range(22000, 22000 + ports)),
            gpus=gpus,
            folder=f"/r{i}",
        )
        for i in range(count)
    ]


def bound(*roles: Role, on: list[Host] | None = None, strategy: Strategy = Strategy.MWMS, **more):
    return bind(outline(*roles, strategy=strategy, **more), on or hosts(1), run="job-1", generation=1)


@unhurried
@given(outlines(), host_lists())
def test_indices_are_dense_whatever_the_ids_of_the_hosts(job, living):
    plan = bind(job, living, run="r", generation=1)
    by_type = itertools.groupby(plan.tasks, key=lambda task: task.id.type)
    assert all([task.id.index for task in tasks] == list(range(job.role(kind).count)) for kind, tasks in by_type)
    assert len(plan.tasks) == sum(role.count for role in job.roles)


@unhurried
@given(outlines(), host_lists())
def test_no_two_tasks_share_an_address(job, living):
    plan = bind(job, living, run="r", generation=1)
    addresses = [task.address for task in plan.tasks if task.address]
    assert len(addresses) == len(set(addresses)) == sum(role.count for role in job.roles if serves(job, role))


@unhurried
@given(outlines(), host_lists(), st.randoms())
def test_equal_inputs_give_equal_plans_in_whatever_order_hosts_joined(job, living, random):
    shuffled = random.sample(living, len(living))
    assert bind(job, shuffled, run="r", generation=1) == bind(job, living, run="r", generation=1)


@unhurried
@given(outlines(), host_lists())
def test_everybody_sees_the_same_cluster_and_only_the_task_differs(job, living):
    plan = bind(job, living, run="r", generation=1)
    configs = {task.id: json.loads(text) for task in plan.tasks if (text := plan.tf_config(task)) is not None}
    clusters = [config["cluster"] for task, config in configs.items() if task.type != "evaluator"]
    assert all(cluster == clusters[0] for cluster in clusters)
    assert all(config["task"] == {"type": task.type, "index": task.index} for task, config in configs.items())
    assert (plan.cluster is None) == (not configs)


@unhurried
@given(outlines(), host_lists())
def test_ranks_count_the_replicas_and_the_chief_is_first(job, living):
    plan = bind(job, living, run="r", generation=1)
    ranks = {task.id: task.rank for task in plan.tasks if task.rank is not None}
    assert sorted(ranks.values()) == list(range(len(ranks)))
    if ranks:
        assert ranks[job.leader] == 0


@unhurried
@given(outlines(), host_lists(least=2))
def test_a_role_without_per_host_is_spread_evenly(job, living):
    plan = bind(job, living, run="r", generation=1)
    for kind in {task.id.type for task in plan.tasks}:
        loads = [sum(task.host == host.id and task.id.type == kind for task in plan.tasks) for host in living]
        assert max(loads) - min(loads) <= 1


def test_per_host_fills_hosts_in_their_order():
    plan = bound(role("worker", 5, per_host=2), on=hosts(3))
    assert [task.host for task in plan.tasks] == [0, 0, 1, 1, 2]


def test_too_few_hosts_for_per_host_are_told_how_many_are_needed():
    with pytest.raises(PlaceError, match="5 worker tasks at 2 a host need 3 hosts; 2 joined"):
        bound(role("worker", 5, per_host=2), on=hosts(2))


def test_no_host_at_all_is_the_places_fault():
    with pytest.raises(PlaceError, match="no host has joined"):
        bind(outline(role("worker", 2)), [], run="r", generation=1)


def test_a_host_with_too_few_ports_is_named_with_the_task_that_has_none():
    with pytest.raises(PlaceError, match="n0 holds 2 ports, and worker:2 needs one more"):
        bound(role("worker", 3), on=hosts(1, ports=2))


def test_tasks_that_serve_nobody_need_no_port():
    plan = bound(role("worker", 3), role("evaluator"), on=hosts(1, ports=3))
    assert plan.task(TaskId("evaluator", 0)).address is None


def test_tasks_of_a_host_share_its_gpus_without_overlap():
    plan = bound(role("worker", 4, gpus=2), on=hosts(2, gpus=4))
    assert [task.env["CUDA_VISIBLE_DEVICES"] for task in plan.tasks] == ["0,1", "2,3", "0,1", "2,3"]


def test_no_gpus_hides_them_all_and_no_claim_leaves_the_variable_alone():
    plan = bound(role("worker", 2), role("ps", gpus=0), strategy=Strategy.PS)
    assert plan.task(TaskId("ps", 0)).env["CUDA_VISIBLE_DEVICES"] == "-1"
    assert "CUDA_VISIBLE_DEVICES" not in plan.task(TaskId("worker", 0)).env


def test_a_host_with_too_few_gpus_is_named():
    with pytest.raises(PlaceError, match="worker:1 wants 1 GPU; n0 has 1, and 1 of them taken"):
        bound(role("worker", 2, gpus=1), on=hosts(1, gpus=1))


def test_a_job_of_one_task_gets_no_tf_config():
    """R26: a cluster of one changes how the script behaves."""
    plan = bound(role("worker"))
    assert plan.cluster is None
    assert plan.tf_config(plan.tasks[0]) is None


def test_a_job_of_one_task_gets_a_tf_config_where_it_is_asked_for():
    """R27: the script reads os.environ["TF_CONFIG"]."""
    plan = bound(role("worker"), force_tf_config=True)
    assert json.loads(plan.tf_config(plan.tasks[0])) == {
        "cluster": {"worker": ["10.0.0.0:22000"]},
        "task": {"type": "worker", "index": 0},
    }


@pytest.mark.parametrize("strategy", [Strategy.MWMS, Strategy.PS])
def test_the_evaluator_is_in_nobodys_cluster(strategy):
    """R01, R02: it runs no server, and a coordinator would wait for it."""
    plan = bound(role("chief"), role("worker"), role("ps"), role("evaluator"), strategy=strategy)
    assert all("evaluator" not in json.loads(plan.tf_config(task))["cluster"] for task in plan.tasks)


def test_an_estimators_evaluator_sees_itself_and_nobody_else_does():
    """R03: RunConfig wants its own type in the cluster."""
    plan = bound(role("chief"), role("worker"), role("evaluator"), strategy=Strategy.ESTIMATOR)
    seen = {str(task.id): "evaluator" in json.loads(plan.tf_config(task))["cluster"] for task in plan.tasks}
    assert seen == {"chief:0": False, "worker:0": False, "evaluator:0": True}


def test_an_extra_role_is_placed_and_kept_out_of_the_cluster():
    """R96."""
    plan = bound(role("worker", 2), role("dispatcher", in_cluster=False))
    dispatcher = plan.task(TaskId("dispatcher", 0))
    assert plan.tf_config(dispatcher) is None
    assert dispatcher.address is None
    assert "dispatcher" not in plan.cluster.jobs


def test_a_role_outside_the_cluster_may_have_addresses_that_commands_name_and_every_task_is_told():
    dispatcher = dataclasses.replace(
        role("dispatcher", in_cluster=False), port=True, command=("serve", "--port={port}", "{address}")
    )
    reader = dataclasses.replace(
        role("reader", 2, in_cluster=False),
        port=True,
        command=("read", "{dispatcher}", "{port}"),
        env={"D": "{reader}"},
    )
    worker = dataclasses.replace(role("worker", 2), command=("train", "{reader}", "{port}"))
    plan = bound(worker, dispatcher, reader, on=hosts(2, ports=9))
    at = {str(task.id): task.address for task in plan.tasks}
    readers = f"{at['reader:0']},{at['reader:1']}"
    told = {"dispatcher": [at["dispatcher:0"]], "reader": [at["reader:0"], at["reader:1"]]}
    assert len(set(at.values())) == 5
    assert plan.task(TaskId("worker", 1)).argv == ("train", readers, "{port}")
    assert plan.task(TaskId("dispatcher", 0)).argv == (
        "serve",
        f"--port={at['dispatcher:0'].rpartition(':')[2]}",
        at["dispatcher:0"],
    )
    assert plan.task(TaskId("reader", 1)).argv == (
        "read",
        at["dispatcher:0"],
        at["reader:1"].rpartition(":")[2],
    )
    assert plan.task(TaskId("reader", 0)).env["D"] == readers
    assert all(json.loads(task.env["PHALANX_ADDRESSES"]) == told for task in plan.tasks)
    assert set(plan.cluster.jobs) == {"worker"}
    assert plan.tf_config(plan.task(TaskId("reader", 0))) is None


def test_a_job_without_such_addresses_has_no_variable_for_them():
    plan = bound(role("worker", 2), role("dispatcher", in_cluster=False))
    assert not any("PHALANX_ADDRESSES" in task.env for task in plan.tasks)


def test_lent_addresses_make_no_cluster_of_a_job_that_trains_alone():
    alone = bound(
        role("worker"), dataclasses.replace(role("board", in_cluster=False), port=True), strategy=Strategy.NONE
    )
    assert alone.cluster is None
    assert alone.task(TaskId("board", 0)).address


def test_where_a_proxy_is_set_the_hosts_are_excepted_from_it():
    """R46: gRPC sends even loopback traffic to a proxy."""
    plan = bound(role("worker", 2), on=hosts(2), no_proxy="corp.example")
    expected = "corp.example,10.0.0.0,n0,10.0.0.1,n1,localhost,127.0.0.1"
    assert {plan.tasks[0].env["no_proxy"], plan.tasks[1].env["NO_PROXY"]} == {expected}


def test_where_no_proxy_is_set_the_variables_stay_as_they_are():
    assert not {"no_proxy", "NO_PROXY"} & set(bound(role("worker", 2)).tasks[0].env)


def test_placeholders_are_filled_and_other_braces_are_the_users():
    worker = dataclasses.replace(
        role("worker", 2), command=("x", "{checkpoint}/{run}", "{lr}"), env={"D": "{task_dir}"}
    )
    task = bound(worker, checkpoint="/ckpt").tasks[1]
    assert task.argv == ("x", "/ckpt/job-1", "{lr}")
    assert task.env["D"] == task.env["PHALANX_TASK_DIR"] == "/r0/tasks/worker_1"


def test_each_generation_carries_its_number():
    plan = bind(outline(role("worker", 2)), hosts(1), run="r", generation=7)
    assert plan.generation == 7
    assert plan.tasks[0].env["PHALANX_GENERATION"] == "7"
