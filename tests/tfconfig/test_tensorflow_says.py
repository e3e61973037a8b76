"""Facts 9: TensorFlow itself is asked what it does with a TF_CONFIG, so that what our rules claim cannot rot.

One process imports it and forks per row (tensorflow_zygote.py). A row holds the TF_CONFIG of each task, what
TensorFlow must do, and the rule that speaks of it. Two seconds of silence count as a hang; a sound start takes 0.1 s.
"""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import json
import os
import random
import re
import socket
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from phalanx.tfconfig.agree import agree
from phalanx.tfconfig.check import check
from phalanx.tfconfig.finding import Finding, Severity
from phalanx.tfconfig.parse import parse

pytestmark = [pytest.mark.tensorflow, pytest.mark.timeout(180)]

ALONE = "replicas=1"
PAIR = "replicas=2"
HANGS = "blocked"


@dataclasses.dataclass(frozen=True, kw_only=True)
class Row:
    """`says`: a regular expression for each task's outcome. `rule`: None where `check` must have no error either."""

    name: str
    tasks: tuple[str | None, ...]
    says: tuple[str, ...]
    rule: str | None
    do: str = "mwms"
    environ: dict[str, str] = dataclasses.field(default_factory=dict)
    claims: str = ""


NUMBERS = itertools.count()


def here() -> str:
    """An address on this machine; its port is chosen when the tests run."""
    return f"127.0.0.1:<{next(NUMBERS)}>"


def with_ports(rows: Iterable[Row]) -> Iterator[Row]:
    """Free ports below the ephemeral range in place of the numbers; TensorFlow binds them moments later."""
    ports: dict[str, str] = {}
    candidates = iter(random.sample(range(20_000, 32_000), 4_000))

    def port(match: re.Match[str]) -> str:
        while match[1] not in ports:
            number = next(candidates)
            with socket.socket() as probe, contextlib.suppress(OSError):
                probe.bind(("0.0.0.0", number))  # noqa: S104 - as TensorFlow does
                ports[match[1]] = str(number)
        return ports[match[1]]

    for row in rows:
        tasks = tuple(text if text is None else re.sub(r"<(\d+)>", port, text) for text in row.tasks)
        yield dataclasses.replace(row, tasks=tasks)


def config(cluster: Any, kind: Any = "worker", index: Any = 0, **extra: Any) -> str:
    return json.dumps({"cluster": cluster, "task": {"type": kind, "index": index}, **extra})


def row(name: str, text: str | None, says: str, rule: str | None, **more: Any) -> Row:
    return Row(name=name, tasks=(text,), says=(says,), rule=rule, **more)


def one(**extra: Any) -> str:
    """A sound cluster of one worker."""
    return config({"worker": [here()]}, **extra)


def pair(name: str, first: str, second: str, says: tuple[str, str], rule: str | None, **more: Any) -> Row:
    return Row(name=name, tasks=(first, second), says=says, rule=rule, **more)


def texts() -> Iterator[Row]:
    yield row("unset", None, ALONE, None)
    yield row("empty object", "{}", ALONE, None)
    yield row("empty cluster", config({}), ALONE, "task-without-cluster")
    yield row("a list", "[]", ALONE, "not-object")
    yield row("a number", "3", "TypeError", "not-object")
    yield row("a text in a text", json.dumps(one()), "TypeError: string indices", "double-encoded")
    yield row("empty string", "", "JSONDecodeError", "json-empty")
    yield row("single quotes", "{'cluster': {}}", "JSONDecodeError", "json-single-quotes")
    yield row("trailing comma", '{"cluster": {},}', "JSONDecodeError", "json-trailing-comma")
    yield row("trailing text", one() + " x", "JSONDecodeError", "json-trailing-text")
    yield row("byte order mark", "\ufeff" + one(), "JSONDecodeError", "json-bom")
    yield row("comment", one() + " // mine", "JSONDecodeError", "json-comment")
    yield row("white space around", f" \n{one()}\n ", ALONE, None)  # R31
    yield row("key written twice", '{"task":{},' + one()[1:], ALONE, "json-duplicate-key")
    yield row("typo in cluster", one().replace("cluster", "clusters"), ALONE, "top-key-typo")  # R11
    yield row("task without cluster", '{"task":{"type":"worker","index":0}}', ALONE, "task-without-cluster")


def tasks() -> Iterator[Row]:
    no_task = json.dumps({"cluster": {"worker": [here()]}})
    yield row("cluster without task", no_task, "ValueError: When `cluster_spec` is given", "task-missing")  # R28
    for key, rule in {"type": "task-type-missing", "index": "task-index-missing"}.items():
        text = json.loads(one())
        del text["task"][key]
        yield row(f"task without {key}", json.dumps(text), "ValueError: When `cluster_spec` is given", rule)
    worker = {"worker": [here()]}
    yield row(
        "task is a text",
        json.dumps({"cluster": worker, "task": "worker"}),
        "ValueError: When",
        "task-shape",
        claims="no task",
    )
    yield row("index beyond", config(worker, index=5), "ValueError: The `task_id` 5 exceeds", "index-range")  # R13
    yield row(
        "index -1", config(worker, index=-1), "InvalidArgumentError: Invalid device filter", "index-negative"
    )  # R14
    yield row("index as text", config({"worker": [here()]}, index="0"), ALONE, "index-string")  # R04
    yield row("index 0.0", config({"worker": [here()]}, index=0.0), ALONE, "index-float")
    yield row("index null", config(worker, index=None), r"TypeError: int\(\) argument", "index-type")
    yield row("index true", config(worker, index=True), "ValueError: The `task_id` 1 exceeds", "index-type")


def types() -> Iterator[Row]:
    worker = {"worker": [here()]}
    yield row("type foo", config(worker, "foo"), "ValueError: Unrecognized task_type: foo", "unknown-type")
    yield row("type Worker", config(worker, "Worker"), "ValueError: Unrecognized task_type", "unknown-type")
    yield row("Worker in cluster", config({"Worker": [here()]}, "Worker"), "ValueError: Disallowed", "unknown-type")
    hosts = config({"ps_hosts": ["a:1"], "worker_hosts": ["b:1"]})
    yield row("ps_hosts", hosts, "ValueError: Disallowed task type", "unknown-type")  # R08
    yield row("master", config({"master": [here()]}, "master"), "ValueError: Disallowed task type", "master-job")  # R06
    yield row(
        "chief not there", config(worker, "chief"), "ValueError: .*'chief' not found", "task-not-in-cluster"
    )  # R09
    two_chiefs = config({"chief": ["a:1", "b:1"]}, "chief")
    yield row("two chiefs", two_chiefs, "ValueError: There must be at most one 'chief'", "several-chiefs")
    two = config({"worker": [here()], "evaluator": ["a:1", "b:1"]})
    yield row("two evaluators", two, "ValueError: There must be at most one 'evaluator'", "several-evaluators")
    yield row("only a chief", config({"chief": [here()]}, "chief"), ALONE, None)
    yield row(
        "evaluator outside", config(worker, "evaluator"), "KeyError: 'evaluator'", "evaluator-outside-mwms"
    )  # R01
    both = {"worker": [here()], "evaluator": [here()]}
    yield row("evaluator inside", config(both, "evaluator"), ALONE, "evaluator-in-mwms", claims="a copy of its own")
    yield row("evaluator seen by the worker", config(both), ALONE, "evaluator-in-mwms", claims="workers do not mind")
    yield row("ps under mwms", config({"worker": [here()], "ps": [here()]}), HANGS, "ps-in-mwms")
    yield row("ps under mwms, empty", config({"worker": [here()], "ps": []}), "signal 11", "empty-leader")


def addresses() -> Iterator[Row]:
    yield row(
        "no port", config({"worker": ["127.0.0.1"]}), "InvalidArgumentError: Could not parse port", "address-no-port"
    )
    yield row("port 0", config({"worker": ["127.0.0.1:0"]}), ALONE, "address-port-zero", claims="some free port")  # R17
    yield row("port 99999", config({"worker": ["127.0.0.1:99999"]}), ALONE, "address-port-range", claims="Accepted")
    yield row(
        "scheme",
        config({"worker": [f"grpc://{here()}"]}),
        "InvalidArgumentError: Could not interpret",
        "address-scheme",
    )
    yield row("path", config({"worker": [f"{here()}/x"]}), "InvalidArgumentError: Could not parse port", "address-path")
    yield row("user", config({"worker": [f"u@{here()}"]}), HANGS, "address-user")  # R15
    yield row("space after", config({"worker": [f"{here()} "]}), ALONE, "address-trailing-space", claims="overlooks")
    yield row("name unknown", config({"worker": ["a..b:2222"]}), HANGS, "address-host")
    yield row("address empty", config({"worker": [""]}), "InvalidArgumentError", "address-empty")
    yield row("address a number", config({"worker": [1234]}), "TypeError: Task address 1234 must be", "address-type")
    yield row("workers a text", config({"worker": here()}), "TypeError: The tasks for job", "job-string")  # R18
    yield row("workers null", config({"worker": None}), "TypeError: The tasks for job", "job-shape")
    yield row("no worker listed", config({"worker": []}), "ValueError: The `task_id` 0 exceeds", "index-range")
    yield row("cluster a list", config([here()]), "TypeError: `cluster` must be a dictionary", "cluster-shape")
    yield row("sparse, whole", config({"worker": {"0": here()}}), ALONE, None)  # R12
    gaps = {"worker": {"0": here(), "3": here()}}
    yield pair(
        "sparse, gaps",
        config(gaps),
        config(gaps, index=3),
        (HANGS, "ValueError: .*exceeds"),
        "sparse-gaps",
        claims="hangs.*exceeds",
    )


def extras() -> Iterator[Row]:
    yield row("extra keys", one(environment="cloud", job={}, trial="1"), ALONE, None)  # R98
    yield row("rpc_layer grpc", one(rpc_layer="grpc"), ALONE, None)
    yield row("rpc_layer other", one(rpc_layer="mpi"), "NotFoundError: No server factory", "rpc-layer")
    yield row("session_master", one(session_master="a:1"), ALONE, "session-master", claims="TensorFlow 2 ignores it")


def clusters() -> Iterator[Row]:
    cannot = "UnknownError: Could not start gRPC server"
    same = {"worker": [here()]}
    same["worker"] *= 2
    yield pair("address twice", config(same), config(same, index=1), (cannot, HANGS), "address-duplicate")  # R39
    sound = {"worker": [here(), here()]}
    yield pair("two workers", config(sound), config(sound, index=1), (PAIR, PAIR), None, do="reduce")
    proxy = {"http_proxy": "http://127.0.0.1:9"}
    yield pair("proxy", config(sound), config(sound, index=1), (HANGS, HANGS), "proxy", environ=proxy)  # R46
    yield pair("index twice", config(sound), config(sound), (cannot, HANGS), "agree-task-twice")  # R19
    turned = {"worker": sound["worker"][::-1]}
    yield pair("another order", config(sound), config(turned, index=1), (cannot, HANGS), "agree-order")  # R62
    fewer, more = {"worker": sound["worker"]}, {"worker": [*sound["worker"], here()]}
    aborted = "InternalError: .*group size|InternalError: .*that group has size|InternalError: .*is joining a group"
    yield pair("another size", config(fewer), config(more, index=1), (aborted, aborted), "agree-size", do="reduce")
    sound = {"chief": [here()], "worker": [here()]}
    yield pair("chief and worker", config(sound, "chief"), config(sound), (PAIR, PAIR), None, do="reduce")  # R22


def ps_jobs() -> Iterator[Row]:
    for missing, rule in {"ps": "ps-needs-ps", "worker": "ps-needs-worker"}.items():
        cluster = {kind: [here()] for kind in ("chief", "worker", "ps") if kind != missing}
        says = f"ValueError: There must be at least one {missing}"
        yield row(f"ps strategy without {missing}", config(cluster, "chief"), says, rule, do="ps")  # R10
    listed = {kind: [here()] for kind in ("chief", "worker", "ps", "evaluator")}
    yield row("evaluator in a ps job", config(listed, "chief"), HANGS, "evaluator-in-ps", do="ps")  # R02


ROWS = {row.name: row for rows in (texts, tasks, types, addresses, extras, clusters, ps_jobs) for row in rows()}


@pytest.fixture(scope="module")
def answers() -> dict[str, tuple[Row, list[str]]]:
    """Each row with real ports, and what TensorFlow did with each of its tasks."""
    ready = {row.name: row for row in with_ports(ROWS.values())}
    cases = [
        {
            "name": row.name,
            "tasks": row.tasks,
            "hangs": row.says.count(HANGS),
            "do": row.do,
            "environ": row.environ,
        }
        for row in ready.values()
    ]
    zygote = Path(__file__).with_name("tensorflow_zygote.py")
    quiet = {"TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": "-1"}
    environ = {k: v for k, v in os.environ.items() if not k.lower().endswith("_proxy")} | quiet
    done = subprocess.run(
        [sys.executable, str(zygote)], input=json.dumps(cases), capture_output=True, text=True, env=environ, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    said = json.loads(done.stdout)
    return {name: (row, said[name]) for name, row in ready.items()}


@pytest.mark.parametrize("name", ROWS)
def test_tensorflow_does_what_the_row_says(name, answers):
    row, said = answers[name]
    matches = [
        all(re.match(f"(?s){says}", outcome) for says, outcome in zip(order, said, strict=True))
        for order in itertools.permutations(row.says)
    ]
    assert any(matches), said


@pytest.mark.parametrize("name", [name for name, row in ROWS.items() if row.rule])
def test_the_rule_claims_what_tensorflow_does(name, answers):
    row, said = answers[name]
    found = {finding.id: finding for finding in judge(row)}
    assert row.rule in found, sorted(found)
    consequence = found[row.rule].consequence
    for outcome in said:
        assert re.search(row.claims or claim(outcome), consequence), f"{outcome[:200]!r} against {consequence!r}"


@pytest.mark.parametrize("name", [name for name, row in ROWS.items() if not row.rule])
def test_what_tensorflow_takes_is_no_error(name, answers):
    row, _ = answers[name]
    assert [finding for finding in judge(row) if finding.severity is Severity.ERROR] == []


def judge(row: Row) -> tuple[Finding, ...]:
    if row.rule and row.rule.startswith("agree-"):
        return agree({f"n{number}": parse(text) for number, text in enumerate(row.tasks)})
    strategy = "ps" if row.do == "ps" else "mwms"
    return check(row.tasks[0], strategy=strategy, environ=row.environ)


def claim(outcome: str) -> str:
    """What a consequence has to say of an outcome."""
    if outcome == HANGS:
        return "hang|wait|for ever"
    if outcome == ALONE:
        return "alone|takes it|cuts it|keeps|says nothing"
    return "SIGSEGV" if outcome == "signal 11" else outcome.partition(":")[0]
