"""From text to config, with the place of every complaint; the package alone under `python -S -E`."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import phalanx
from phalanx.names import TaskId
from phalanx.tfconfig import Severity, parse
from phalanx.tfconfig.jsontext import read
from phalanx.tfconfig.tolerant import DEPTH, Reader

GOOD = '{"cluster": {"worker": ["a:2222", "b:2222"]}, "task": {"type": "worker", "index": 1}}'


def errors(text: str) -> list[tuple[str, int, int]]:
    return [(f.id, f.place.line, f.place.column) for f in parse(text).findings if f.severity is Severity.ERROR]


def test_a_good_text_becomes_a_config() -> None:
    parsed = parse(GOOD, path="x.json")
    assert parsed.findings == ()
    assert parsed.config is not None
    assert parsed.config.cluster is not None
    assert parsed.config.cluster.jobs == {"worker": {0: "a:2222", 1: "b:2222"}}
    assert parsed.config.task == TaskId("worker", 1)
    assert parsed.raw == json.loads(GOOD)


def test_white_space_around_it_is_fine_f03() -> None:
    assert parse(f" \r\n{GOOD}\t \n").findings == ()


def test_a_variable_that_is_not_set_is_an_empty_config() -> None:
    parsed = parse(None, path="$TF_CONFIG")
    assert (parsed.text, parsed.findings) == (None, ())
    assert parsed.config is not None
    assert (parsed.config.cluster, parsed.config.task) == (None, None)


def test_extra_keys_are_kept() -> None:
    config = parse('{"cluster": {}, "trial": 3, "job": {"a": [1]}}').config
    assert config is not None
    assert config.extra == {"trial": 3, "job": {"a": [1]}}


def test_the_sparse_form_keeps_its_indices_r12() -> None:
    config = parse('{"cluster": {"worker": {"1": "w1:2222"}}, "task": {"type": "worker", "index": 1}}').config
    assert config is not None
    assert config.cluster is not None
    assert (config.cluster.jobs, config.cluster.sparse) == ({"worker": {1: "w1:2222"}}, {"worker"})


@pytest.mark.parametrize(
    ("text", "rule", "line", "column"),
    [
        ("", "json-empty", 1, 1),
        (" \n ", "json-empty", 1, 1),
        ("\ufeff{}", "json-bom", 1, 1),
        ("TF_CONFIG={}", "json-assignment", 1, 1),
        ('export TF_CONFIG={"a": 1}', "json-assignment", 1, 1),
        ("'{\"a\": 1}'", "json-shell-quotes", 1, 1),
        ('"{"a": 1}"', "json-shell-quotes", 1, 1),
        ("{'a': 1}", "json-single-quotes", 1, 2),
        ("{u'a': 1}", "json-single-quotes", 1, 2),
        ("{“a”: 1}", "json-smart-quotes", 1, 2),
        ("{a: 1}", "json-unquoted", 1, 2),
        ('{"a": h1:2222}', "json-unquoted", 1, 7),
        ('{\n  "a": [\n    1,\n  ]\n}', "json-trailing-comma", 3, 6),
        ('{"a": 1,}', "json-trailing-comma", 1, 8),
        ('{"a": 1 "b": 2}', "json-missing-comma", 1, 9),
        ('["a" "b"]', "json-missing-comma", 1, 6),
        ("[1,,2]", "json-comma", 1, 4),
        ("[,1]", "json-comma", 1, 2),
        ('{"a" = 1}', "json-colon", 1, 6),
        ('{"a" 1}', "json-colon", 1, 4),
        ('{"a":}', "json-syntax", 1, 5),
        ('{"a"::1}', "json-syntax", 1, 5),
        ('{"a": 1 // one\n}', "json-comment", 1, 9),
        ("/* two\nlines */ {}", "json-comment", 1, 1),
        ("# x\n{}", "json-comment", 1, 1),
        ('{"a": None}', "json-python-literal", 1, 7),
        ('{"a": True}', "json-python-literal", 1, 7),
        ('{"a": 01}', "json-number", 1, 7),
        ('{"a": +1}', "json-number", 1, 7),
        ('{"a": 0x1F}', "json-number", 1, 7),
        ('{"a": .5}', "json-number", 1, 7),
        ('{"a": 1,\n "a": 2}', "json-duplicate-key", 2, 2),
        ('{"a": "b}', "json-unterminated", 1, 7),
        ('{"a": "b\n"}', "json-unterminated", 1, 7),
        ('{"a": [1', "json-unterminated", 1, 7),
        ('{"a": 1', "json-unterminated", 1, 1),
        ('{"a": [1}', "json-bracket", 1, 9),
        ('{"a": "\t"}', "json-control", 1, 8),
        (r'{"a": "\d"}', "json-escape", 1, 8),
        ('{"a":\u00a01}', "json-space", 1, 6),
        ("{} x", "json-trailing-text", 1, 4),
        ("{}\n}", "json-trailing-text", 2, 1),
        ("[" * (DEPTH + 1), "json-depth", 1, DEPTH + 1),
        ('{"a": %s}' % ("1" * 5000), "json-number", 1, 7),
        ('{"a": ;}', "json-unquoted", 1, 7),
        ("{]", "json-bracket", 1, 2),
    ],
)
def test_syntax_is_complained_about_at_its_place_f02(text: str, rule: str, line: int, column: int) -> None:
    assert (rule, line, column) in [(f.id, f.place.line, f.place.column) for f in parse(text).findings]


def test_nan_is_a_warning_for_python_reads_it() -> None:
    found = parse('{"cluster": {}, "x": NaN}').findings
    assert [(f.id, f.severity, f.place.column) for f in found] == [("json-constant", Severity.WARNING, 22)]


def test_three_mistakes_are_three_findings_at_once_r18() -> None:
    text = "{'cluster': {'ps': '', 'worker': 'a:2222,b:2222'}, 'task': {'type': 'worker', 'index': 0}}"
    assert errors(text) == [("json-single-quotes", 1, 2), ("job-empty-string", 1, 20), ("job-string", 1, 34)]


def test_one_habit_is_one_finding_with_its_number() -> None:
    found = parse("{'a': 'b'}").findings
    assert [f.message for f in found] == ["single quotes; JSON knows only double ones (here and at 1 more place)"]


def test_a_cut_off_text_is_not_guessed_at() -> None:
    parsed = parse('{"cluster": {"worker": ["a:1", "b')
    assert parsed.config is None
    assert [f.id for f in parsed.findings] == ["json-unterminated"]


def test_what_the_writer_meant_is_kept_where_it_is_plain() -> None:
    config = parse(GOOD.replace('"', "'")).config
    assert config == parse(GOOD).config


def test_the_last_of_two_equal_keys_counts_as_for_tensorflow_f29() -> None:
    parsed = parse('{"cluster": {"worker": ["a:1"], "worker": ["b:1"]}, "task": {"type": "worker", "index": 0}}')
    assert errors(str(parsed.text)) == [("json-duplicate-key", 1, 33)]
    assert "line 1 column 14" in parsed.findings[0].message
    assert parsed.config is not None
    assert parsed.config.cluster is not None
    assert parsed.config.cluster.jobs == {"worker": {0: "b:1"}}


@pytest.mark.parametrize(
    ("pointer", "line", "column", "length"),
    [
        ("", 1, 1, 1),
        ("/cluster", 2, 14, 1),
        ("/cluster/worker/1", 3, 26, 8),
        ("/cluster/a~1b~0c/0", 4, 16, 5),
        ("/cluster/worker/9", 3, 15, 20),
        ("/nothing/here", 1, 1, 1),
    ],
)
def test_a_pointer_has_a_place_the_nearest_above_where_it_leads_nowhere(
    pointer: str, line: int, column: int, length: int
) -> None:
    text = '{\n  "cluster": {\n    "worker": ["a:2222", "b:2222"],\n    "a/b~c": [ "x:1" ]\n  }\n}'
    place = parse(text).place(pointer)
    assert (place.line, place.column, place.length) == (line, column, length)


def test_a_key_has_a_place_of_its_own() -> None:
    place = parse('{"cluster": {"worker": []}}').place("/cluster/worker", key=True)
    assert (place.column, place.length) == (14, 8)


@pytest.mark.parametrize("text", ["[]", "5", "null", '"x"', "true"])
def test_what_is_no_object_is_not_understood(text: str) -> None:
    assert parse(text).config is None
    assert errors(text) == [("not-object", 1, 1)]


def test_json_inside_a_json_text_is_recognised() -> None:
    assert errors(json.dumps(GOOD)) == [("double-encoded", 1, 1)]


def test_a_long_list_of_the_same_fault_is_cut_short_and_counted() -> None:
    found = parse(json.dumps({"cluster": {"worker": [1] * 1000}})).findings
    assert len(found) == 20
    assert found[-1].message.endswith("(and 980 more like it)")


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=20,
)


@given(JSON, st.sampled_from([None, 2]), st.booleans())
def test_both_readers_agree_on_every_json(value: object, indent: int | None, ascii_only: bool) -> None:
    text = json.dumps(value, indent=indent, ensure_ascii=ascii_only)
    reader = Reader(text)
    assert reader.read() == (value, True)
    assert reader.complaints == []


ALMOST = st.text(alphabet=list("{}[]\"':,= \n\t\\/#*ua1.-NTn\ufeff\u00a0“\ud800"), max_size=40)


@given(ALMOST | st.text(max_size=60))
@example("'\\")
@example("{u'")
def test_the_tolerant_reader_complains_where_json_would_refuse(text: str) -> None:
    document = read(text)
    try:
        json.loads(text)
        sound = True
    except (ValueError, RecursionError):
        sound = False
    assert sound or document.complaints
    assert "json-syntax" not in {c.id for c in document.complaints if c.message.startswith("JSON readers stop here")}


@given(ALMOST | st.text() | JSON.map(json.dumps))
def test_parse_never_raises(text: str) -> None:
    parsed = parse(text)
    assert all(f.place.line >= 1 and f.place.column >= 1 and f.place.length >= 1 for f in parsed.findings)


@pytest.mark.parametrize("text", ["[" * 200_000, '{"a":' * 100_000, '{"cluster":' + "[" * 900 + "]" * 900 + "}"])
def test_nesting_without_end_is_refused_not_crashed_on(text: str) -> None:
    assert "json-depth" in {f.id for f in parse(text).findings}


def test_the_library_imports_with_nothing_but_the_standard_library() -> None:
    source = Path(phalanx.__file__).parents[1]
    code = (
        f"import sys; sys.path.insert(0, {str(source)!r}); from phalanx import tfconfig; "
        "cluster = tfconfig.Cluster.dense({'worker': ['a:2222', 'b:2222']}); "
        "text = tfconfig.generate(cluster, tfconfig.TaskId('worker', 1)); "
        "print(tfconfig.check(text), tfconfig.fix(text).changes)"
    )
    ran = subprocess.run([sys.executable, "-S", "-E", "-c", code], capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "() ()\n", "")
