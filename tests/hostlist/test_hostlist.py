"""Slurm's host lists, both ways."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from phalanx.hostlist import expand, fold


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("n1", ["n1"]),
        ("n[1-2],m5,o[3-4,6,7-9]", ["n1", "n2", "m5", "o3", "o4", "o6", "o7", "o8", "o9"]),  # R56
        ("nodes[006,011]", ["nodes006", "nodes011"]),  # R57
        ("n[08-10]", ["n08", "n09", "n10"]),
        ("gpu-[1-2]-[01-03]", [f"gpu-{a}-0{b}" for a in (1, 2) for b in (1, 2, 3)]),
        ("a[1-2].rack[3]", ["a1.rack3", "a2.rack3"]),
        (" a , b ", ["a", "b"]),
    ],
)
def test_a_list_stands_for_these_names(text, names):
    assert list(expand(text)) == names


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("n[1-2", "not closed"),
        ("n1-2]", "do not match"),
        ("n[[1]]", "do not match"),
        ("n[2-1]", "downwards"),
        ("n[a-b]", "no number or range"),
        ("n[]", "no number or range"),
        ("a,,b", "missing between commas"),
        ("", "missing between commas"),
        ("n[1-99999999999]", "more than 100000"),
        ("n[1-999][1-999]", "more than 100000"),
    ],
)
def test_a_faulty_list_is_refused_with_its_part(text, part):
    with pytest.raises(ValueError, match=part):
        expand(text)


@pytest.mark.parametrize(
    ("names", "text"),
    [
        (["n001", "n002", "n003", "n007"], "n[001-003,007]"),
        (["n9", "n10"], "n[9-10]"),
        (["n09", "n10", "gw"], "n[09-10],gw"),
        (["n1"], "n1"),
        (["n2", "n1"], "n[2,1]"),
        (["n1", "n01"], "n[1,01]"),
        (["a1.x", "a2.x"], "a[1-2].x"),
    ],
)
def test_names_fold_into_runs(names, text):
    assert fold(names) == text
    assert list(expand(text)) == names


NAMES = st.lists(
    st.from_regex(r"[a-z]{0,2}[0-9]{0,3}[a-z.-]{0,2}[0-9]{0,4}x?", fullmatch=True).filter(bool), min_size=1
)


@given(NAMES)
def test_whatever_is_folded_expands_to_itself(names):
    assert list(expand(fold(names))) == names


@given(st.text("n[]-,01 ", max_size=12))
def test_no_text_does_more_than_be_refused(text):
    refused = ""
    try:
        names = expand(text)
    except ValueError as wrong:
        names, refused = (), str(wrong)
    assert bool(names) is not bool(refused)
