from __future__ import annotations

import time

import pytest

from phalanx.errors import InputError
from phalanx.names import TaskId
from phalanx.tfconfig.drawing import draw
from phalanx.tfconfig.explain import Explanation, explain, spell
from phalanx.tfconfig.model import Cluster, TfConfig

SMALL = {"chief": ["n1:2222"], "worker": ["n2:2222", "n3:2222", "n1:2223"]}
WITH_PS = SMALL | {"ps": ["n1:2224", "n4:2222"], "evaluator": ["n5:2222"]}


def config(cluster: dict[str, list[str]] | None = None, task: str | None = None, **extra: object) -> TfConfig:
    return TfConfig(
        cluster=None if cluster is None else Cluster.dense(cluster),
        task=None if task is None else TaskId.parse(task),
        extra=extra,
    )


def page(explanation: Explanation) -> str:
    told = "".join(f"{title}\n" + "".join(f"  {s}\n" for s in lines) for title, lines in explanation.sections())
    return f"{draw(explanation)}\n{told}"


def accepts(explanation: Explanation) -> dict[str, bool]:
    return {verdict.strategy: verdict.accepts for verdict in explanation.verdicts}


def test_chief_and_worker_counts_are_combined_in_plain_words():  # R22
    told = explain(config({"chief": ["a:2222"], "worker": ["b:2222"]}, "worker:0"))
    assert told.training[0] == "2 training replicas: chief:0 is rank 0, worker:0 is rank 1."
    assert told.chief == TaskId("chief", 0)
    assert told.replicas == (TaskId("chief", 0), TaskId("worker", 0))


def test_worker_0_is_chief_where_none_is_named():  # R09
    told = explain(config({"worker": ["a:2222", "b:2222"]}, "worker:1"))
    assert told.chief == TaskId("worker", 0)
    assert "worker:0 is the chief, for the cluster names no chief" in told.training[1]


def test_under_parameter_servers_the_chief_does_not_train():
    told = explain(config(WITH_PS, "chief:0"))
    assert told.strategy == "ps"
    assert [str(task) for task in told.replicas] == ["worker:0", "worker:1", "worker:2"]
    assert any("does not train itself" in sentence for sentence in told.training)


@pytest.mark.parametrize(
    ("name", "made", "strategy"),
    [
        ("mwms", config(SMALL, "worker:1"), "auto"),
        ("ps", config(WITH_PS, "chief:0", environment="cloud"), "auto"),
        ("estimator", config(WITH_PS, "evaluator:0"), "estimator"),
        ("ps-in-mwms", config(WITH_PS, "chief:0"), "mwms"),
        ("alone", config(), "auto"),
        ("large", config({"worker": [f"gpu{i:04}:2222" for i in range(5_000)]}, "worker:1234"), "auto"),
    ],
)
def test_the_page(golden, name, made, strategy):
    golden(f"tfconfig/explain-{name}.txt", page(explain(made, strategy=strategy)))


def test_the_drawing_in_ascii(golden):
    text = draw(explain(config(WITH_PS, "chief:0")), width=60, ascii_only=True)
    golden("tfconfig/drawing-ascii.txt", text)
    assert text.isascii()


@pytest.mark.parametrize("width", [50, 80, 200])
def test_the_drawing_keeps_to_the_width(width):
    lines = draw(explain(config({"worker": [f"n{i}:2222" for i in range(30)]}, "worker:3")), width=width).splitlines()
    assert max(len(line) for line in lines if "─" in line) <= width


def test_a_role_of_thousands_is_drawn_short_and_shows_this_task():
    told = explain(config({"worker": [f"n{i}:2222" for i in range(5_000)]}, "worker:4321"))
    drawn = draw(told)
    assert drawn.count("\n") < 30
    assert all(f"worker:{i} " in drawn for i in (0, 5, 4321, 4999))
    assert "and 4,992 more between worker:6 and worker:4998" in drawn


def test_ten_thousand_tasks_are_explained_in_seconds():
    made = config({"worker": [f"host{i}.example.com:2222" for i in range(10_000)]}, "worker:7")
    began = time.process_time()
    told = explain(made)
    draw(told)
    assert time.process_time() - began < 5
    assert len(told.replicas) == 10_000


def test_tasks_are_told_with_the_host_they_start_on():
    told = explain(config(WITH_PS, "chief:0"))
    assert {host.name: spell([m.task for m in host.members]) for host in told.hosts} == {
        "n1": "chief:0, worker:2, ps:0",
        "n2": "worker:0",
        "n3": "worker:1",
        "n4": "ps:1",
        "n5": "evaluator:0",
    }


def test_each_strategy_says_whether_it_accepts_and_why_not():
    told = explain(config({"chief": ["a:2222"], "worker": ["b:2222"], "ps": ["c:2222"]}, "chief:0"))
    assert accepts(told) == {"mwms": False, "ps": True, "estimator": True}
    assert "parameter servers" in next(v for v in told.verdicts if v.strategy == "mwms").why[0]


def test_estimator_is_refused_where_tensorflow_has_none():  # R89
    made = config({"chief": ["a:2222"], "worker": ["b:2222"], "ps": ["c:2222"]}, "chief:0")
    assert accepts(explain(made, tf_version="2.15"))["estimator"]
    assert not accepts(explain(made, tf_version="2.16"))["estimator"]


def test_without_a_cluster_a_parameter_server_job_is_refused():
    told = explain(config())
    assert accepts(told) == {"mwms": True, "ps": False, "estimator": True}
    assert told.training == ("No cluster: TensorFlow trains alone, as 1 replica, and says nothing about it.",)


def test_what_every_strategy_refuses_is_said_once():
    sentences = dict(explain(config({"worker": ["a", "b:2222"]}, "worker:0")).sections())["Which strategies accept it"]
    assert sentences[0].startswith("None, because of this: ")
    assert sum('"a" has no port' in sentence for sentence in sentences) == 1


@pytest.mark.parametrize(
    ("strategy", "listed", "says"),
    [
        ("ps", True, "leave it out"),  # R02
        ("ps", False, "stands outside"),
        ("mwms", True, "branch on the task type"),  # R01
        ("mwms", False, "KeyError"),
        ("estimator", True, "must list it"),  # R03
    ],
)
def test_the_evaluator_is_explained_per_strategy(strategy, listed, says):
    cluster = SMALL | ({"evaluator": ["n5:2222"]} if listed else {})
    assert says in explain(config(cluster, "evaluator:0"), strategy=strategy).evaluator


@pytest.mark.parametrize(
    ("made", "says"),
    [
        (config({"master": ["a:2222"], "worker": ["b:2222"]}, "master:0"), "AI Platform"),  # R06
        (config(SMALL, "chief:0", environment="cloud"), "TFJob"),
        (config(SMALL, "chief:0", job={}, trial="1"), "trial"),  # R98
        (config({"chief": ["a:2222", "b:2222"]}, "chief:0"), "TensorFlow allows one"),
        (config({"ps_hosts": ["a:2222"], "worker_hosts": ["b:2222"]}), "TensorFlow 1"),  # R08
        (TfConfig(cluster=Cluster(jobs={"worker": {1: "a:2222"}})), "sparse form"),  # R12
    ],
)
def test_dialects_are_named(made, says):  # R98
    assert says in " ".join(explain(made).notes)


def test_the_data_holds_what_the_page_says():
    told = explain(config(SMALL, "worker:1")).to_json()
    assert told["chief"] == "chief:0"
    assert told["replicas"] == ["chief:0", "worker:0", "worker:1", "worker:2"]
    assert told["hosts"]["n1"] == {"chief:0": "n1:2222", "worker:2": "n1:2223"}
    assert told["strategies"]["mwms"] == {"accepts": True, "why": []}


def test_a_strategy_that_is_none_is_refused():
    with pytest.raises(InputError, match="no version of TensorFlow"):
        explain(config(SMALL), tf_version="new")


def test_a_host_name_cannot_write_to_the_terminal():
    assert "\x1b" not in draw(explain(config({"worker": ["\x1b[31mred:2222"]}, "worker:0")))


def test_words_and_drawing_tell_of_the_same_strategy():
    workers = TfConfig(cluster=Cluster.dense({"worker": ["a:2222", "b:2222"]}), task=TaskId("worker", 0))
    told = explain(workers, strategy="ps")
    assert "all-reduce" not in draw(told)
    assert "★" not in draw(told)
    assert told.waits[0].startswith("At the start the chief, once there is one, waits")


def test_a_sparse_type_without_gaps_is_told_as_the_list_it_is():  # R12
    whole, gaps = (
        explain(TfConfig(cluster=Cluster(jobs={"worker": of}, sparse=frozenset({"worker"})))).notes
        for of in ({0: "a:2222", 1: "b:2222"}, {0: "a:2222", 3: "b:2222"})
    )
    assert "read like the list of them" in whole[0]
    assert "only ParameterServerStrategy takes" in gaps[0]
