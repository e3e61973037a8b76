"""Whatever stands in a manifest, the import ends in a job or in mistakes with their lines."""

from __future__ import annotations

import copy
import json
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from phalanx.errors import InputError
from phalanx.job.complaint import JobFileError
from phalanx.job.importers.ledger import Spot
from phalanx.job.importers.read import imported
from phalanx.job.load import parse
from phalanx.job.tree import read_manifests

MANIFESTS = sorted((Path(__file__).parent / "manifests").iterdir())
SAID = [tree.value for path in MANIFESTS for tree in read_manifests(path.read_text(encoding="utf-8"), path.name)]

TEXTS = ["", "a", "$(A)", "${A}", "<x>", "1", "500m", "Never", "worker", "on", "sh", "-c", "\n x", "{{", "TF_CONFIG"]
NAMES = (
    *("name", "value", "valueFrom", "secretKeyRef", "key", "image", "command", "args", "env", "limits", "cpu", "a.b/c"),
    *("spec", "template", "containers", "replicas", "metadata", "labels", "restartPolicy", "emptyDir", "task", ""),
)
SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 70_000),
    st.floats(allow_nan=False),
    st.sampled_from(TEXTS),
    st.text(max_size=12),
)
KEYS = st.sampled_from(NAMES)
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=4), max_leaves=12
)


def places(value, loc=()):
    yield loc
    for key in value if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ():
        yield from places(value[key], (*loc, key))


@st.composite
def damaged(draw):
    """A manifest of ours in which some values are others."""
    made = copy.deepcopy(draw(st.sampled_from(SAID)))
    for _ in range(draw(st.integers(1, 3))):
        loc = draw(st.sampled_from([one for one in places(made) if len(one) > 1]))
        found = made
        for part in loc[:-1]:
            found = found[part]
        found[loc[-1]] = draw(VALUES)
    return made


def ends_well(text: str) -> None:
    try:
        found = imported(text, "a.yaml", entrypoint=("python", "train.py"))
    except JobFileError as refused:
        complaints = refused.complaints
    except InputError:
        return
    else:
        for job in found.jobs:
            assert parse(job.text, "job.yaml").job.command
        return
    lines = len(text.splitlines()) + 1
    assert all(one.source == "a.yaml" and 1 <= (one.line or 1) <= lines for one in complaints)


@settings(max_examples=400, deadline=None)
@given(damaged())
def test_a_damaged_manifest_ends_in_a_job_or_in_mistakes_with_their_lines(manifest):
    ends_well(json.dumps(manifest, indent=1))


@settings(max_examples=100, deadline=None)
@given(
    st.dictionaries(KEYS, VALUES, max_size=5), st.sampled_from(["TFJob", "Job", "Pod", "StatefulSet", "List", "Secret"])
)
def test_any_mapping_ends_in_a_job_or_in_mistakes_with_their_lines(value, kind):
    group = {"TFJob": "kubeflow.org/v1", "StatefulSet": "apps/v1", "Job": "batch/v1"}.get(kind, "v1")
    for version in (group, "batch.volcano.sh/v1alpha1"):
        ends_well(json.dumps({"apiVersion": version, "kind": kind, **value}))


@settings(max_examples=100, deadline=None)
@given(st.text(max_size=60))
def test_any_text_is_a_mistake_with_its_line(text):
    ends_well(text)


def test_the_value_below_a_place_that_is_not_there_is_none():
    [tree] = read_manifests("a: [1]", "a.yaml")
    spot = Spot(tree=tree, loc=(), value=tree.value)
    assert spot.down("a", 3, "b").value is None
    assert spot.down("a", 3).line == 1
