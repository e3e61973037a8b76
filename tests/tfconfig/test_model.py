"""Cluster and TfConfig: who is chief, who trains, in which order, and the way back to JSON."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from phalanx.names import TaskId
from phalanx.tfconfig.model import Cluster, TfConfig

CHIEF, W0, W1 = TaskId("chief", 0), TaskId("worker", 0), TaskId("worker", 1)


def full() -> Cluster:
    return Cluster.dense({"ps": ["p:1"], "worker": ["w0:1", "w1:1"], "evaluator": ["e:1"], "chief": ["c:1"]})


def test_the_chief_is_the_chief_where_there_is_one() -> None:
    assert full().chief == CHIEF


def test_worker_0_is_the_chief_where_there_is_none() -> None:
    assert Cluster.dense({"ps": ["p:1"], "worker": ["a:1", "b:1"]}).chief == W0


def test_an_empty_chief_is_no_chief() -> None:
    assert Cluster.dense({"chief": [], "worker": ["a:1"]}).chief == W0


def test_a_cluster_of_ps_has_no_chief() -> None:
    assert Cluster.dense({"ps": ["p:1"]}).chief is None


def test_tasks_come_chief_worker_ps_evaluator_then_extra_roles_by_name() -> None:
    cluster = Cluster.dense(
        {"zoo": ["z:1"], "dispatcher": ["d:1"], **{k: list(v.values()) for k, v in full().jobs.items()}}
    )
    told = [str(task) for task in cluster.tasks()]
    assert told == ["chief:0", "worker:0", "worker:1", "ps:0", "evaluator:0", "dispatcher:0", "zoo:0"]


def test_chief_and_worker_are_two_replicas_ranked_0_and_1_r22() -> None:
    cluster = Cluster.dense({"worker": ["w:1"], "chief": ["c:1"]})
    assert cluster.replicas() == (CHIEF, W0)
    assert [cluster.rank(task) for task in cluster.replicas()] == [0, 1]


@pytest.mark.parametrize("task", [TaskId("ps", 0), TaskId("evaluator", 0), TaskId("worker", 2), TaskId("worker", -1)])
def test_who_does_not_train_has_no_rank(task: TaskId) -> None:
    assert full().rank(task) is None


def test_ranks_of_a_sparse_type_count_the_tasks_not_the_indices() -> None:
    cluster = Cluster(jobs={"worker": {7: "h:1", 3: "g:1"}}, sparse=frozenset({"worker"}))
    assert cluster.replicas() == (TaskId("worker", 3), TaskId("worker", 7))
    assert [cluster.rank(task) for task in cluster.replicas()] == [0, 1]


def test_a_type_with_gaps_is_sparse_even_where_nobody_said_so() -> None:
    cluster = Cluster(jobs={"worker": {1: "h:1"}})
    assert cluster.sparse == {"worker"}
    assert cluster.to_json() == {"worker": {"1": "h:1"}}


def test_equal_clusters_are_equal_whatever_the_order_of_their_types() -> None:
    assert Cluster.dense({"ps": ["p:1"], "worker": ["w:1"]}) == Cluster.dense({"worker": ["w:1"], "ps": ["p:1"]})
    assert Cluster.dense({"worker": ["a:1", "b:1"]}) != Cluster.dense({"worker": ["b:1", "a:1"]})


def test_without_drops_types_and_keeps_the_rest() -> None:
    assert list(full().without("ps", "evaluator").jobs) == ["worker", "chief"]


def test_to_json_keeps_the_order_of_the_types_and_what_was_beside_them() -> None:
    config = TfConfig(cluster=full(), task=W1, extra={"rpc_layer": "grpc"})
    assert json.dumps(config.to_json()) == (
        '{"cluster": {"ps": ["p:1"], "worker": ["w0:1", "w1:1"], "evaluator": ["e:1"], "chief": ["c:1"]}, '
        '"task": {"type": "worker", "index": 1}, "rpc_layer": "grpc"}'
    )


@given(
    st.dictionaries(
        st.sampled_from(["chief", "worker", "ps", "x"]), st.dictionaries(st.integers(0, 50), st.just("h:1"))
    )
)
def test_rank_is_the_place_among_the_replicas(jobs: dict[str, dict[int, str]]) -> None:
    cluster = Cluster(jobs=jobs)
    order = cluster.replicas()
    for task in cluster.tasks():
        assert cluster.rank(task) == (order.index(task) if task in order else None)
