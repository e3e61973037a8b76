"""What may not be said yet, what cannot work, and what deserves a second thought."""

from __future__ import annotations

import pytest

from phalanx.job import advise
from phalanx.job.advise import count_of, looks_secret
from phalanx.job.complaint import dotted
from phalanx.job.load import parse
from phalanx.tfconfig.finding import Severity


def job(text: str):
    return parse(f"command: [train.py]\n{text}", "job.yaml").job


def mistakes(text: str) -> dict[str, str]:
    return {dotted(loc): said for loc, said in advise.mistakes(job(text))}


def refusals(text: str, engine: str | None = None) -> dict[str, str]:
    return {dotted(loc): said for loc, said in advise.refusals(job(text), engine)}


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("communication: ring", "communication"),
        ("network: eth1", "network"),
        ("on: {local: {colour: red}}", "on.local"),
    ],
)
def test_what_cannot_be_kept_is_refused_with_where_to_go(text, place):
    [(where, said)] = refusals(text).items()
    assert where == place
    assert "; " in said, "a refusal names the next step"


def test_every_row_of_the_table_is_a_field_and_its_default_is_kept():
    plain = job("roles: {worker: {count: 2}}")
    assert not list(advise.refusals(plain, None))
    assert {dotted(row.at) for row in advise.NOT_YET} >= {"network"}


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("image: x", "image"),
        ("placement: {together: rack}", "placement.together"),
        ("placement: {spread: host}", "placement.spread"),
        ("on: {kubernetes: {namespace: ml}}", "on.kubernetes"),
    ],
)
def test_what_is_said_for_other_engines_is_noted_and_stops_nothing(text, place):
    assert not refusals(text, "local")
    [(where, _, severity, said, _)] = advise.warnings(job(text), "local")
    assert (dotted(where), severity) == (place, Severity.INFO)
    assert " is not read: " in said


@pytest.mark.parametrize(
    ("engine", "said"),
    [
        ("slurm", "slurm comes in a later release; leave --on out to run on this machine"),
        ("ssh:gpu[01-04]", "ssh comes in a later release; leave --on out to run on this machine"),
        ("lokal", "no engine 'lokal'; did you mean local?"),
        ("moon", "no engine 'moon'; known are local, ssh, slurm, kubernetes"),
    ],
)
def test_an_engine_that_is_not_there_is_refused(engine, said):
    assert refusals("", engine) == {"--on": said}


def test_this_machine_by_its_name_is_this_machine():
    assert refusals("", "local") == {}


@pytest.mark.parametrize(
    ("text", "place", "said"),
    [
        ("roles: {chief: {count: 2}}", "roles.chief.count", "at most one chief"),
        ("roles: {worker: {}, evaluator: {count: 2}}", "roles.evaluator.count", "at most one evaluator"),
        ("roles: {worker: {count: 0}}", "roles.worker.count", "nobody would train"),
        ("roles: {worker: {count: 0}, ps: {}}", "roles.worker.count", "a ps serves workers"),
        ("strategy: mwms\nroles: {ps: {}}", "strategy", "its leader would be ps:0"),
        ("strategy: ps", "strategy", "needs at least one parameter server"),
        ("strategy: none\nroles: {ps: {}}", "strategy", "nobody would find the ps"),
        ("strategy: none\nforce_tf_config: true", "force_tf_config", "gives nobody a TF_CONFIG"),
        ("strategy: estimator\nroles: {ps: {}, chief: {count: 0}}", "strategy", "needs a chief"),
        ("roles: {master: {}}", "roles.master", "did you mean `chief`?"),
        ("roles: {workers: {}}", "roles.workers", "did you mean `worker`?"),
        ("roles: {wroker: {}}", "roles.wroker", "did you mean `worker`?"),
        ("roles: {dispatcher: {}}", "roles.dispatcher", "needs a command of its own"),
        ("roles: {dispatcher: {command: [x], in_cluster: true}}", "roles.dispatcher.in_cluster", "TensorFlow refuses"),
        ("roles: {worker: {in_cluster: false}}", "roles.worker.in_cluster", "would train alone"),
        ("env: {TF_CONFIG: '{}'}", "env.TF_CONFIG", "is written by phalanx"),
        ("roles: {worker: {env: {PHALANX_RUN: x}}}", "roles.worker.env.PHALANX_RUN", "is written by phalanx"),
        (
            "env: {CUDA_VISIBLE_DEVICES: '0'}\nroles: {worker: {gpus: 1}}",
            "env.CUDA_VISIBLE_DEVICES",
            "roles.worker.gpus writes CUDA_VISIBLE_DEVICES",
        ),
        ("env: {A: x}\nsecrets: [{name: s, env: A, from: {env: A}}]", "secrets[0].env", "A is set by env already"),
        ("secrets: [{name: s, env: TF_CONFIG, from: {env: A}}]", "secrets[0].env", "is written by phalanx"),
        ("checkpoint: '/ckpt/{run}'", "checkpoint", "{run} is filled in in commands only"),
    ],
)
def test_what_cannot_work_is_a_mistake_at_its_place(text, place, said):
    found = mistakes(text)
    assert list(found) == [place]
    assert said in found[place]


def test_a_checkpoint_that_is_used_and_not_set_is_a_mistake():
    wrong = parse("command: [train.py, '--ckpt={checkpoint}']\n", "job.yaml").job
    assert [dotted(loc) for loc, _ in advise.mistakes(wrong)] == ["command[1]"]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "roles: {worker: {count: 0}, chief: {count: 1}}",
        "roles: {worker: {count: 2}, ps: {count: 1}, evaluator: {}}",
        "roles: {worker: {count: 2}, dispatcher: {command: [dispatch]}}",
        "strategy: estimator\nroles: {chief: {}, worker: {}, ps: {}}",
    ],
)
def test_what_works_is_no_mistake(text):
    assert mistakes(text) == {}


@pytest.mark.parametrize(
    ("text", "counts"),
    [
        ("", {"worker": 1}),
        ("roles: {ps: {}}", {"chief": 1, "worker": 1, "ps": 1}),
        ("roles: {ps: {count: 0}}", {"worker": 1}),
        ("roles: {ps: {}, chief: {count: 0}}", {"worker": 1, "ps": 1}),
        ("roles: {chief: {}}", {"chief": 1}),
        ("roles: {worker: {count: 3}}", {"worker": 3}),
        ("roles: {evaluator: {}}", {"worker": 1, "evaluator": 1}),
    ],
)
def test_a_ps_implies_one_chief_and_somebody_always_trains(text, counts):
    declared = job(text)
    kinds = ("chief", "worker", "ps", "evaluator")
    assert {kind: count for kind in kinds if (count := count_of(declared, kind))} == counts


def test_a_value_that_looks_like_a_secret_is_advised_into_secrets():
    [(loc, rule, severity, said, fix)] = advise.warnings(job("env: {WANDB_API_KEY: abcdef}"), None)
    assert (dotted(loc), rule, severity.value) == ("env.WANDB_API_KEY", "job-secret-in-env", "warning")
    assert "abcdef" not in said + fix
    assert "secrets: [{name: wandb_api_key, env: WANDB_API_KEY, from: {env: WANDB_API_KEY}}]" in fix


@pytest.mark.parametrize(
    ("name", "value", "secret"),
    [
        ("DB_PASSWORD", "hunter2", True),
        ("HF_TOKEN", "hf_x", True),
        ("URL", "https://me:hunter2@example.com/x", True),
        ("X", "AKIA" + "A" * 16, True),
        ("X", "ghp_" + "a" * 36, True),
        ("X", "-----BEGIN RSA PRIVATE KEY-----", True),
        ("TOKENIZERS_PARALLELISM", "false", False),
        ("GOOGLE_APPLICATION_CREDENTIALS", "/secrets/key.json", False),
        ("HF_TOKEN", "", False),
        ("KEYBOARD", "us", False),
        ("URL", "https://example.com:8080/x@y", False),
    ],
)
def test_secrets_are_known_by_name_and_by_shape(name, value, secret):
    assert looks_secret(name, value) is secret


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("roles: {ps: {}, chief: {count: 0}}", "job-ps-without-chief"),
        ("on: {slurm: {partition: gpu}}", "job-engine-not-in-use"),
        ("roles: {worker: {memory: 4Gi}}", "job-claim-not-enforced"),
        ("placement: {pin: off}\nroles: {worker: {cpus: 4}}", "job-claim-not-enforced"),
    ],
)
def test_what_is_odd_is_said_and_stops_nothing(text, rule):
    assert [row[1] for row in advise.warnings(job(text), None)] == [rule]
    assert mistakes(text) == {}


@pytest.mark.parametrize(
    ("text", "place", "said"),
    [
        ("roles: {worker: {count: 4, min: 5}}", "roles.worker.min", "min <= workers <= max"),
        ("roles: {worker: {count: 4, max: 3}}", "roles.worker.max", "min <= workers <= max"),
        ("roles: {worker: {count: 2}, ps: {count: 1, min: 1}}", "roles.ps.min", "only workers"),
        ("roles: {worker: {count: 2, min: 1}, ps: {count: 1}}", "roles.worker.min", "MultiWorkerMirroredStrategy"),
    ],
)
def test_a_range_of_workers_that_cannot_be_is_refused(text, place, said):
    assert said in mistakes(text)[place]
