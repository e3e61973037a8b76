"""Job → Outline: defaults, strategies, commands, and what cannot fit."""

from __future__ import annotations

import pytest

from phalanx.errors import InputError
from phalanx.job.load import parse
from phalanx.job.resolve import resolve
from phalanx.plan.outline import Interpreter, Strategy

PYTHON = Interpreter(path="/venv/bin/python", version="3.11.7", tensorflow="2.21.0")


def outline(text: str = "", *, environ: dict[str, str] | None = None, interpreter: Interpreter | None = PYTHON):
    job = parse(text if text.startswith("command:") else f"command: [train.py]\n{text}", "job.yaml").job
    return resolve(job, cwd="/work", interpreter=interpreter, environ=environ or {})


def counts(text: str) -> dict[str, int]:
    return {role.type: role.count for role in outline(text).roles}


@pytest.mark.parametrize(
    ("text", "strategy"),
    [
        ("", Strategy.NONE),
        ("roles: {worker: {count: 2}}", Strategy.MWMS),
        ("roles: {chief: {}, worker: {}}", Strategy.MWMS),
        ("roles: {chief: {}, worker: {count: 0}}", Strategy.NONE),
        ("roles: {worker: {}, evaluator: {}}", Strategy.MWMS),
        ("roles: {worker: {}, board: {command: [tensorboard]}}", Strategy.NONE),
        ("roles: {ps: {}}", Strategy.PS),
        ("roles: {ps: {count: 0}, worker: {count: 2}}", Strategy.MWMS),
        ("force_tf_config: true", Strategy.MWMS),
        ("strategy: estimator\nroles: {chief: {}, worker: {}}", Strategy.ESTIMATOR),
        ("strategy: none\nroles: {worker: {count: 2}}", Strategy.NONE),
    ],
)
def test_the_strategy_follows_from_the_roles_unless_it_is_declared(text, strategy):
    made = outline(text)
    assert made.strategy is strategy
    assert made.strategy_declared is text.startswith("strategy")


def test_a_ps_implies_one_chief_and_one_worker():
    assert counts("roles: {ps: {count: 2}}") == {"chief": 1, "worker": 1, "ps": 2}


def test_no_chief_means_none():
    assert counts("roles: {ps: {}, chief: {count: 0}, worker: {count: 2}}") == {"worker": 2, "ps": 1}


def test_a_chief_may_train_alone():
    assert counts("roles: {chief: {}, worker: {count: 0}}") == {"chief": 1}


def test_scripts_and_bare_pythons_run_under_the_interpreter():
    made = outline(
        "command: [python, -u, train.py]\nroles: {worker: {}, board: {command: [tensorboard, --port, '6006']}}"
    )
    assert made.role("worker").command == ("/venv/bin/python", "-u", "train.py")
    assert made.role("board").command == ("tensorboard", "--port", "6006")


def test_a_role_has_the_jobs_variables_and_its_own_over_them():
    made = outline("env: {A: a, B: b}\nroles: {worker: {env: {B: own}}}")
    assert made.role("worker").env == {"A": "a", "B": "own"}


def test_extra_roles_stay_out_of_the_cluster():
    made = outline("roles: {worker: {count: 2}, board: {command: [tensorboard]}}")
    assert [(role.type, role.in_cluster) for role in made.roles] == [("worker", True), ("board", False)]


def test_durations_sizes_and_ports_are_numbers_in_the_outline():
    made = outline("health: {start: 1h30m}\ngrace: {stop: 1m}\nports: 22000-22099\nroles: {worker: {memory: 1Gi}}")
    assert (made.policies.health.start, made.policies.grace.stop) == (5400, 60)
    assert made.ports == (22000, 22099)
    assert made.role("worker").memory == 1 << 30


@pytest.mark.parametrize(
    ("written", "folder"),
    [
        ("/mnt/ckpt", "/mnt/ckpt"),
        ("ckpt/../out", "/work/out"),
        ("~/ckpt", "/home/me/ckpt"),
        ("gs://bucket/x", "gs://bucket/x"),
    ],
)
def test_a_checkpoint_is_one_folder_for_every_task(written, folder):
    assert outline(f"checkpoint: {written}", environ={"HOME": "/home/me"}).checkpoint == folder


@pytest.mark.parametrize("name", ["http_proxy", "HTTPS_PROXY", "grpc_proxy", "ALL_PROXY"])
def test_where_a_proxy_is_set_its_exceptions_are_known(name):
    """R46."""
    assert outline(environ={name: "http://p:3128"}).no_proxy == ""
    assert outline(environ={name: "http://p:3128", "NO_PROXY": "corp"}).no_proxy == "corp"


def test_a_proxy_of_one_role_is_one_for_the_cluster():
    written = "roles: {worker: {count: 2, env: {http_proxy: 'http://p:1', no_proxy: corp}}}"
    assert outline(written, environ={"no_proxy": "home"}).no_proxy == "home,corp"


def test_without_a_proxy_there_is_nothing_to_except():
    assert outline(environ={"no_proxy": "corp", "http_proxy": ""}).no_proxy is None


@pytest.mark.parametrize(
    ("text", "gpus"),
    [
        ("roles: {chief: {}, worker: {}}", {"chief": None, "worker": None}),
        ("roles: {chief: {}, worker: {gpus: 2}, evaluator: {}}", {"chief": 2, "worker": 2, "evaluator": 0}),
        ("roles: {worker: {gpus: 2}, ps: {}}", {"chief": 0, "worker": 2, "ps": 0}),
        ("roles: {worker: {gpus: 1}, ps: {gpus: 1}}", {"chief": 0, "worker": 1, "ps": 1}),
        ("roles: {worker: {}, ps: {gpus: 0}}", {"chief": None, "worker": None, "ps": 0}),
    ],
)
def test_once_workers_say_how_many_gpus_nobody_keeps_all(text, gpus):
    """R67: every task that may see a GPU takes all of its memory."""
    assert {role.type: role.gpus for role in outline(text).roles} == gpus


def test_there_are_as_many_hosts_as_per_host_needs():
    assert outline("roles: {worker: {count: 5, per_host: 2}}").hosts == 3
    assert outline("hosts: 4\nroles: {worker: {count: 5, per_host: 2}}").hosts == 4
    assert outline("roles: {worker: {count: 5}}").hosts == 1


def test_too_few_hosts_are_refused_before_any_starts():
    with pytest.raises(InputError, match="5 worker tasks at 2 a host need 3 hosts; 2 declared"):
        outline("hosts: 2\nroles: {worker: {count: 5, per_host: 2}}")


def test_a_range_with_too_few_ports_is_refused_with_one_that_suffices():
    with pytest.raises(
        InputError, match="22000-22004 are 5, and this job needs 6: one a task now, and one a task for the restart"
    ) as caught:
        outline("ports: 22000-22004\nroles: {worker: {count: 3}}")
    assert "22000-22005" in (caught.value.hint or "")


def test_secrets_are_references():
    made = outline("secrets: [{name: a, env: A, from: {env: SRC}}, {name: b, env: B, from: {file: /s/b}}]")
    assert [(one.name, one.env, one.source) for one in made.secrets] == [("a", "A", "env:SRC"), ("b", "B", "file:/s/b")]


def test_equal_jobs_give_equal_outlines():
    text = "roles: {worker: {count: 3}, ps: {}}\nenv: {A: a}"
    assert outline(text) == outline(text)
