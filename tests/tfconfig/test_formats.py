from __future__ import annotations

import json
import re
from typing import Any

import pytest

from phalanx.tfconfig import formats
from phalanx.tfconfig.finding import Finding, Place, Severity

TEXT = '{"cluster": {"worker": ["a", "b:1"]}, "task": {"type": "worker", "index": 0}}'


def finding(**given: Any) -> Finding:
    usual = {
        "id": "address-port",
        "severity": Severity.ERROR,
        "message": '"a" has no port',
        "consequence": "TensorFlow raises InvalidArgumentError.",
        "fix": 'write "a:2222"',
        "source": "R16",
        "path": "node.json",
        "place": Place(line=1, column=25, length=3),
    }
    return Finding(**usual | given)


def test_text_underlines_the_place_and_counts(golden):
    warning = finding(id="task-x", severity=Severity.WARNING, message="odd", place=Place(line=1, column=39, length=6))
    golden("tfconfig/findings.txt", formats.as_text([finding(), warning], {"node.json": TEXT}))


def test_no_findings_are_no_text():
    assert formats.as_text([], {"node.json": TEXT}) == ""
    assert formats.tally([]) == "nothing found"


@pytest.mark.parametrize("column", [1, 30, 5_000, 99_990])
def test_a_long_line_is_cut_around_the_place(column):
    line = "".join(f"{n:<10}" for n in range(10_000))
    out = formats.as_text([finding(place=Place(line=1, column=column, length=5))], {"node.json": line}).split("\n")
    shown, under = out[1], out[2]
    assert len(shown) <= formats.WINDOW + len("    1 | ") + 2
    start = under.index("^")
    assert shown[start : start + under.count("^")].ljust(5) == line[column - 1 : column + 4]


def test_the_place_is_found_in_the_right_line_of_many():
    text = '{\n  "cluster": 3\n}\n'
    out = formats.as_text([finding(place=Place(line=2, column=14, length=1))], {"node.json": text}).split("\n")
    assert out[1:3] == ['    2 |   "cluster": 3', "      |" + " " * 14 + "^"]


def test_a_place_beyond_the_text_is_no_crash():
    out = formats.as_text([finding(place=Place(line=9, column=80, length=4))], {"node.json": TEXT})
    assert out.startswith("node.json:9:80: error:")


def test_wide_characters_keep_the_underline_in_place():
    out = formats.as_text([finding(place=Place(line=1, column=4, length=1))], {"node.json": "日本:x"}).split("\n")
    assert out[2] == "      | " + " " * 5 + "^"


def test_control_characters_of_the_input_never_reach_the_terminal():
    evil = "\x1b]0;owned\x07"
    out = formats.as_text([finding(message=f"bad {evil}", path=f"x{evil}")], {f"x{evil}": f'{{"a{evil}": 1}}'})
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]", out)


def test_a_value_that_a_finding_calls_a_secret_is_masked_in_every_line_and_the_underline_keeps_its_place():
    line = '{"note": "hush", "cluster": {"worker": ["a"]}}'
    secret = finding(id="secret", severity=Severity.WARNING, place=Place(line=1, column=10, length=6))
    out = formats.as_text([secret, finding(place=Place(line=1, column=41, length=3))], {"node.json": line})
    assert "hush" not in out
    shown, under = out.split("\n")[-7:-5]
    assert (shown[8:], under[8:]) == ('{"note": ***, "cluster": {"worker": ["a"]}}', " " * 37 + "^^^")


@pytest.mark.parametrize("column", [2, 16, 40])
def test_what_looks_like_a_secret_is_masked_without_a_finding(column):
    line = '{"api_key": "tops3cret-value", "cluster": {"worker": ["a"]}}'
    out = formats.as_text([finding(place=Place(line=1, column=column, length=3))], {"node.json": line})
    assert "s3cret" not in out
    assert "***" in out


def test_a_secret_far_from_the_place_on_a_long_line_is_not_shown_in_part():
    line = f'{{"api_key": "{"s3cret" * 20}", "cluster": {{"worker": ["a"]}}}}'
    out = formats.as_text([finding(place=Place(line=1, column=line.index('["a"') + 1, length=3))], {"node.json": line})
    assert "s3cret" not in out


def test_colours_only_when_asked():
    assert "\x1b" not in formats.as_text([finding()], {"node.json": TEXT})
    assert "\x1b[31merror\x1b[0m" in formats.as_text([finding()], {"node.json": TEXT}, colour=True)


def test_json_has_exactly_the_promised_keys():
    (only,) = json.loads(formats.as_json([finding()]))["findings"]
    assert only == {
        "id": "address-port",
        "severity": "error",
        "path": "node.json",
        "line": 1,
        "column": 25,
        "message": '"a" has no port',
        "consequence": "TensorFlow raises InvalidArgumentError.",
        "fix": 'write "a:2222"',
        "source": "R16",
    }


def test_json_of_nothing_is_an_empty_list():
    assert json.loads(formats.as_json([])) == {"findings": []}


def test_github_commands_name_the_place_and_stay_one_line_each():
    out = formats.as_github([finding(message="50% of\nit: a, b", path="a,b:c.json"), finding(severity=Severity.INFO)])
    first, second = out.splitlines()
    assert first.startswith(
        "::error file=a%2Cb%3Ac.json,line=1,col=25,endColumn=28,title=address-port::50%25 of%0Ait: a, b"
    )
    assert second.startswith("::notice file=node.json,")


@pytest.mark.parametrize("path", ["$TF_CONFIG", "-"])
def test_github_commands_name_no_file_where_there_is_none(path):
    assert formats.as_github([finding(path=path)]).startswith("::error title=address-port::")


def test_sarif_has_what_version_2_1_0_requires():
    rules = {"address-port": "an address without a port", "unused": "never found"}
    found = [finding(), finding(severity=Severity.INFO, path="my node.json"), finding(id="new", path="$TF_CONFIG")]
    log = json.loads(formats.as_sarif(found, rules, version="1.2.3"))
    assert log["version"] == "2.1.0"
    assert log["$schema"].endswith("sarif-schema-2.1.0.json")
    (run,) = log["runs"]
    driver = run["tool"]["driver"]
    assert (driver["name"], driver["version"]) == ("phalanx", "1.2.3")
    assert [rule["id"] for rule in driver["rules"]] == ["address-port", "unused", "new"]
    assert all(rule["shortDescription"]["text"] for rule in driver["rules"])
    assert [result["level"] for result in run["results"]] == ["error", "note", "error"]
    for result in run["results"]:
        assert driver["rules"][result["ruleIndex"]]["id"] == result["ruleId"]
        assert result["message"]["text"]
        place = result["locations"][0]["physicalLocation"]
        assert re.fullmatch(r"[A-Za-z0-9%._/$-]+", place["artifactLocation"]["uri"])
        region = place["region"]
        assert (region["startLine"], region["startColumn"], region["endColumn"]) == (1, 25, 28)
    assert run["columnKind"] == "unicodeCodePoints"
