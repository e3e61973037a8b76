"""Manifests as files for Git: stable bytes, no secret, read alike by every YAML reader, nobody else's file touched."""

from __future__ import annotations

import io
import json
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ruamel.yaml import YAML

from incluster import made, static
from phalanx.engine.kubernetes import render
from phalanx.engine.kubernetes.text import document
from phalanx.errors import InputError

JOB = "roles: {worker: {count: 2}, evaluator: {}}\non: {kubernetes: {rbac: none}}\n"


def read(text: str):
    return list(YAML(typ="safe", pure=True).load_all(io.StringIO(text)))


def test_the_files_hold_the_objects_in_the_order_in_which_kubectl_applies_them(tmp_path):
    manifests = made(tmp_path, JOB)
    texts = render.files(manifests)
    applied = [one for name in sorted(texts) if name.endswith(".yaml") for one in read(texts[name])]
    assert sorted(map(json.dumps, applied)) == sorted(map(json.dumps, manifests))
    assert [one["kind"] for one in applied][-2:] == ["Job", "Job"]
    kustomization = read(texts["Kustomization"])[0]
    assert kustomization["resources"] == sorted(name for name in texts if name.endswith(".yaml"))


def test_the_files_without_an_agent_say_what_is_lost(tmp_path, golden):
    texts = render.files(static(tmp_path, JOB), remarks=["one thing", "another"])
    golden("kubernetes/static-jobs.yaml", texts["5-jobs.yaml"])
    golden("kubernetes/static-run.yaml", texts["4-run.yaml"])
    assert set(texts) == {"4-run.yaml", "5-jobs.yaml", "Kustomization"}


#: Lone surrogates are no part of YAML, and of no manifest.
TEXT = st.text(st.characters(codec="utf-8", exclude_categories=("Cs",)))
VALUE = st.recursive(
    st.none() | st.booleans() | st.integers() | TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=20,
)


@given(st.dictionaries(TEXT, VALUE, min_size=1, max_size=5))
def test_what_is_written_is_what_is_read(value):
    assert read(document(value)) == [value]


@pytest.mark.parametrize(
    "word", ["yes", "on", "No", "~", "null", "0755", "1e3", "12:30", "0x1f", "1_000", "=", "2026-11-30", ""]
)
def test_text_that_some_reader_would_take_for_something_else_is_quoted(word):
    assert document({"a": word}) == f'a: "{word}"\n'


def test_a_folder_written_twice_is_the_same(tmp_path):
    texts = render.files(made(tmp_path, JOB))
    render.write(tmp_path / "k8s", texts)
    before = {path.name: path.read_bytes() for path in (tmp_path / "k8s").iterdir()}
    render.write(tmp_path / "k8s", texts)
    assert {path.name: path.read_bytes() for path in (tmp_path / "k8s").iterdir()} == before


def test_what_an_earlier_rendering_left_over_goes_and_what_is_not_ours_stays(tmp_path):
    folder = tmp_path / "k8s"
    render.write(folder, render.files(made(tmp_path, JOB)))
    (folder / "README.md").write_text("ours\n")
    render.write(folder, render.files(static(tmp_path, JOB)))
    assert {path.name for path in folder.iterdir()} == {"4-run.yaml", "5-jobs.yaml", "Kustomization", "README.md"}


def test_a_file_of_somebody_elses_stops_the_rendering_before_anything_is_written(tmp_path):
    folder = tmp_path / "k8s"
    folder.mkdir()
    (folder / "5-jobs.yaml").write_text("kind: Job\n")
    with pytest.raises(InputError, match="not one of phalanx's own files"):
        render.write(folder, render.files(made(tmp_path, JOB)))
    assert [path.name for path in folder.iterdir()] == ["5-jobs.yaml"]


@pytest.mark.real
def test_the_verb_writes_the_folder_and_names_the_next_step(tmp_path):
    (tmp_path / "job.yaml").write_text(
        "command: [python, train.py]\nname: digits\nimage: a/b@sha256:1\non: {kubernetes: {namespace: ml}}\n"
    )
    done = [
        subprocess.run(
            [sys.executable, "-m", "phalanx", "render", "job.yaml", "-o", folder],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=60,
            check=True,
        )
        for folder in ("one", "two")
    ]
    assert done[0].stdout == "6 files in one; kubectl apply -f one starts the run digits\n"
    one, two = ({p.name: p.read_bytes() for p in (tmp_path / name).iterdir()} for name in ("one", "two"))
    assert one == two
    assert set(one) == {"1-access.yaml", "2-key.yaml", "3-agent.yaml", "4-run.yaml", "5-jobs.yaml", "Kustomization"}
    assert "\n\ndata" not in one["2-key.yaml"].decode()


@pytest.mark.real
def test_the_role_of_a_client_holds_that_of_the_lead():
    printed = subprocess.run(
        [sys.executable, "-m", "phalanx", "kubernetes", "rbac", "--namespace", "ml"],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    ).stdout
    [role] = read(printed)
    assert role["metadata"] == {"name": "phalanx-client", "namespace": "ml"}
    assert printed.startswith("# kubectl create rolebinding ")
