"""What has one right answer is corrected, what has two is left, and doing it twice changes nothing."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from phalanx.tfconfig import Severity, check, fix

TWO = ["a:2222", "b:2222"]
WORKER_0: dict[str, Any] = {"type": "worker", "index": 0}
GOOD = json.dumps({"cluster": {"worker": TWO}, "task": WORKER_0})
PS = {"chief": ["c:2222"], "worker": TWO, "ps": ["p:2222"]}


def text(cluster: Any = None, task: Any = None, **extra: Any) -> str:
    return json.dumps({"cluster": cluster or {"worker": TWO}, "task": task or WORKER_0} | extra)


@pytest.mark.parametrize(
    "given", [GOOD, f"  {GOOD}\n", json.dumps(json.loads(GOOD), indent=7), "{}", '{"x": NaN}', "[]"]
)
def test_a_text_without_such_a_fault_comes_back_to_the_byte(given: str) -> None:
    fixed = fix(given)
    assert (fixed.text, fixed.changes) == (given, ())


@pytest.mark.parametrize(
    ("given", "change"),
    [
        pytest.param(GOOD.replace('"', "'"), "wrote double quotes for single ones", id="single-quotes-R18"),
        pytest.param(GOOD.replace('2"]', '2",]'), "took a comma before a closing bracket out", id="trailing-comma"),
        pytest.param("\ufeff" + GOOD, "took the byte order mark off", id="bom"),
        pytest.param(f"export TF_CONFIG='{GOOD}'", "took TF_CONFIG= off", id="assignment"),
        pytest.param(f"'{GOOD}'", "took the outer quotes off", id="shell-quotes"),
        pytest.param(GOOD.replace('"', ""), "put bare words in quotes", id="quotes-eaten-by-the-shell"),
        pytest.param(
            GOOD.replace('"a:2222"', "“a:2222”"), "wrote straight quotes for typographic ones", id="smart-quotes"
        ),
        pytest.param(GOOD.replace(", ", " "), "put a missing comma in", id="missing-commas"),
        pytest.param(GOOD.replace(": [", "= ["), "wrote a colon for =", id="equals"),
        pytest.param("// who\n" + GOOD, "took comments out", id="comment"),
        pytest.param(GOOD.replace(" ", "\u00a0"), "wrote plain white space", id="no-break-space"),
        pytest.param(GOOD + "}", "took stray characters off the end", id="stray-bracket"),
        pytest.param(GOOD + ";\n'", "took stray characters off the end", id="stray-semicolon"),
        pytest.param(json.dumps(GOOD), "took one encoding off: it was JSON inside a JSON text", id="double-encoded"),
        pytest.param(GOOD.replace("cluster", "clusters"), "renamed the key clusters to cluster", id="clusters-R11"),
        pytest.param(GOOD.replace("type", "task_type"), "renamed the key task_type to type", id="task_type"),
        pytest.param(
            GOOD.replace('"worker":', '"Worker":'),
            "renamed the type Worker to worker: do so on all nodes alike",
            id="type-Worker-R08",
        ),
        pytest.param(
            text(task={"type": "Worker", "index": 0}), "renamed the task's type Worker to worker", id="task-Worker"
        ),
        pytest.param(
            text({"worker": "a:2222, b:2222"}), "wrote the addresses of worker as a list of 2", id="joined-R18"
        ),
        pytest.param(
            text({"worker": ["a:2222,b:2222"]}), "wrote the addresses of worker as a list of 2", id="joined-in-list"
        ),
        pytest.param(text({"ps": "", "worker": TWO}), "took ps out: it had no address", id="empty-text-R18"),
        pytest.param(text({"ps": [], "worker": TWO}), "took ps out: it had no address", id="empty-list"),
        pytest.param(
            text({"worker": [" a:2222", "b:2222 "]}), "took white space off worker:0, worker:1", id="spaces-R31"
        ),
        pytest.param(
            text({"worker": ["grpc://a:2222", TWO[1]]}), "took the scheme grpc:// off worker:0", id="scheme-R15"
        ),
        pytest.param(text({"worker": [TWO[0], "me@b:2222"]}), "took the user name off worker:1", id="user-R15"),
        pytest.param(text({"worker": [TWO[0], "b:2222/"]}), "took the closing slash off worker:1", id="slash"),
        pytest.param(text(task={"type": "worker", "index": "0"}), "wrote the index 0 as a number", id="index-text-R04"),
        pytest.param(
            text(task={"type": "worker", "index": 0.0}), "wrote the index 0 without a decimal point", id="index-float"
        ),
    ],
)
def test_a_fault_with_one_right_answer_is_corrected(given: str, change: str) -> None:
    fixed = fix(given)
    assert change in fixed.changes
    assert json.loads(fixed.text) == json.loads(GOOD)
    assert fixed.left == ()


def test_master_becomes_chief_with_a_word_about_the_other_nodes_r06() -> None:
    fixed = fix(text({"master": ["c:2222"], "worker": TWO}, {"type": "master", "index": 0}))
    assert json.loads(fixed.text) == {
        "cluster": {"chief": ["c:2222"], "worker": TWO},
        "task": {"type": "chief", "index": 0},
    }
    assert "renamed the type master to chief: do so on all nodes alike" in fixed.changes


def test_ps_hosts_and_worker_hosts_become_ps_and_worker_r08() -> None:
    fixed = fix(text({"chief": ["c:2222"], "ps_hosts": ["p:2222"], "worker_hosts": TWO}))
    assert list(json.loads(fixed.text)["cluster"]) == ["chief", "ps", "worker"]
    assert fixed.left == ()


def test_the_template_of_the_report_is_corrected_whole_r18() -> None:
    given = "{'cluster': {'ps': '', 'worker': 'a:2222,b:2222'}, 'task': {'type': 'worker', 'index': 0}}"
    assert fix(given).text == GOOD


def test_python_words_become_json() -> None:
    fixed = fix("{'x': None, 'y': [True, False]}")
    assert fixed.text == '{"x": null, "y": [true, false]}'


def test_a_text_of_several_lines_stays_one() -> None:
    fixed = fix('{\n"cluster": {"worker": ["a:2222",]}\n}')
    assert fixed.text == '{\n  "cluster": {\n    "worker": [\n      "a:2222"\n    ]\n  }\n}'


@pytest.mark.parametrize(
    ("strategy", "task", "stays"),
    [
        ("auto", "worker", False),
        ("ps", "worker", False),
        ("ps", "evaluator", False),
        ("estimator", "worker", False),
        ("estimator", "evaluator", True),
        ("mwms", "worker", True),
    ],
)
def test_the_evaluator_leaves_the_cluster_where_the_strategy_wants_it_r01(
    *, strategy: str, task: str, stays: bool
) -> None:
    fixed = fix(text(PS | {"evaluator": ["e:2222"]}, {"type": task, "index": 0}), strategy=strategy)
    assert ("evaluator" in json.loads(fixed.text)["cluster"]) is stays


@pytest.mark.parametrize(
    "given",
    [
        pytest.param(
            '{"cluster": {"worker": ["a:1"], "worker": ["b:1"]}, "task": {"index": "0"}}', id="two-equal-keys"
        ),
        pytest.param('{"cluster": {"worker": ["a:1", "b', id="cut-off"),
        pytest.param('{"cluster": {"worker": ["a:1",, "b:1"]}}', id="a-hole-in-a-list"),
        pytest.param("{'cluster': {}} or not", id="text-after-the-end"),
        pytest.param('{"x": 01}', id="a-number-that-is-none"),
        pytest.param(r'{"x": "\d"}', id="an-escape-that-is-none"),
        pytest.param(text({"worker": ["fd00::1:2222", "b:2222"]}), id="ipv6-without-brackets"),
        pytest.param(text({"worker": ["a", "b:2222"]}), id="no-port"),
        pytest.param(text({"worker": ["a:2222", "a:2222"]}), id="twice-the-same"),
        pytest.param(text({"Worker": TWO, "worker": TWO}), id="two-of-one-meaning"),
        pytest.param(text({"workers": TWO, "worker_hosts": TWO}), id="two-for-one-name"),
        pytest.param(text({"wroker": TWO}), id="a-typo-is-a-guess"),
        pytest.param(text(task={"type": "worker", "index": 5}), id="index-out-of-range"),
        pytest.param(text(task={"type": "worker", "index": True}), id="index-true"),
        pytest.param(text(task={"type": "worker", "index": 0.5}), id="index-half"),
        pytest.param(text(task={"type": "chief", "index": 0}), id="chief-not-listed"),
        pytest.param(text({"worker": ["a:1,b:1", "c:1"]}), id="a-joined-text-among-others"),
        pytest.param(text({"worker": "a:1,,b:1"}), id="a-hole-in-a-joined-text"),
        pytest.param(text({"worker": []}), id="the-only-type-is-empty"),
        pytest.param("", id="empty"),
    ],
)
def test_what_has_two_answers_is_left_alone_and_told(given: str) -> None:
    fixed = fix(given)
    assert (fixed.text, fixed.changes) == (given, ())
    assert any(f.severity is Severity.ERROR for f in fixed.left)


def test_what_is_left_is_what_check_finds_at_warning_or_above() -> None:
    fixed = fix(text({"worker": [" a:22", "b:0"]}, environment="cloud"))
    assert [f.id for f in fixed.left] == ["port-service", "address-port-zero"]
    assert fixed.left == tuple(f for f in check(fixed.text) if f.severity is not Severity.INFO)


def test_no_change_tells_a_password() -> None:
    fixed = fix(text({"worker": ["me:open-sesame@a:2222", "b:2222"]}))
    assert "open-sesame" not in fixed.text + "".join(fixed.changes)


def test_other_keys_stay_as_they_are_and_where_they_are() -> None:
    given = '{"environment": "cloud", "clusters": {"worker": ["a:2222"]}, "trial": {"é": [1.5, null]}, "task": {}}'
    assert fix(given).text == given.replace("clusters", "cluster")


ADDRESS = st.sampled_from(
    [
        "a:2222",
        " b:1 ",
        "u@c:1",
        "grpc://d:2",
        "grpc://http://u@e:3// ",
        "",
        " ",
        "a:1,b:1",
        "x,",
        ",",
        "@",
        "://",
        "h/ /",
        "1234",
    ]
)
LISTED = (
    st.lists(ADDRESS | st.none() | st.integers(), max_size=3)
    | st.dictionaries(st.sampled_from(["0", "1", "01", "x"]), ADDRESS)
    | ADDRESS
    | st.none()
)
KINDS = st.sampled_from(["worker", "Worker", "workers", "ps", "ps_hosts", "chief", "master", "evaluator", "eval", "x"])
TASK = st.fixed_dictionaries(
    {},
    optional={
        "type": KINDS | st.integers(),
        "task_type": KINDS,
        "index": st.sampled_from([0, "0", " 1 ", "x", -1, 1.0, 0.5, 1e300, None, True]),
        "id": st.integers(),
    },
)
CONFIGS = st.fixed_dictionaries(
    {},
    optional={
        "cluster": st.dictionaries(KINDS, LISTED, max_size=4) | LISTED,
        "clusters": st.dictionaries(KINDS, LISTED, max_size=2),
        "Cluster": st.just({}),
        "task": TASK | st.none() | st.just("worker:0"),
        "tasks": TASK,
        "x": st.text(),
    },
)
TEXTS = (
    CONFIGS.map(json.dumps)
    | CONFIGS.map(lambda config: json.dumps(config, indent=1))
    | CONFIGS.map(repr)
    | CONFIGS.map(lambda config: json.dumps(json.dumps(config)))
    | CONFIGS.map(lambda config: f"export TF_CONFIG='{json.dumps(config)}'")
    | CONFIGS.map(lambda config: json.dumps(config).replace('"', ""))
    | st.text(alphabet=list("{}[]\"':,= \n\\/#ua1N\ufeff\u00a0“\ud800"), max_size=30)
)
STRATEGIES = st.sampled_from(["auto", "mwms", "ps", "estimator"])


@given(TEXTS, STRATEGIES)
def test_fixing_twice_is_fixing_once(given: str, strategy: str) -> None:
    once = fix(given, strategy=strategy)
    assert once.changes or once.text == given
    twice = fix(once.text, strategy=strategy)
    assert (twice.text, twice.changes, twice.left) == (once.text, (), once.left)


SHAPES = CONFIGS.filter(lambda config: not config.keys() & {"clusters", "Cluster", "tasks"}).map(json.dumps)


@given(SHAPES, STRATEGIES)
def test_fixing_adds_no_fault_of_shape(given: str, strategy: str) -> None:
    def weights(text: str) -> int:
        return sum(1 for f in check(text, strategy=strategy) if f.id.startswith(("json-", "job-", "address-type")))

    fixed = fix(given, strategy=strategy)
    json.loads(fixed.text)
    assert weights(fixed.text) <= weights(given)
