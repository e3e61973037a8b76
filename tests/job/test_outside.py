"""Roles of one's own, and `command: server`: what is refused, at its place and with what to do."""

from __future__ import annotations

from pathlib import Path

import pytest

from phalanx.job import advise
from phalanx.job.complaint import dotted
from phalanx.job.dump import to_yaml
from phalanx.job.load import parse
from phalanx.job.resolve import resolve
from phalanx.plan.outline import Failure, Interpreter
from phalanx.plan.own import SERVER, found_here


def job(text: str):
    return parse(f"command: [train.py]\n{text}", "job.yaml").job


def mistakes(text: str) -> dict[str, str]:
    return {dotted(loc): said for loc, said in advise.mistakes(job(text))}


@pytest.mark.parametrize(
    ("text", "place", "said"),
    [
        ("roles: {worker: {port: on}}", "roles.worker.port", "TF_CONFIG tells the address of a worker"),
        ("roles: {evaluator: {port: on}}", "roles.evaluator.port", "TF_CONFIG tells the address of an evaluator"),
        ("roles: {evaluator: {failure: group}}", "roles.evaluator.failure", "the failure of an evaluator"),
        ("roles: {ps: {failure: group}}", "roles.ps.failure", "follows from the strategy"),
        ("roles: {run: {command: [x], port: on}}", "roles.run", "{run} means something else"),
        ("roles: {address: {command: [x], port: on}}", "roles.address", "give the role another name"),
        (
            "strategy: none\nroles: {hub: {command: [x], port: on, in_cluster: true}}",
            "roles.hub.port",
            "leave out port or in_cluster",
        ),
        (
            'roles: {hub: {command: [x]}, worker: {command: [a.py, "--at={hub}"]}}',
            "roles.worker.command[1]",
            "say `port: on` in roles.hub",
        ),
        ('roles: {hub: {command: [x, "{port}"]}}', "roles.hub.command[1]", "{port} stands for an address"),
        ('env: {H: "{hub}"}\nroles: {hub: {command: [x]}}', "env.H", "hub has none"),
        ("roles: {hub: {command: [x], port: on, count: 1001}}", "roles.hub.port", "1,000 at most"),
        ("roles: {worker: {command: server}}", "roles.worker.command", "a worker beside a ps"),
        ("roles: {ps: {}, chief: {command: server}}", "roles.chief.command", "only a worker or a ps"),
        ("roles: {ps: {}, hub: {command: server}}", "roles.hub.command", "only a worker or a ps"),
        ("roles: {ps: {}, evaluator: {command: server}}", "roles.evaluator.command", "name a script"),
    ],
)
def test_what_cannot_work_is_said_at_its_place(text, place, said):
    found = mistakes(text)
    assert said in found[place]


@pytest.mark.parametrize(
    "text",
    [
        'roles: {worker: {command: [a.py, "{lr}", "{port}"]}, hub: {command: [x], failure: ignore}}',
        'roles: {hub: {command: [x, "{port}", "{address}", "{hub}"], port: on, count: 1000}}',
        "roles: {ps: {command: server}, worker: {command: server, count: 2}}",
        "strategy: ps\nroles: {ps: {count: 1}, worker: {command: server}}",
    ],
)
def test_what_works_is_left_alone(text):
    assert mistakes(text) == {}


def outline(text: str):
    return resolve(job(text), cwd="/work", interpreter=Interpreter(path="/py"), environ={})


def test_server_is_our_own_program_under_the_jobs_interpreter():
    made = outline("roles: {ps: {command: server}, worker: {count: 2}}")
    assert made.role("ps").command == ("/py", SERVER)
    assert made.role("worker").command == ("/py", "train.py")
    program, found = found_here(made.role("ps").command)
    assert program == "/py"
    assert "tf.distribute.Server(" in Path(found).read_text(encoding="utf-8")


def test_a_job_with_server_is_kept_as_it_was_written():
    text = to_yaml(job("roles: {ps: {command: server}}"))
    assert "command: server" in text
    assert to_yaml(parse(text, "job.yaml").job) == text


def test_a_role_of_ones_own_falls_alone_unless_it_says_otherwise():
    made = outline("roles: {hub: {command: [x], port: on}, cache: {command: [x], failure: group}}")
    assert (made.role("hub").failure, made.role("hub").port) == (Failure.ALONE, True)
    assert made.role("cache").failure is Failure.GROUP
    assert not made.role("hub").in_cluster
