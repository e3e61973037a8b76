from __future__ import annotations

import json
import time
from typing import Any

import pytest

from phalanx.tfconfig.agree import RULES, agree
from phalanx.tfconfig.parse import parse

WORKERS = ["a:2222", "b:2222", "c:2222"]


def text(task: str | None, cluster: dict[str, Any] | None = None, **extra: Any) -> str:
    out: dict[str, Any] = {"cluster": {"worker": WORKERS} if cluster is None else cluster, **extra}
    if task:
        kind, index = task.split(":")
        out["task"] = {"type": kind, "index": int(index)}
    return json.dumps(out)


def found(**texts: str | None) -> list[tuple[str, str]]:
    return [(f.id, f.path) for f in judge(**texts)]


def judge(**texts: str | None):
    return agree({name: parse(content, path=f"{name}.json") for name, content in texts.items()})


def test_nodes_of_one_job_agree():
    assert found(n1=text("worker:0"), n2=text("worker:1"), n3=text("worker:2")) == []


def test_key_order_white_space_case_and_the_sparse_form_are_no_difference():  # vector 26
    other = '{ "task" : {"index": 1, "type": "worker"},\n "cluster": {"worker": ["A:2222", "b.:2222", "c:2222"]} }'
    sparse = text("worker:2", {"worker": dict(enumerate(WORKERS))})
    assert found(n1=text("worker:0"), n2=other, n3=sparse) == []


def test_another_order_is_an_error_and_says_that_order_matters():  # R62, vector 23
    (only,) = judge(n1=text("worker:0"), n2=text("worker:1"), n3=text("worker:2", {"worker": WORKERS[::-1]}))
    assert (only.id, only.path) == ("agree-order", "n3.json")
    assert "worker:0 is c:2222 here and a:2222 there; order matters" in only.message


def test_an_extra_worker_on_one_node_is_found_there():  # R62, vector 24
    more = {"worker": [*WORKERS, "d:2222"]}
    (only,) = judge(n1=text("worker:0"), n2=text("worker:1", more), n3=text("worker:2"))
    assert (only.id, only.path) == ("agree-size", "n2.json")
    assert only.message == "n2 lists 4 worker, 2 other nodes: 3 (only here: d:2222)"


def test_another_address_names_both():
    other = {"worker": ["a:2222", "x:2222", "c:2222"]}
    (only,) = judge(n1=text("worker:0"), n2=text("worker:1", other), n3=text("worker:2"))
    assert (only.id, only.path, only.pointer) == ("agree-cluster", "n2.json", "/cluster/worker/1")
    assert "worker:1 is x:2222 here and b:2222 there" in only.message


def test_the_place_is_that_of_the_differing_address():
    other = text("worker:1", {"worker": ["a:2222", "x:2222", "c:2222"]})
    (only,) = judge(n1=text("worker:0"), n2=other, n3=text("worker:2"))
    start = only.place.column - 1
    assert other[start : start + only.place.length] == '"x:2222"'


def test_a_type_that_one_node_alone_lists_is_found():
    more = {"worker": WORKERS, "ps": ["p:2222"]}
    assert found(n1=text("worker:0"), n2=text("worker:1", more), n3=text("worker:2")) == [("agree-cluster", "n2.json")]


def test_a_type_that_one_node_alone_lacks_is_found():
    more = {"worker": WORKERS, "ps": ["p:2222"]}
    nodes = {
        "n1": text("worker:0", more),
        "n2": text("worker:1"),
        "n3": text("worker:2", more),
        "p": text("ps:0", more),
    }
    (only,) = judge(**nodes)
    assert only.message == "n2 lists no ps; 3 other nodes: 1"


def test_of_two_that_differ_the_first_is_the_reference():
    (only,) = judge(n1=text("worker:0", {"worker": ["a:1", "b:1"]}), n2=text("worker:1", {"worker": ["a:1", "x:1"]}))
    assert only.path == "n2.json"
    assert "other addresses than n1" in only.message


def test_a_task_claimed_twice_and_its_unclaimed_twin_are_both_named():  # R19, vector 25
    findings = judge(n1=text("worker:0"), n2=text("worker:0"), n3=text("worker:2"))
    assert [f.id for f in findings] == ["agree-task-twice", "agree-task-unclaimed"]
    assert findings[0].message == "worker:0 is claimed by 2 nodes: n1, n2"
    assert findings[1].message == "no node claims worker:1"


def test_one_text_shared_by_all_nodes_is_refused():  # R58
    (twice, unclaimed) = judge(n1=text("worker:0"), n2=text("worker:0"), n3=text("worker:0"))
    assert "claimed by 3 nodes" in twice.message
    assert "worker:1, worker:2" in unclaimed.message


def test_a_node_without_task_is_named():  # R28
    assert ("agree-task-missing", "n3.json") in found(n1=text("worker:0"), n2=text("worker:1"), n3=text(None))


def test_a_claim_beyond_the_cluster_is_named():  # R13
    findings = found(n1=text("worker:0"), n2=text("worker:1"), n3=text("worker:7"))
    assert ("agree-task-unknown", "n3.json") in findings


@pytest.mark.parametrize("nothing", [None, "{}", '{"cluster": {}}', '{"cluster": {"worker": []}}'])
def test_a_node_without_cluster_is_an_error(nothing):  # vector 1 under agree
    findings = found(n1=text("worker:0"), n2=text("worker:1"), n3=nothing)
    assert ("agree-no-cluster", "n3.json") in findings


def test_an_unreadable_node_tells_its_own_fault_and_is_not_called_missing():
    findings = judge(n1=text("worker:0"), n2=text("worker:1"), n3="{'cluster'")
    assert {f.path for f in findings} == {"n3.json"}
    assert all(f.id.startswith("json-") for f in findings)


def test_an_evaluator_that_alone_sees_itself_is_no_difference():  # R03
    own = text("evaluator:0", {"worker": WORKERS, "evaluator": ["e:2222"]})
    assert found(n1=text("worker:0"), n2=text("worker:1"), n3=text("worker:2"), e=own) == []


def test_an_evaluator_outside_every_cluster_is_no_difference():
    assert found(n1=text("worker:0"), n2=text("worker:1"), n3=text("worker:2"), e=text("evaluator:0")) == []


def test_an_evaluator_with_other_workers_is_a_difference():
    own = text("evaluator:0", {"worker": WORKERS[:2], "evaluator": ["e:2222"]})
    nodes = {"n1": text("worker:0"), "n2": text("worker:1"), "n3": text("worker:2"), "e": own}
    assert found(**nodes) == [("agree-size", "e.json")]


def test_a_listed_evaluator_that_nobody_runs_is_a_warning():
    both = {"worker": WORKERS[:1], "evaluator": ["e:2222"]}
    (only,) = judge(n1=text("worker:0", both))
    assert (only.id, only.severity.value) == ("agree-evaluator-unclaimed", "warning")


def test_other_keys_are_no_difference():
    assert found(n1=text("worker:0", {"worker": ["a:1"]}, environment="cloud")) == []


def test_three_hundred_nodes_are_compared_in_linear_time():
    cluster = {"worker": [f"n{i}:2222" for i in range(300)]}
    nodes = {f"n{i}": parse(text(f"worker:{i}", cluster)) for i in range(300)}
    began = time.process_time()
    assert agree(nodes) == ()
    assert time.process_time() - began < 2


def test_every_rule_says_what_follows_and_what_to_do():
    assert all(rule.consequence and rule.fix and rule.source for rule in RULES)
    assert len({rule.id for rule in RULES}) == len(RULES)


def test_a_sparse_worker_of_a_ps_job_need_not_see_the_others():  # R12
    ps = {"chief": ["c:2222"], "ps": ["p:2222"]}
    whole = ps | {"worker": WORKERS}
    nodes = {"c": text("chief:0", whole), "p": text("ps:0", whole)}
    nodes |= {f"w{i}": text(f"worker:{i}", ps | {"worker": {str(i): WORKERS[i]}}) for i in range(3)}
    assert found(**nodes) == []
    wrong = nodes | {"w1": text("worker:1", ps | {"worker": {"1": "x:2222"}})}
    assert [rule for rule, path in found(**wrong) if path == "w1.json"] == ["agree-size"]
    mirrored = {f"w{i}": text(f"worker:{i}", {"worker": {str(i): WORKERS[i]}}) for i in range(2)}
    assert "agree-size" in [rule for rule, _ in found(**mirrored)] or "agree-cluster" in [
        r for r, _ in found(**mirrored)
    ]
