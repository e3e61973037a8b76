"""Which GPUs each task of a host may see (R67)."""

from __future__ import annotations

import dataclasses

import pytest

from outlines import a_host
from phalanx.plan.bind import bind
from phalanx.plan.host import Host
from phalanx.plan.outline import Outline, Role, Sharing, Strategy

DEALT = Sharing()


def seen(*roles: Role, on: list[Host], strategy: Strategy = Strategy.MWMS, sharing: Sharing = DEALT):
    outline = Outline(name="job", roles=roles, strategy=strategy, cwd="/work", sharing=sharing)
    tasks = bind(outline, on, run="r", generation=1).tasks
    return {str(t.id): (t.env.get("CUDA_VISIBLE_DEVICES"), t.env.get("TF_FORCE_GPU_ALLOW_GROWTH")) for t in tasks}


def role(kind: str, count: int = 1, **more) -> Role:
    return Role(type=kind, count=count, command=("python", "train.py"), **more)


def test_workers_of_a_host_are_dealt_its_gpus_and_who_does_not_train_gets_none():
    roles = (role("chief"), role("worker", 2), role("ps"), role("evaluator"))
    found = seen(*roles, on=[a_host(gpus=4)], strategy=Strategy.PS)
    assert found == {
        "chief:0": ("-1", None),
        "worker:0": ("0,1", None),
        "worker:1": ("2,3", None),
        "ps:0": ("-1", None),
        "evaluator:0": ("-1", None),
    }


def test_workers_that_reduce_together_get_equally_many_on_every_host():
    found = seen(role("worker", 2), on=[a_host(id=0, gpus=4), a_host(id=1, name="n1", gpus=2)])
    assert found == {"worker:0": ("0,1", None), "worker:1": (None, None)}  # the second has two, and keeps all


def test_where_gpus_do_not_go_round_all_see_all_and_nobody_takes_the_whole_memory():
    assert seen(role("worker", 2), on=[a_host(gpus=1)]) == {"worker:0": (None, "true"), "worker:1": (None, "true")}


def test_a_lone_task_keeps_what_its_user_sees():
    assert seen(role("worker"), on=[a_host(gpus=4)], strategy=Strategy.NONE) == {"worker:0": (None, None)}


def test_names_of_gpus_are_those_that_the_host_has_for_them():
    names = ("MIG-a", "MIG-b")
    assert seen(role("worker", 2), on=[a_host(gpus=2, devices=names)]) == {
        "worker:0": ("MIG-a", None),
        "worker:1": ("MIG-b", None),
    }


@pytest.mark.parametrize(
    ("sharing", "env", "found"),
    [
        (Sharing(gpus=False), {}, (None, None)),
        (Sharing(growth=True), {}, ("0", "true")),
        (Sharing(), {"CUDA_VISIBLE_DEVICES": "3"}, ("3", None)),
    ],
)
def test_it_can_be_turned_off_and_what_the_user_says_stays(sharing, env, found):
    assert seen(role("worker", 2, env=env), on=[a_host(gpus=2)], sharing=sharing)["worker:0"] == found


def test_shared_gpus_can_be_taken_whole_all_the_same():
    found = seen(role("worker", 2), on=[a_host(gpus=1)], sharing=Sharing(growth=False))
    assert found["worker:0"] == (None, None)


def test_a_host_without_gpus_changes_nothing():
    assert seen(role("worker", 2), role("evaluator"), on=[a_host()])["evaluator:0"] == (None, None)


def test_cores_are_near_the_gpus():
    nodes = tuple(tuple((cpu,) for cpu in range(first, first + 2)) for first in (0, 2))
    host = dataclasses.replace(a_host(cpus=4, gpus=2), nodes=nodes, gpu_nodes=(1, 0))
    outline = Outline(name="job", roles=(role("worker", 2),), strategy=Strategy.MWMS, cwd="/work")
    assert [task.cpus for task in bind(outline, [host], run="r", generation=1).tasks] == [(2, 3), (0, 1)]
