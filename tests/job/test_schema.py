"""The schema an editor checks with agrees with the model that decides."""

from __future__ import annotations

import json

import jsonschema
import pytest
from ruamel.yaml import YAML

from phalanx.job import schema
from phalanx.job.complaint import JobFileError
from phalanx.job.load import parse


@pytest.fixture(scope="module")
def validator():
    made = schema.schema()
    jsonschema.Draft202012Validator.check_schema(made)
    return jsonschema.Draft202012Validator(made)


def test_the_schema_is_what_it_was(golden):
    golden("job/phalanx.schema.json", schema.text())


def fields(part, path=""):
    for name, field in part.get("properties", {}).items():
        yield f"{path}{name}", field


def test_every_field_says_what_it_is_and_its_default():
    made = schema.schema()
    parts = {"": made, **{f"{name}.": part for name, part in made["$defs"].items()}}
    described = {
        name: field.get("description", "") for path, part in parts.items() for name, field in fields(part, path)
    }
    assert [name for name, said in described.items() if not said.endswith(".")] == []
    optional = {
        name
        for name in described
        if name.split(".")[0] not in ("On", "Secret", "SecretSource") and "roles." not in name
    }
    assert [name for name in sorted(optional) if "efault" not in described[name] and name not in _GROUPS] == []


#: Their parts have the defaults; a required field has none.
_GROUPS = {"command", "health", "grace", "on"}


ACCEPTED = [
    "command: [train.py]",
    "command: [train.py]\nroles: {worker: {count: 2, memory: 32Gi}, board: {command: [x]}}",
    "command: [train.py]\nhealth: {start: 90, finish: 1h30m}\nruntime: off\nports: 22000-22099",
    "command: [train.py]\nsecrets: [{name: a, env: A, from: {env: B}}]\non: {slurm: {time: '12:00:00'}}",
    "command: [train.py]\nhealth: {start: '12:30:00'}\ngrace: {failure: 0.5}",
]
REFUSED = [
    "name: x",
    "command: train.py",
    "command: []",
    "command: [train.py]\nwrokers: 3",
    "command: [train.py]\nroles: {worker: {count: -1}}",
    "command: [train.py]\nroles: {Worker: {}}",
    "command: [train.py]\nroles: {worker: 4}",
    "command: [train.py]\nhealth: {start: soon}",
    "command: [train.py]\nstrategy: mwsm",
    "command: [train.py]\nenv: {A: 3}",
    "command: [train.py]\nports: all",
    "command: [train.py]\nruntime: maybe",
]


@pytest.mark.parametrize("text", ACCEPTED)
def test_what_the_model_takes_the_schema_takes(validator, text):
    parse(text, "job.yaml")
    assert validator.is_valid(YAML(typ="safe").load(text))


@pytest.mark.parametrize("text", REFUSED)
def test_what_the_schema_refuses_the_model_refuses(validator, text):
    assert not validator.is_valid(YAML(typ="safe").load(text))
    with pytest.raises(JobFileError):
        parse(text, "job.yaml")


def test_roles_that_tensorflow_knows_are_offered():
    assert set(json.loads(schema.text())["properties"]["roles"]["properties"]) == {"chief", "worker", "ps", "evaluator"}


@pytest.mark.parametrize(
    "text",
    [
        "command: [train.py]\nname:\nhealth:\nrestart: {within: }\nroles: {ps: {count: }}\nstrategy:\nenv:\nports:",
        "command: [train.py]\nhealth: {start: 5M, finish: ' 1h30m '}\nports: ' 22000 - 22099 '",
        "command: [train.py]\nroles: {worker: {memory: 512 MB}}\nrestart: {within: 31622400}",
    ],
)
def test_what_counts_as_unwritten_and_every_spelling_pass_the_schema(validator, text):
    test_what_the_model_takes_the_schema_takes(validator, text)


@pytest.mark.parametrize(
    "text",
    [
        "command: [train.py]\nenv: {A-B: x}",
        "command: [train.py]\nhealth: {start: 1m5h}",
        "command: [train.py]\nhealth: {start: 31622401}",
        "command: [1000000000000000000000000000000000]",
        "command: [train.py]\nroles: {%s: {}}" % ("a" * 41),
    ],
)
def test_what_the_model_refuses_the_schema_refuses(validator, text):
    test_what_the_schema_refuses_the_model_refuses(validator, text)
