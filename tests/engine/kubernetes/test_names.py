"""Every name fits with all its suffixes, or nothing is made (R33, R34)."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from incluster import made, pods, static
from phalanx.engine.kubernetes.names import Names, check
from phalanx.errors import InputError
from phalanx.plan.outline import Outline, Role, Strategy

_DNS_1035 = re.compile(r"[a-z]([a-z0-9-]*[a-z0-9])?")
_LABEL_VALUE = re.compile(r"(([A-Za-z0-9][A-Za-z0-9_.-]*)?[A-Za-z0-9])?")


def an_outline(*roles: tuple[str, int]) -> Outline:
    made_of = tuple(Role(type=kind, count=count, command=("true",), per_host=1) for kind, count in roles)
    return Outline(name="job", roles=made_of, strategy=Strategy.NONE, cwd="", hosts=sum(count for _, count in roles))


def test_a_name_that_fits_alone_and_not_with_its_suffixes_is_refused_with_the_room_there_is():
    outline = an_outline(("worker", 2), ("evaluator", 1))
    with pytest.raises(InputError, match=r"x-evaluator-0 has 64 characters, and Kubernetes takes 63") as caught:
        check(Names(run="x" * 52), outline)
    assert "called by 51 characters here" in caught.value.hint
    assert caught.value.exit_code == 2
    check(Names(run="x" * 51), outline)


@pytest.mark.parametrize("run", ["a.b", "1st", "-a", "a-", "A", "a_b", "", "ä"])
def test_a_name_that_no_service_can_have_is_refused(run):
    with pytest.raises(InputError, match="cannot be the name of a run on Kubernetes"):
        check(Names(run=run), an_outline(("worker", 1)))


def test_a_job_set_leaves_less_room():
    outline = an_outline(("worker", 10))
    check(Names(run="x" * 54), outline)
    with pytest.raises(InputError):
        check(Names(run="x" * 54, jobset=True), outline)


def test_a_role_that_may_grow_is_measured_at_its_largest():
    role = Role(type="worker", count=2, max=2000, command=("true",))
    outline = Outline(name="job", roles=(role,), strategy=Strategy.MWMS, cwd="")
    with pytest.raises(InputError, match="worker-1999 has 64"):
        check(Names(run="x" * 52), outline)


def every_name(manifests):
    for one in manifests:
        yield one["kind"], one["metadata"]["name"]
        if one["kind"] == "Job":
            yield "Pod", f"{one['metadata']['name']}-{one['spec']['completions'] - 1}"


RUNS = st.from_regex(r"[a-z]([a-z0-9-]{0,70}[a-z0-9])?", fullmatch=True)


@settings(max_examples=60, deadline=None)
@given(run=RUNS, workers=st.integers(1, 2000), jobset=st.booleans(), ps=st.integers(0, 3))
def test_names_fit_or_are_refused(tmp_path_factory, run, workers, jobset, ps):
    text = f"roles: {{worker: {{count: {workers}}}, ps: {{count: {ps}}}}}\n"
    text += f"on: {{kubernetes: {{rbac: none, jobset: {'on' if jobset else 'off'}}}}}\n"
    for make in (made, static):
        try:
            manifests = make(tmp_path_factory.mktemp("job"), text, run=run)
        except InputError as wrong:
            assert "characters" in str(wrong)  # noqa: PT017 - one of two outcomes
            assert len(run) > 63 - len("-evaluator-0-1999-xxxxx")
            continue
        for kind, name in every_name(manifests):
            assert _DNS_1035.fullmatch(name), name
            assert len(name) <= (63 if kind in ("Pod", "Service", "Job", "JobSet") else 253)
        for pod in pods(manifests).values():
            assert all(_LABEL_VALUE.fullmatch(of) and len(of) <= 63 for of in pod["metadata"]["labels"].values())


@settings(max_examples=40, deadline=None)
@given(
    workers=st.integers(1, 5000),
    agent=st.integers(0, 2_000_000),
    words=st.lists(
        st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=200), max_size=20
    ),
)
def test_every_object_keeps_below_its_limit(tmp_path_factory, workers, agent, words):
    import json  # noqa: PLC0415 - as YAML has it

    text = f"command: {json.dumps(['run', *words])}\nroles: {{worker: {{count: {workers}}}}}\n"
    try:
        manifests = made(tmp_path_factory.mktemp("job"), text + "on: {kubernetes: {rbac: none}}\n", agent=b"x" * agent)
    except InputError:  # a word that looks like a secret
        return
    for one in manifests:
        # What `kubectl apply` writes into an annotation of the object itself.
        assert len(json.dumps(one, separators=(",", ":"))) < 262_144
