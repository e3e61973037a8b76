"""The job.yaml that `phalanx init` writes is one that runs."""

from __future__ import annotations

import re

import pytest

from phalanx.job import advise
from phalanx.job.load import parse
from phalanx.job.starter import starter

SCRIPTS = {
    "plain": None,
    "mwms": ("mwms", "MultiWorkerMirroredStrategy"),
    "ps": ("ps", "ParameterServerStrategy"),
    "estimator": ("estimator", "train_and_evaluate"),
}


@pytest.mark.parametrize("kind", SCRIPTS)
def test_the_file_is_what_it_was(golden, kind):
    golden(f"job/init-{kind}.yaml", starter(["python", "train.py"], strategy=SCRIPTS[kind]))


@pytest.mark.parametrize("kind", SCRIPTS)
def test_the_file_is_accepted_as_it_is(kind):
    job = parse(starter(["python", "train.py", "--lr", "1e-3"], strategy=SCRIPTS[kind]), "job.yaml").job
    assert job.command == ["python", "train.py", "--lr", "1e-3"]
    assert not list(advise.refusals(job, None))
    assert not list(advise.mistakes(job))


@pytest.mark.parametrize("kind", SCRIPTS)
def test_every_commented_field_is_a_field(kind):
    text = starter(["python", "train.py"], strategy=SCRIPTS[kind])
    opened = re.sub(r"^( *)# (?=[a-z_]+: )", r"\1", text, flags=re.MULTILINE)
    job = parse(opened, "job.yaml").job
    assert {
        "env",
        "secrets",
        "checkpoint",
        "outputs",
        "health",
        "grace",
        "hosts",
        "ports",
        "python",
        "runtime",
        "image",
        "on",
    } <= job.model_fields_set
    assert not list(advise.refusals(job, None))
