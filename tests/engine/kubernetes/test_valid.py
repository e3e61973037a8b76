"""What is rendered is what API servers take: by the schemas of the three newest minors, unknown fields refused."""

from __future__ import annotations

from pathlib import Path

import pytest
from kubernetes_validate import ValidationError, latest_version, validate
from ruamel.yaml import YAML

GOLDEN = Path(__file__).parents[2] / "golden" / "kubernetes"

#: Objects of what others install: no API server has their schema by itself.
OTHERS = {"jobset.x-k8s.io/v1alpha2", "scheduling.volcano.sh/v1beta1", "scheduling.x-k8s.io/v1alpha1"}

NEWEST = latest_version()
MINORS = [f"1.{int(NEWEST.split('.')[1]) - back}" for back in range(3)]
FILES = sorted(path.name for path in GOLDEN.glob("*.yaml"))


def documents(name: str):
    return [one for one in YAML(typ="safe", pure=True).load_all((GOLDEN / name).read_text(encoding="utf-8")) if one]


@pytest.mark.parametrize("minor", MINORS)
@pytest.mark.parametrize("name", FILES)
def test_every_object_is_as_the_api_wants_it(name, minor):
    for one in documents(name):
        if one["apiVersion"] not in OTHERS:
            validate(one, minor, strict=True)


@pytest.mark.parametrize("minor", MINORS)
def test_the_jobs_of_a_job_set_are_as_the_api_wants_them(minor):
    [jobset] = [one for one in documents("jobset.yaml") if one["kind"] == "JobSet"]
    for one in jobset["spec"]["replicatedJobs"]:
        job = {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": {"name": one["name"]},
            "spec": one["template"]["spec"],
        }
        validate(job, minor, strict=True)


def test_a_field_that_no_api_knows_would_be_found():
    [job] = [one for one in documents("mwms.yaml") if one["kind"] == "Job"]
    job["spec"]["template"]["spec"]["containers"][0]["comand"] = []
    with pytest.raises(ValidationError, match="comand"):
        validate(job, NEWEST, strict=True)
