"""YAML and JSON as plain values with places; nothing in a file can run, and no bomb goes off."""

from __future__ import annotations

import pytest

from phalanx.job.complaint import JobFileError
from phalanx.job.tree import read_manifests, read_tree


def refused(text: str, path: str = "job.yaml") -> str:
    with pytest.raises(JobFileError) as caught:
        read_tree(text, path)
    return str(caught.value)


def test_scalars_follow_yaml_12_and_never_surprise():
    text = "a: 0755\nb: off\nc: 12:30:00\nd: 1_000\ne: yes\nf: 2024-01-01\ng: 1e3\nh: ~\ni: True\nj: 'null'\nk: 0x1F\n"
    assert read_tree(text, "job.yaml").value == {
        "a": 755,
        "b": "off",
        "c": "12:30:00",
        "d": "1_000",
        "e": "yes",
        "f": "2024-01-01",
        "g": 1000.0,
        "h": None,
        "i": True,
        "j": "null",
        "k": 31,
    }


def test_a_yaml_11_header_changes_nothing():
    assert read_tree("%YAML 1.1\n---\na: 12:30:00\nb: yes\n", "job.yaml").value == {"a": "12:30:00", "b": "yes"}


def test_every_key_and_item_has_its_place():
    tree = read_tree("a: 1\nb:\n  c: [x, y]\n", "job.yaml")
    assert [tree.place(loc) for loc in [("a",), ("b", "c"), ("b", "c", 1)]] == [(1, 1), (3, 3), (3, 10)]


def test_what_the_file_does_not_have_stands_at_its_parent():
    assert read_tree("a: 1\nb:\n  c: 2\n", "job.yaml").place(("b", "nope", 3)) == (2, 1)


def test_scalars_keep_how_they_were_written():
    assert read_tree("a: 0755\n", "job.yaml").written[("a",)] == "0755"


def test_keys_written_twice_are_all_named_with_their_first_line():
    tree = read_tree("a: 1\na: 2\nb: 1\nb: 3\n", "job.yaml")
    assert [str(complaint) for complaint in tree.complaints] == [
        "job.yaml:2:1: `a` is written twice, first in line 1",
        "job.yaml:4:1: `b` is written twice, first in line 3",
    ]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a: [1\nb: 2", "job.yaml:1:4: the list that starts with `[` is not closed with `]`"),
        ("a: {b: 1\nc: 2", "job.yaml:1:4: the mapping that starts with `{` is not closed with `}`"),
        (
            "a: b: c\n",
            "job.yaml:1:5: this `:` comes as a surprise; quote the value, or indent the line as its neighbours",
        ),
        ("\ta: 1\n", "job.yaml:1:1: a tab indents this line; YAML wants spaces"),
        ("a: @x\n", "job.yaml:1:4: a value cannot start with `@`; quote it"),
        ("a: 'x\nb: 2\n", "job.yaml:1:4: a quote is opened and never closed"),
        ("a: *x\n", "job.yaml:1:4: `*x` refers to nothing; quote the value if it is meant as text"),
        ("a: 1\n---\nb: 1\n", "job.yaml:2:1: a second document starts here; one job a file"),
        (" a: 1\nb: 2\n", "job.yaml:2:1: this line is indented less than the first; all top keys start in one column"),
        ("- a\nb: 1\n", "job.yaml:2:1: this line is indented differently from the ones it belongs to"),
        ("\x01", "job.yaml:1:1: not YAML: unacceptable character #x0001: special characters are not allowed"),
    ],
)
def test_a_syntax_error_is_said_in_plain_words_at_its_place(text, said):
    assert refused(text) == said


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a: !!python/object/apply:os.system [x]\nb: !foo 3\n", "tag"),
        ("a: {<<: {b: 1}}\n", "`<<` (merge) is no part of YAML 1.2"),
        ("? [a]\n: 1\n", "a key must be one word"),
    ],
)
def test_what_goes_beyond_plain_values_is_refused(text, said):
    tree = read_tree(text, "job.yaml")
    assert said in str(tree.complaints[0])


def test_nothing_is_constructed_by_tag():
    tree = read_tree("a: !!python/object/apply:os.system ['exit 1']\n", "job.yaml")
    assert tree.value == {"a": ["exit 1"]}
    assert "not allowed" in str(tree.complaints[0])


def test_a_bomb_of_aliases_is_one_clear_error():
    layers = "".join(f"{chr(98 + i)}: &{chr(98 + i)} [{', '.join(['*' + chr(97 + i)] * 9)}]\n" for i in range(9))
    assert "more than 20000 values" in refused("a: &a [1, 1, 1, 1, 1, 1, 1, 1, 1]\n" + layers)


def test_a_value_that_contains_itself_is_one_clear_error():
    assert "nested too deeply" in refused("a: &a\n  b: *a\n")


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("[" * 500, "job.yaml"),
        ("[" * 50 + "]" * 50, "job.yaml"),
        ("- " * 9_000, "job.yaml"),
        ("[" * 99_999, "job.json"),
    ],
)
def test_deep_nesting_is_one_clear_error(text, path):
    assert "nested too deeply" in refused(text, path)


def test_aliases_are_welcome():
    assert read_tree("a: &x [1]\nb: *x\n", "job.yaml").value == {"a": [1], "b": [1]}


def test_json_is_read_with_its_places_tabs_and_escapes():
    tree = read_tree('{"a":\t1,\n\t"b": ["x\\ty", "\\ud83d\\ude00\\/"]}', "job.json")
    assert tree.value == {"a": 1, "b": ["x\ty", "😀/"]}
    assert tree.place(("b", 1)) == (2, 16)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"a": 1,}', "job.json:1:9: not JSON"),
        ("a: 1", "job.json:1:1: not JSON"),
    ],
)
def test_what_is_no_json_is_refused_even_where_it_is_yaml(text, said):
    assert refused(text, "job.json").startswith(said)


def test_json_keys_written_twice_are_named():
    assert "`a` is written twice" in str(read_tree('{"a": 1, "a": 2}', "job.json").complaints[0])


def test_a_folded_text_has_blanks_where_its_lines_were_joined_and_nothing_else():
    tree = read_tree("a: >-\n  one\n  two\n", "job.yaml")
    assert tree.value == {"a": "one two"}
    assert tree.written["a",] == "one two"


def test_a_list_of_all_jobs_of_a_cluster_is_longer_than_any_job_file():
    [tree] = read_manifests("a: [" + "1," * 20_500 + "]", "jobs.yaml")
    assert len(tree.value["a"]) == 20_500


def test_manifests_are_read_as_kubernetes_reads_them():
    text = "---\na: &x {b: yes, m: 0644, t: 'off'}\n---\n---\nc:\n  <<: {m: 1, n: 2}\n  m: 3\n"
    first, second = read_manifests(text, "jobs.yaml")
    assert first.value == {"a": {"b": True, "m": 0o644, "t": "off"}}
    assert second.value == {"c": {"m": 3, "n": 2}}
    assert second.place(("c", "m")) == (7, 3)
    with pytest.raises(JobFileError, match="nested too deeply"):
        read_manifests("a: &x {<<: *x}\n", "jobs.yaml")
