"""Every ready-made vector of the reports (F01-F30) and every row of TensorFlow's measured behaviour, with its verdict.

An id names the vector's row and the report it comes from. Rows about several nodes ask `agree`; F28 (a variable that
is set already) is the launcher's.
"""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from phalanx.errors import InputError
from phalanx.tfconfig import RULES, Finding, Severity, check, parse
from phalanx.tfconfig.agree import agree
from phalanx.tfconfig.rule import LIMIT
from phalanx.tfconfig.rules.circumstances import MAX_VALUE

E, W, I, OK = Severity.ERROR, Severity.WARNING, Severity.INFO, None  # noqa: E741 - the verdicts' own letters

TWO = ["a:2222", "b:2222"]
WORKER_0: dict[str, Any] = {"type": "worker", "index": 0}
PS = {"chief": ["c:2222"], "worker": TWO, "ps": ["p:2222"]}


def text(cluster: Any = None, task: Any = None, **extra: Any) -> str:
    """A TF_CONFIG; without arguments one of two workers that nobody can find fault with."""
    config = {"cluster": {"worker": TWO} if cluster is None else cluster, "task": WORKER_0 if task is None else task}
    return json.dumps(config | extra)


def workers(*addresses: Any) -> str:
    return text({"worker": list(addresses)})


def task(kind: Any, index: Any = 0, cluster: Any = None) -> str:
    return text(cluster, {"type": kind, "index": index})


def worst(findings: tuple[Finding, ...]) -> Severity | None:
    return max((f.severity for f in findings if f.severity is not I), key=lambda s: s.weight, default=None)


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Vector:
    """`rule` is the finding that must be there with severity `verdict`; OK wants no warning and no error."""

    text: str | None
    verdict: Severity | None
    rule: str = ""
    options: dict[str, Any] = dataclasses.field(default_factory=dict)
    at: str = ""


def vector(name: str, given: str | None, verdict: Severity | None, rule: str = "", at: str = "", **options: Any) -> Any:
    return pytest.param(Vector(text=given, verdict=verdict, rule=rule, options=options, at=at), id=name)


LONG = "n" * 64 + ".example.com:2222"
FULL_NAME = ".".join(["n" * 60] * 5) + ":2222"

REPORTED = [
    vector("F01-R26-unset", None, OK),
    vector("F01-R26-unset-explained", None, I, "no-cluster"),
    vector("F01-R26-unset-where-a-cluster-is-expected", None, E, "cluster-missing", expect_cluster=True),
    vector("F01-R26-empty-object", "{}", OK),
    vector("F01-R26-empty-object-where-a-cluster-is-expected", "{}", E, "cluster-missing", expect_cluster=True),
    vector("F01-R26-empty-text", "", E, "json-empty"),
    vector("F02-R18-single-quotes", text().replace('"', "'"), E, "json-single-quotes", "1:2"),
    vector("F02-R18-trailing-comma", '{"cluster": {"worker": ["a:2222",]}}', E, "json-trailing-comma", "1:33"),
    vector("F02-R18-bom", "\ufeff" + text(), E, "json-bom", "1:1"),
    vector("F02-R18-trailing-text", text() + " }", E, "json-trailing-text", f"1:{len(text()) + 2}"),
    vector("F03-R31-spaces-around", f"  {text()} \n", OK),
    vector("F04-R11-clusters", '{"clusters": {"worker": ["a:2222"]}, "task": {}}', E, "top-key-typo", "1:2"),
    vector(
        "F04-R11-sparseCluster",
        '{"sparseCluster":{"worker":{},"ps":[]},"task":{"type":"chief","index":0}}',
        E,
        "top-key-typo",
        "1:2",
    ),
    vector("F05-R28-no-task", json.dumps({"cluster": {"worker": TWO}}), E, "task-missing", "1:1"),
    vector("F05-R28-no-type", text(task={"index": 0}), E, "task-type-missing"),
    vector("F05-R28-no-index", text(task={"type": "worker"}), E, "task-index-missing"),
    vector("F06-R13-index-2-of-2", task("worker", 2), E, "index-range"),
    vector("F06-R14-index-negative", task("worker", -1), E, "index-negative"),
    vector("F06-R04-index-text", task("worker", "0"), W, "index-string"),
    vector("F06-R04-index-float", task("worker", 0.0), E, "index-float"),
    vector("F06-R04-index-true", task("worker", index=True), E, "index-type"),
    vector("F07-R08-Worker", task("Worker"), E, "unknown-type"),
    vector("F07-R06-master", task("master", cluster={"master": ["a:2222"], "worker": ["b:2222"]}), E, "master-job"),
    vector("F07-R08-ps_hosts", text({"chief": ["c:2222"], "worker": TWO, "ps_hosts": ["p:2222"]}), E, "unknown-type"),
    vector("F08-R09-chief-not-listed", task("chief"), E, "task-not-in-cluster"),
    vector("F09-R98-two-chiefs", text({"chief": ["c:2222", "d:2222"], "worker": TWO}), E, "several-chiefs"),
    vector("F09-R98-two-evaluators", text({"worker": TWO, "evaluator": ["c:2222", "d:2222"]}), E, "several-evaluators"),
    vector("F10-R02-evaluator-ps", text(PS | {"evaluator": ["e:2222"]}), E, "evaluator-in-ps", strategy="ps"),
    vector("F10-R02-evaluator-ps-inferred", text(PS | {"evaluator": ["e:2222"]}), E, "evaluator-in-ps"),
    vector(
        "F10-R01-evaluator-mwms",
        text({"worker": TWO, "evaluator": ["e:2222"]}),
        W,
        "evaluator-in-mwms",
        strategy="mwms",
    ),
    vector(
        "F10-R03-evaluator-estimator",
        task("evaluator", cluster={"chief": ["c:2222"], "worker": TWO, "evaluator": ["e:2222"]}),
        OK,
        strategy="estimator",
    ),
    vector(
        "F10-R03-evaluator-estimator-missing-own",
        task("evaluator", cluster={"chief": ["c:2222"], "worker": TWO}),
        E,
        "evaluator-missing-estimator",
        strategy="estimator",
    ),
    vector("F10-R01-evaluator-outside-ps", task("evaluator", cluster=PS), OK, strategy="ps"),
    vector("F10-R01-evaluator-outside-mwms", task("evaluator"), W, "evaluator-outside-mwms", strategy="mwms"),
    vector(
        "F10-R04-evaluator-seen-by-a-worker",
        text({"chief": ["c:2222"], "worker": TWO, "evaluator": ["e:2222"]}),
        W,
        "evaluator-seen-estimator",
        strategy="estimator",
    ),
    vector("F11-ours-ps-in-mwms", text(PS), E, "ps-in-mwms", strategy="mwms"),
    vector("F12-R10-ps-without-chief", text({"worker": TWO, "ps": ["p:2222"]}), E, "ps-needs-chief", strategy="ps"),
    vector("F12-R10-ps-without-ps", text({"chief": ["c:2222"], "worker": TWO}), E, "ps-needs-ps", strategy="ps"),
    vector(
        "F12-R10-ps-without-worker",
        task("chief", cluster={"chief": ["c:2222"], "ps": ["p:2222"]}),
        E,
        "ps-needs-worker",
        strategy="ps",
    ),
    vector("F12-R10-estimator-without-chief", text(), E, "estimator-needs-chief", strategy="estimator"),
    vector("F13-R39-duplicate-within", workers("h:2222", "h:2222"), E, "address-duplicate", "1:35"),
    vector("F13-R39-duplicate-across", text(PS | {"ps": ["a:2222"]}), E, "address-duplicate"),
    vector("F13-R39-duplicate-case", workers("h:2222", "H:2222"), E, "address-duplicate"),
    vector("F13-R39-name-and-its-ip", workers("localhost:2222", "127.0.0.1:2222"), W, "address-alias"),
    vector(
        "F13-R39-name-and-its-ip-resolved",
        workers("n1:2222", "10.0.0.7:2222"),
        W,
        "address-alias",
        resolve={"n1": frozenset({"10.0.0.7"}), "10.0.0.7": frozenset({"10.0.0.7"})}.__getitem__,
    ),
    vector("F14-R16-no-port", workers("a", "b:2222"), E, "address-no-port"),
    vector("F14-R31-no-host", workers(":2222", "b:2222"), E, "address-no-host"),
    vector("F14-R17-port-0", workers("a:0", "b:2222"), E, "address-port-zero"),
    vector("F14-R16-port-0000", workers("localhost:0000", "localhost:1111"), E, "address-port-zero"),
    vector("F14-R31-port-70000", workers("a:70000", "b:2222"), E, "address-port-range"),
    vector("F14-R31-port-plus", workers("a:+22", "b:2222"), E, "address-port"),
    vector("F14-R31-trailing-space", workers("a:2222 ", "b:2222"), W, "address-trailing-space"),
    vector("F14-R31-leading-space", workers(" a:2222", "b:2222"), E, "address-leading-space"),
    vector("F15-R15-scheme", workers("grpc://a:2222", "b:2222"), E, "address-scheme"),
    vector("F15-R15-path", workers("a:2222/x", "b:2222"), E, "address-path"),
    vector("F15-R15-user", workers("u@a:2222", "b:2222"), E, "address-user"),
    vector("F16-R30-ipv6", workers("[fd00::1]:2222", "b:2222"), W, "address-ipv6"),
    vector("F16-R30-ipv6-on-2.21", workers("[fd00::1]:2222", "b:2222"), OK, tf_version="2.21"),
    vector("F16-R30-ipv6-bare", workers("fd00::1:2222", "b:2222"), E, "address-ipv6-bare"),
    vector(
        "F17-R16-localhost-two-hosts", workers("localhost:2222", "localhost:2223"), E, "address-local-hosts", hosts=2
    ),
    vector("F17-R25-localhost-one-host", workers("localhost:2222", "localhost:2223"), OK),
    vector("F18-R16-localhost-and-names", workers("localhost:2222", "b:2222"), E, "address-local-mixed"),
    vector("F18-R16-loopback-and-names", workers("a:2222", "127.0.0.1:2222"), E, "address-local-mixed"),
    vector("F19-ours-privileged", workers("a:1023", "b:2222"), W, "port-privileged"),
    vector("F19-R37-ephemeral", workers("a:40000", "b:2222"), W, "port-ephemeral"),
    vector("F19-ours-22", workers("a:22", "b:2222"), W, "port-service"),
    vector("F19-ours-6443", workers("a:6443", "b:2222"), W, "port-service"),
    vector("F19-ours-8080", workers("a:8080", "b:2222"), W, "port-service"),
    vector("F20-R31-underscore", workers("a_b:2222", "b:2222"), W, "address-underscore"),
    vector("F20-R33-label", workers(LONG, "b:2222"), E, "address-label-length"),
    vector("F20-R33-name", workers(FULL_NAME, "b:2222"), E, "address-name-length"),
    vector("F20-R34-trailing-dot", workers("a.example.com.:2222", "b:2222"), OK),
    vector("F21-R18-text-for-list", text({"worker": "a:2222,b:2222"}), E, "job-string"),
    vector(
        "F21-R12-sparse-ps",
        task("worker", 1, cluster={"ps": ["p:2222"], "worker": {"1": "b:2222"}}),
        OK,
        strategy="ps",
    ),
    vector("F21-R12-sparse-explained", text({"worker": {"0": "a:2222", "1": "b:2222"}}), I, "sparse-form"),
    vector("F21-R12-sparse-mwms", task("worker", 1, cluster={"worker": {"1": "b:2222"}}), E, "sparse-gaps"),
    vector("F21-R18-empty-list", text({"worker": TWO, "evaluator": []}), W, "job-empty"),
    vector("F21-R18-null", text({"worker": TWO, "ps": None}), E, "job-shape"),
    vector("F21-R18-empty-text", text({"worker": TWO, "ps": ""}), E, "job-empty-string"),
    vector(
        "F22-R32-3000-tasks-variable",
        workers(*(f"worker-{i:04d}.training.svc.example.internal:2222" for i in range(3000))),
        E,
        "env-too-large",
        delivery="variable",
    ),
    vector(
        "F22-R32-3000-tasks-file",
        workers(*(f"worker-{i:04d}.training.svc.example.internal:2222" for i in range(3000))),
        I,
        "env-too-large-file",
    ),
    vector("F27-R04-rpc-layer-grpc", text(rpc_layer="grpc"), OK),
    vector("F27-R98-environment", text(environment="cloud"), OK),
    vector("F27-R98-environment-told", text(environment="cloud"), I, "extra-key"),
    vector("F27-R04-session-master", text(session_master="grpc://a:1"), W, "session-master"),
    vector(
        "F29-ours-duplicate-key",
        '{"cluster": {"worker": ["a:2222"], "worker": ["b:2222"]}, "task": {"type": "worker", "index": 0}}',
        E,
        "json-duplicate-key",
        "1:36",
    ),
    vector("F30-ours-secret-by-name", text(trial={"password": "correct horse"}), W, "secret"),
    vector("F30-ours-secret-by-shape", text(note="AKIA" + "A1B2C3D4E5F6G7H8"), W, "secret"),
]

MEASURED = [
    vector("S9-unset", None, I, "no-cluster"),
    vector("S9-empty-object", "{}", I, "no-cluster"),
    vector("S9-list", "[]", E, "not-object"),
    vector("S9-task-without-cluster", json.dumps({"task": WORKER_0}), E, "task-without-cluster"),
    vector("S9-task-with-an-empty-cluster", text({}), E, "task-without-cluster"),
    vector("S9-empty-text", "", E, "json-empty"),
    vector("S9-no-json", "worker:0", E, "json-unquoted"),
    vector("S9-cluster-without-task", json.dumps({"cluster": {"worker": TWO}}), E, "task-missing"),
    vector("S9-index-out-of-range", task("worker", 5), E, "index-range"),
    vector("S9-index-negative", task("worker", -1), E, "index-negative"),
    vector("S9-index-text", task("worker", "1"), W, "index-string"),
    vector("S9-index-float", task("worker", 0.0), E, "index-float"),
    vector("S9-index-null", text(task={"type": "worker", "index": None}), E, "index-type"),
    vector("S9-type-foo", task("foo"), E, "unknown-type"),
    vector("S9-type-Worker-listed", task("Worker", cluster={"Worker": TWO}), E, "unknown-type"),
    vector("S9-type-master", task("master"), E, "master-job"),
    vector("S9-chief-not-listed", task("chief"), E, "task-not-in-cluster"),
    vector("S9-evaluator-not-listed", task("evaluator"), W, "evaluator-outside-mwms"),
    vector("S9-evaluator-listed", text({"worker": TWO, "evaluator": ["e:2222"]}), W, "evaluator-in-mwms"),
    vector("S9-two-chiefs", text({"chief": ["c:2222", "d:2222"]}, {"type": "chief", "index": 0}), E, "several-chiefs"),
    vector("S9-only-a-chief", task("chief", cluster={"chief": ["c:2222"]}), OK),
    vector("S9-ps-in-mwms", text(PS), E, "ps-in-mwms", strategy="mwms"),
    vector("S9-duplicate-address", workers("a:2222", "a:2222"), E, "address-duplicate"),
    vector("S9-no-port", workers("127.0.0.1", "127.0.0.2:2222"), E, "address-no-port"),
    vector("S9-port-0", workers("a:0"), E, "address-port-zero"),
    vector("S9-port-99999", workers("a:99999"), E, "address-port-range"),
    vector("S9-scheme", workers("grpc://a:2222", "b:2222"), E, "address-scheme"),
    vector("S9-ipv6-loopback", workers("[::1]:2222", "[::1]:2223"), OK, tf_version="2.21"),
    vector("S9-localhost", workers("localhost:2222", "localhost:2223"), OK),
    vector("S9-unresolved", workers("a:2222", "b:2222"), E, "address-unresolved", resolve=lambda _: frozenset()),
    vector("S9-sparse-gaps", text({"worker": {"0": "a:2222", "3": "b:2222"}}), E, "sparse-gaps"),
    vector("S9-cluster-no-object", text(["a:2222"]), E, "cluster-shape"),
    vector("S9-job-no-list", text({"worker": 5}), E, "job-shape"),
    vector("S9-address-number", workers(1234), E, "address-type"),
    vector("S9-empty-worker-list", text({"worker": []}), E, "index-range"),
    vector("S9-extra-key", text(anything=1), OK),
    vector("S9-environment-cloud", text(environment="cloud"), OK),
    vector("S9-rpc-layer-grpc", text(rpc_layer="grpc"), OK),
    vector("S9-rpc-layer-other", text(rpc_layer="verbs"), E, "rpc-layer"),
    vector("S9-R46-proxy", text(), E, "proxy", environ={"https_proxy": "http://proxy.example.com:3128"}),
    vector("S9-R46-proxy-excepted", text(), OK, environ={"http_proxy": "http://proxy:3128", "no_proxy": "a, b"}),
    vector(
        "S9-R46-proxy-excepted-network",
        workers("10.1.2.3:2222", "10.1.2.4:2222"),
        OK,
        environ={"http_proxy": "http://proxy:3128", "no_proxy": "10.0.0.0/8"},
    ),
    # Measured for these rules on 2.21, beyond the table.
    vector("S9-empty-ps-dies", text({"worker": TWO, "ps": []}), E, "empty-leader"),
    vector("S9-empty-chief-dies", text({"worker": TWO, "chief": []}), E, "empty-leader"),
    vector("S9-empty-evaluator-works", text({"worker": TWO, "evaluator": []}), W, "job-empty"),
]

OTHERS = [
    vector(
        "R04-text-index-and-evaluator-1", task("worker", "0", cluster=PS | {"evaluator": ["e:1"]}), W, "index-string"
    ),
    vector(
        "R04-text-index-and-evaluator-2", task("worker", "0", cluster=PS | {"evaluator": ["e:1"]}), E, "evaluator-in-ps"
    ),
    vector("R12-sparse-before-2.6", text({"worker": {"0": "a:2222"}}), E, "sparse-version", tf_version="2.4"),
    vector("R12-sparse-index-no-number", text({"worker": {"a": "a:2222"}}), E, "sparse-index"),
    vector("R12-sparse-index-twice", text({"worker": {"1": "a:2222", "01": "b:2222"}}), E, "sparse-index"),
    vector("R26-one-task", text({"worker": ["a:2222"]}), I, "single-task"),
    vector(
        "R26-one-task-estimator",
        task("chief", cluster={"chief": ["a:1"]}),
        W,
        "single-task-estimator",
        strategy="estimator",
    ),
    vector("R31-ip-300", workers("10.0.0.300:2222", "b:2222"), E, "address-ipv4"),
    vector("R31-ip-octal", workers("010.0.0.1:2222", "b:2222"), E, "address-ipv4"),
    vector("R48-localhost-propagation", text(PS), W, "localhost-propagation", tf_version="2.2"),
    vector("R89-estimator-gone", text(PS), E, "estimator-gone", strategy="estimator", tf_version="2.16.1"),
    vector("R89-estimator-there", text(PS), OK, strategy="estimator", tf_version="2.15"),
    vector("R16-wildcard", workers("0.0.0.0:2222", "b:2222"), E, "address-wildcard"),
    vector("R18-joined-in-a-list", workers("a:2222,b:2222"), E, "address-joined"),
    vector("R34-placeholder", workers("$(hostname):2222", "b:2222"), E, "address-host"),
    vector("R34-two-dots", workers("a..b:2222", "b:2222"), E, "address-host"),
    vector("R96-extra-role-in-cluster", text({"worker": TWO, "dispatcher": ["d:2222"]}), E, "unknown-type"),
    vector("R98-only-evaluators", task("worker", cluster={"evaluator": ["e:2222"]}), E, "nobody-trains"),
    vector(
        "R06-master-under-estimator",
        task("master", cluster={"master": ["a:2222"]}),
        W,
        "master-job-estimator",
        strategy="estimator",
    ),
    vector("R28-task-key-typo", text(task={"task_type": "worker", "index": 0}), E, "task-key-typo"),
    vector("R28-task-a-text", text(task="worker:0"), E, "task-shape"),
    vector("R28-type-a-number", text(task={"type": 1, "index": 0}), E, "task-type-shape"),
    vector("R31-empty-address", workers("", "b:2222"), E, "address-empty"),
    vector("ps-good", text(PS), OK),
    vector("mwms-good", text(), OK),
    vector("mwms-with-chief-good", task("chief", cluster={"chief": ["c:2222"], "worker": TWO}), OK),
    vector("estimator-good", text(PS), OK, strategy="estimator"),
]


@pytest.mark.parametrize("case", [*REPORTED, *MEASURED, *OTHERS])
def test_each_vector_has_its_verdict(case: Vector) -> None:
    found = check(case.text, **case.options)
    told = "\n".join(f"{f.severity.value} {f.id} {f.message}" for f in found)
    if case.verdict is OK:
        assert worst(found) is None, told
        return
    hit = next((f for f in found if f.id == case.rule), None)
    assert hit is not None, told
    assert hit.severity is case.verdict
    if case.verdict is W and not case.rule.startswith("index-string"):
        assert worst(found) is W, told
    if case.at:
        assert f"{hit.place.line}:{hit.place.column}" == case.at


NODE = {"cluster": {"worker": TWO}}


def nodes(**configs: Any) -> dict[str, Any]:
    return {name: parse(json.dumps(config), path=name) for name, config in configs.items()}


def node(index: int, *addresses: str) -> dict[str, Any]:
    return {"cluster": {"worker": list(addresses or TWO)}, "task": {"type": "worker", "index": index}}


@pytest.mark.parametrize(
    ("configs", "rule"),
    [
        pytest.param({"a": node(0), "b": node(1, "b:2222", "a:2222")}, "agree-order", id="F23-R62-order"),
        pytest.param({"a": node(0), "b": node(1, *TWO, "c:2222")}, "agree-size", id="F24-R62-one-more"),
        pytest.param({"a": node(0), "b": node(0)}, "agree-task-twice", id="F25-R19-twice"),
        pytest.param({"a": node(0), "b": node(0)}, "agree-task-unclaimed", id="F25-R19-unclaimed"),
    ],
)
def test_nodes_that_differ_are_found(configs: dict[str, Any], rule: str) -> None:
    assert rule in {f.id for f in agree(nodes(**configs)) if f.severity is E}


def test_key_order_and_white_space_are_no_difference_f26() -> None:
    a = {"cluster": {"worker": ["w:2222"], "chief": ["c:2222"]}, "task": {"type": "chief", "index": 0}}
    b = {"task": {"index": 0, "type": "worker"}, "cluster": {"chief": ["c:2222"], "worker": ["w:2222"]}}
    found = agree({"a": parse(json.dumps(a)), "b": parse(json.dumps(b, indent=4))})
    assert found == ()


def test_the_last_value_that_fits_into_a_variable_is_131061_bytes_long() -> None:
    padding = MAX_VALUE - len(text(x=""))
    fits, over = text(x="y" * padding), text(x="y" * (padding + 1))
    assert (len(fits), MAX_VALUE) == (131_061, 131_061)
    assert "env-too-large" not in {f.id for f in check(fits, delivery="variable")}
    found = next(f for f in check(over, delivery="variable") if f.id == "env-too-large")
    assert "131,062 bytes, 1 more than" in found.message


@pytest.mark.parametrize(
    ("given", "hint"),
    [
        ('{"clusters": {}}', 'did you mean "cluster"?'),
        (task("worker_hosts"), 'did you mean "worker"?'),
        (task("wroker"), 'did you mean "worker"?'),
        (task("Chief"), 'did you mean "chief"?'),
        (text({"ps_hosts": ["a:2222"]}), 'did you mean "ps"?'),
        (text({"evalutor": ["a:2222"]}), 'did you mean "evaluator"?'),
        (text(task={"typ": "worker", "index": 0}), 'did you mean "type"?'),
    ],
)
def test_a_near_match_is_suggested_r08_r11(given: str, hint: str) -> None:
    assert any(hint in f.message for f in check(given)), check(given)


def test_what_is_like_nothing_gets_no_suggestion() -> None:
    assert not any("did you mean" in f.message for f in check(text({"worker": TWO, "dispatcher": ["d:1"]}, zone="eu")))


def test_where_auto_decides_it_says_what_it_took_it_for() -> None:
    told = next(f.message for f in check(text(PS | {"evaluator": ["e:2222"]})) if f.id == "evaluator-in-ps")
    asked = next(
        f.message for f in check(text(PS | {"evaluator": ["e:1"]}), strategy="ps") if f.id == "evaluator-in-ps"
    )
    assert told.endswith("(taken for ps: the cluster has a ps)")
    assert "taken for" not in asked


def test_a_missing_index_says_which_there_are_r13() -> None:
    found = next(f for f in check(task("worker", 2)) if f.id == "index-range")
    assert "from 0 to 1" in found.message


def test_a_chief_that_is_not_listed_is_told_who_the_chief_is_r09() -> None:
    found = next(f for f in check(task("chief")) if f.id == "task-not-in-cluster")
    assert "worker:0 is the chief" in found.message


SECRET = "correct-horse-battery"


@pytest.mark.parametrize(
    "given",
    [
        text(password=SECRET),
        text(nested={"list": [{"api_key": SECRET}]}),
        workers(f"user:{SECRET}@a:2222", "b:2222"),
        workers(f"grpc://user:{SECRET}@a:2222", "b:2222"),
        workers(f"user:{SECRET}@a:2222", f"user:{SECRET}@a:2222"),
        workers(f"user:{SECRET}@a:2222,user:{SECRET}@b:2222"),
        text(rpc_layer={"token": SECRET}),
        text(task={"type": "worker", "index": {"token": SECRET}}),
        "{'password': '" + SECRET + "', }",
    ],
)
def test_no_message_holds_a_secret_f30(given: str) -> None:
    found = check(given)
    assert found
    assert SECRET not in repr([dataclasses.replace(f, path="") for f in found])


def test_a_habit_of_ten_thousand_addresses_is_one_finding() -> None:
    found = [f for f in check(workers(*(f"n{i}:40000" for i in range(10_000)))) if f.id == "port-ephemeral"]
    assert len(found) == 1
    assert "9,999 more places" in found[0].message


def test_ten_thousand_single_faults_are_cut_short_and_counted() -> None:
    found = [f for f in check(workers(*(f"n{i}" for i in range(10_000)))) if f.id == "address-no-port"]
    assert len(found) == LIMIT
    assert found[-1].message.endswith("(and 9,980 more like it)")


def test_findings_come_in_the_order_of_the_text() -> None:
    found = check('{"task": {"type": "worker", "index": "9"},\n "cluster": {"worker": ["a", "grpc://b:1"]}}')
    assert [f.place.line for f in found] == sorted(f.place.line for f in found)


def test_a_parsed_text_is_checked_as_it_is() -> None:
    assert check(parse(text(), path="x.json"), strategy="ps") == check(text(), path="x.json", strategy="ps")


def test_a_text_that_cannot_be_read_is_told_once() -> None:
    assert [f.id for f in check('{"cluster": ')] == ["json-syntax"]


@pytest.mark.parametrize(
    ("options", "wanted"), [({"strategy": "mirrored"}, "mirrored"), ({"tf_version": "new"}, "new")]
)
def test_a_strategy_or_version_that_is_none_is_refused(options: dict[str, str], wanted: str) -> None:
    with pytest.raises(InputError, match=wanted):
        check(text(), **options)  # type: ignore[arg-type]  # wrong on purpose


def test_the_table_has_a_full_row_for_each_rule() -> None:
    assert len({rule.id for rule in RULES}) == len(RULES)
    for rule in RULES:
        assert rule.message.endswith("."), rule.id
        assert rule.consequence, rule.id
        assert rule.source, rule.id


def test_every_rule_is_hit_by_some_vector() -> None:
    hit = {param.values[0].rule for param in [*REPORTED, *MEASURED, *OTHERS]}
    syntax = {rule.id for rule in RULES if rule.id.startswith("json-")}
    also = {"double-encoded", "address-ipv6-works"}  # test_parse, and below
    assert {rule.id for rule in RULES} - syntax - also - hit == set()


def test_ipv6_on_a_version_that_serves_it_is_told_as_an_info_r30() -> None:
    found = {f.id: f.severity for f in check(workers("[fd00::1]:2222", "[fd00::2]:2222"), tf_version="2.21")}
    assert found["address-ipv6-works"] is I


def test_infos_and_warnings_of_one_rule_say_what_to_do() -> None:
    for case in (*REPORTED, *MEASURED):
        for found in check(case.values[0].text, **case.values[0].options):
            assert found.fix or found.severity is I, found.id


ADDRESS = st.sampled_from(
    ["a:2222", "b:2222", "u@c:1", "grpc://d:2", " e:3 ", "", "[::1]:9", "::1:9", "h", "h:+1", "a:2222,b:1"]
)
LISTED = (
    st.lists(ADDRESS, max_size=3)
    | st.dictionaries(st.sampled_from(["0", "1", "7", "x"]), ADDRESS)
    | ADDRESS
    | st.none()
)
CONFIGS = st.fixed_dictionaries(
    {},
    optional={
        "cluster": st.dictionaries(st.sampled_from(["worker", "ps", "chief", "evaluator", "Worker", "x"]), LISTED)
        | st.none(),
        "task": st.fixed_dictionaries(
            {},
            optional={
                "type": st.sampled_from(["worker", "ps", "Worker", 1]),
                "index": st.sampled_from([0, "0", -1, 1e9, None]),
            },
        )
        | st.none(),
        "rpc_layer": st.sampled_from(["grpc", "x", None, [1]]),
        "password": st.text(max_size=3),
        "clusters": st.just({}),
    },
)


@given(
    st.text() | CONFIGS.map(json.dumps) | CONFIGS.map(repr),
    st.sampled_from(["auto", "mwms", "ps", "estimator"]),
    st.sampled_from([None, "2.2", "2.21"]),
    st.booleans(),
    st.sampled_from([None, 1, 2]),
)
def test_check_never_raises(given: str, strategy: str, tf_version: str | None, expect: bool, hosts: int | None) -> None:
    found = check(
        given,
        strategy=strategy,
        tf_version=tf_version,
        expect_cluster=expect,
        hosts=hosts,
        environ={"http_proxy": "x"},
        resolve=lambda _: frozenset({"10.0.0.1"}),
    )
    assert all(f.message and f.consequence and f.source for f in found)
