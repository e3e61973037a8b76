"""Each task's TF_CONFIG from one cluster, and a cluster from hosts and counts."""

from __future__ import annotations

import json
import tracemalloc
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from phalanx.errors import InputError
from phalanx.names import TaskId
from phalanx.tfconfig import (
    Bodies,
    Cluster,
    Severity,
    check,
    cluster_from_hosts,
    generate,
    generate_all,
    parse,
    task_for_host,
)

PLAIN = Cluster.dense({"worker": ["a:2222", "b:2222"]})
FULL = Cluster.dense({"chief": ["c:2222"], "worker": ["a:2222"], "ps": ["p:2222"], "evaluator": ["e:2222"]})
EVALUATOR = TaskId("evaluator", 0)


def types(text: str) -> list[str]:
    return list(json.loads(text)["cluster"])


def test_one_task_gets_the_cluster_and_itself() -> None:
    assert generate(PLAIN, TaskId("worker", 1)) == (
        '{"cluster":{"worker":["a:2222","b:2222"]},"task":{"type":"worker","index":1}}'
    )


def test_extra_keys_follow_the_task() -> None:
    text = generate(PLAIN, TaskId("worker", 0), extra={"rpc_layer": "grpc"})
    assert text.endswith('"task":{"type":"worker","index":0},"rpc_layer":"grpc"}')


def test_all_tasks_come_in_training_order() -> None:
    assert [str(task) for task, _ in generate_all(FULL)] == ["chief:0", "worker:0", "ps:0", "evaluator:0"]


def test_the_texts_differ_in_nothing_but_the_task() -> None:
    made = [json.loads(text) for _, text in generate_all(PLAIN)]
    assert made[0]["cluster"] == made[1]["cluster"]
    assert [config["task"]["index"] for config in made] == [0, 1]


@pytest.mark.parametrize("strategy", ["mwms", "ps", "none"])
def test_the_evaluator_stands_in_no_cluster_r02(strategy: str) -> None:
    assert all("evaluator" not in types(text) for _, text in generate_all(FULL, strategy=strategy))
    assert json.loads(generate(FULL, EVALUATOR, strategy=strategy))["task"] == {"type": "evaluator", "index": 0}


def test_an_estimators_evaluator_alone_sees_itself_r03() -> None:
    seen = {str(task): "evaluator" in types(text) for task, text in generate_all(FULL, strategy="estimator")}
    assert seen == {"chief:0": False, "worker:0": False, "ps:0": False, "evaluator:0": True}


def test_an_estimators_evaluator_without_an_address_is_generated_and_accepted_r03() -> None:
    text = generate(FULL.without("evaluator"), EVALUATOR, strategy="estimator")
    found = check(text, strategy="estimator")
    assert [f.id for f in found if f.severity is not Severity.INFO] == []


@pytest.mark.parametrize("strategy", ["mwms", "ps", "estimator"])
def test_what_is_generated_has_no_error(strategy: str) -> None:
    cluster = FULL.without("ps") if strategy == "mwms" else FULL
    for task, text in generate_all(cluster, strategy=strategy):
        errors = [f for f in check(text, strategy=strategy, expect_cluster=True) if f.severity is Severity.ERROR]
        assert errors == [], task


def test_extra_roles_are_kept_out_of_the_cluster_r96() -> None:
    cluster = Cluster.dense({"worker": ["a:2222"], "dispatcher": ["d:2222"]})
    assert [(str(task), types(text)) for task, text in generate_all(cluster)] == [("worker:0", ["worker"])]
    with pytest.raises(InputError, match="no dispatcher is in it"):
        generate(cluster, TaskId("dispatcher", 0))


def test_a_task_that_is_not_there_is_refused_with_what_is() -> None:
    with pytest.raises(InputError, match=r"no worker:2: worker has 2, counted from 0"):
        generate(PLAIN, TaskId("worker", 2))


@pytest.mark.parametrize("extra", [{"cluster": {}}, {"task": {}}, {"x": {1, 2}}, {"x": float("nan")}])
def test_extra_keys_that_cannot_be_are_refused(extra: dict[str, Any]) -> None:
    with pytest.raises(InputError):
        Bodies(PLAIN, extra=extra)


def test_bodies_share_their_beginning_so_that_n_tasks_cost_n_not_n_squared() -> None:
    cluster = Cluster.dense({"worker": [f"worker-{i}.example.com:2222" for i in range(10_000)]})
    tracemalloc.start()
    try:
        held = list(Bodies(cluster))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len({id(body.head) for _, body in held}) == 1
    assert peak < 12_000_000  # the text itself is 0.3 MB; all texts together would be 3 GB
    assert held[9_999][1].text == generate(cluster, TaskId("worker", 9_999))


def test_streaming_holds_one_text_at_a_time() -> None:
    cluster = Cluster.dense({"worker": [f"worker-{i}.example.com:2222" for i in range(2_000)]})
    tracemalloc.start()
    try:
        total = sum(len(text) for _, text in generate_all(cluster))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert total > 100_000_000
    assert peak < 3_000_000


HOST = st.from_regex(r"[a-z][a-z0-9]{0,8}(\.[a-z][a-z0-9]{0,8}){0,2}", fullmatch=True)
PLACE = st.builds("{}:{}".format, HOST, st.integers(1, 65535))
CLUSTERS = st.fixed_dictionaries(
    {"worker": st.lists(PLACE, min_size=1, max_size=5)},
    optional={"chief": st.lists(PLACE, min_size=1, max_size=1), "ps": st.lists(PLACE, min_size=1, max_size=3)},
).map(Cluster.dense)
EXTRA = st.dictionaries(st.sampled_from(["rpc_layer", "trial", "x"]), st.text() | st.integers() | st.lists(st.text()))


@given(CLUSTERS, EXTRA)
def test_parse_gives_back_what_was_generated(cluster: Cluster, extra: dict[str, Any]) -> None:
    for task, text in generate_all(cluster, extra=extra):
        config = parse(text).config
        assert config is not None
        assert (config.cluster, config.task, config.extra) == (cluster, task, extra)


SPARSE = st.dictionaries(st.integers(0, 99), PLACE, min_size=1, max_size=4).map(lambda of: Cluster(jobs={"worker": of}))


@given(SPARSE)
def test_a_sparse_cluster_survives_the_round_trip_too(cluster: Cluster) -> None:
    for task, text in generate_all(cluster):
        config = parse(text).config
        assert config is not None
        assert (config.cluster, config.task) == (cluster, task)


def test_workers_are_spread_over_hosts_at_one_port() -> None:
    cluster = cluster_from_hosts(["a", "b", "c"], workers=3, port=2222)
    assert cluster.to_json() == {"worker": ["a:2222", "b:2222", "c:2222"]}


def test_tasks_of_one_host_get_ports_of_their_own_r39() -> None:
    cluster = cluster_from_hosts(["a", "b"], workers=3, chief=True, ps=1, evaluator=True, port=5000)
    assert cluster.to_json() == {
        "chief": ["a:5000"],
        "worker": ["b:5000", "a:5001", "b:5001"],
        "ps": ["a:5002"],
        "evaluator": ["b:5002"],
    }
    assert [f for f in check(generate(cluster, TaskId("chief", 0))) if f.severity is Severity.ERROR] == []


def test_a_host_may_bring_its_own_port_and_be_ipv6() -> None:
    cluster = cluster_from_hosts(["a:7000", "fd00::1", "[fd00::2]", "[fd00::3]:9"], workers=5)
    assert cluster.to_json() == {"worker": ["a:7000", "[fd00::1]:2222", "[fd00::2]:2222", "[fd00::3]:9", "a:7001"]}


@pytest.mark.parametrize(
    ("hosts", "counts", "told"),
    [
        ([], {"workers": 1}, "no host"),
        (["a", "a"], {"workers": 2}, "a is named twice"),
        (["a"], {"workers": 0}, "make no cluster"),
        (["a"], {"workers": 1, "ps": -1}, "make no cluster"),
        (["a/b"], {"workers": 1}, "no host"),
        (["u@a"], {"workers": 1}, "no host"),
        (["a:0"], {"workers": 1}, "port 0"),
        (["a"], {"workers": 2, "port": 65535}, "runs out of ports"),
    ],
)
def test_hosts_and_counts_that_make_no_cluster_are_refused(hosts: list[str], counts: dict[str, int], told: str) -> None:
    with pytest.raises(InputError, match=told):
        cluster_from_hosts(hosts, **counts)  # type: ignore[arg-type]  # wrong on purpose


@pytest.mark.parametrize("host", ["n2", "N2", "n2.example.com", "n2.example.com."])
def test_a_host_finds_its_task_by_short_or_full_name_r29(host: str) -> None:
    cluster = Cluster.dense({"worker": ["n1.example.com:2222", "n2.example.com:2222"]})
    assert task_for_host(cluster, host) == TaskId("worker", 1)


def test_a_full_name_goes_before_a_short_one_r29() -> None:
    cluster = Cluster.dense({"worker": ["n1.a:2222", "n1.b:2222"]})
    assert task_for_host(cluster, "n1.b") == TaskId("worker", 1)


def test_ip_addresses_are_compared_whole_r29() -> None:
    cluster = Cluster.dense({"worker": ["10.0.0.1:2222", "10.0.0.2:2222", "[fd00:0::1]:2222"]})
    assert task_for_host(cluster, "10.0.0.2") == TaskId("worker", 1)
    assert task_for_host(cluster, "[fd00::1]") == TaskId("worker", 2)
    with pytest.raises(InputError, match="no task is on 10"):
        task_for_host(cluster, "10.0.0.3")


def test_a_host_with_two_tasks_is_asked_which_r29() -> None:
    cluster = Cluster.dense({"chief": ["n1:2222"], "worker": ["n1:2223"]})
    with pytest.raises(InputError, match="n1 has 2 tasks: chief:0, worker:0") as refused:
        task_for_host(cluster, "n1")
    assert refused.value.hint == "say which one with --task TYPE:INDEX"


def test_a_host_that_is_nowhere_is_told_where_the_cluster_is_r29() -> None:
    with pytest.raises(InputError, match="no task is on x; the cluster is on a, b"):
        task_for_host(PLAIN, "x")
