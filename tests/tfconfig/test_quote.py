"""What a message repeats of the user's words: never a secret, never a control character, never without end."""

from __future__ import annotations

import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from phalanx.tfconfig.agree import agree
from phalanx.tfconfig.check import check
from phalanx.tfconfig.explain import explain
from phalanx.tfconfig.fix import fix
from phalanx.tfconfig.formats import as_github, as_json, as_sarif, as_text
from phalanx.tfconfig.parse import parse
from phalanx.tfconfig.quote import brief, line, printable, sentence, shown

WORKERS = {"worker": ["n1:2222", "n2:2222"]}
TASK = {"type": "worker", "index": 0}

SECRETS = {
    "AKIAABCDEFGHIJKLMNOP": "AKIAABCDEFGHIJKLMNOP",
    "ghp_" + "a" * 36: "ghp_aaaaaaaaaaaaaaa",
    "hf_" + "b" * 34: "hf_bbbbbbbbbbbbb",
    "password=hunter2zz": "hunter2zz",
    "https://bob:sw0rdfish@h:2222": "sw0rdfish",
    "bob:sw0rdfish@h:2222": "sw0rdfish",
    "token: s3cr3tvalue99": "s3cr3tvalue99",
}


def places(secret: str) -> dict[str, str]:
    """A text for each place where somebody may have put it by mistake."""
    return {
        "address": json.dumps({"cluster": {"worker": ["n1:2222", secret]}, "task": TASK}),
        "address after a tab": json.dumps({"cluster": {"worker": ["n1:2222", "\t" + secret]}, "task": TASK}),
        "joined addresses": json.dumps({"cluster": {"worker": f"n1:2222,{secret}"}, "task": TASK}),
        "cluster's type": json.dumps({"cluster": WORKERS | {secret: ["n3:2222"]}, "task": TASK}),
        "sparse index": json.dumps({"cluster": {"worker": {"0": "n1:2222", secret: "n2:2222"}}, "task": TASK}),
        "task's type": json.dumps({"cluster": WORKERS, "task": {"type": secret, "index": 0}}),
        "task's index": json.dumps({"cluster": WORKERS, "task": {"type": "worker", "index": secret}}),
        "extra value": json.dumps({"cluster": WORKERS, "task": TASK, "x": secret}),
        "extra key": json.dumps({"cluster": WORKERS, "task": TASK, secret: 1}),
        "rpc_layer": json.dumps({"cluster": WORKERS, "task": TASK, "rpc_layer": secret}),
        "session_master": json.dumps({"cluster": WORKERS, "task": TASK, "session_master": secret}),
        "single quotes": f"{{'cluster': {{'worker': ['n1:2222', '{secret}']}}, 'task': {{'type': 'worker'}}}}",
        "trailing text": json.dumps({"cluster": WORKERS, "task": TASK}) + " " + secret,
        "comment": f"// {secret}\n" + json.dumps({"cluster": WORKERS, "task": TASK}),
        "cut off": '{"x": "' + secret,
        "alone": secret,
        "alone in quotes": json.dumps(secret),
    }


@pytest.mark.parametrize("secret", SECRETS)
@pytest.mark.parametrize("place", places("x"))
def test_no_secret_is_repeated_in_any_format(place: str, secret: str):  # vector 30
    text, hidden = places(secret)[place], SECRETS[secret]
    parsed = parse(text, path="a.json")
    other = parse(json.dumps({"cluster": WORKERS, "task": {"type": "worker", "index": 1}}), path="b.json")
    found = [*check(parsed), *agree({"a": parsed, "b": other}), *fix(text).left]
    texts = {"a.json": text, "b.json": other.text or ""}
    told = [as_text(found, texts), as_json(found), as_github(found), as_sarif(found, {}, version="0")]
    told += fix(text).changes
    if parsed.config is not None:
        explained = explain(parsed.config)
        told += [json.dumps(explained.to_json()), *(s for _, of in explained.sections() for s in of)]
    assert [one for one in told if hidden in one] == []


def test_an_address_is_not_repeated_in_part_when_it_is_a_secret():
    found = check(json.dumps({"cluster": {"worker": ["n1:2222", "token: s3cr3t"]}, "task": TASK}))
    assert {f.id: f.message for f in found if f.id != "secret"} == {"address-port": "a port is no number"}


def test_a_task_type_cannot_write_to_the_terminal():
    text = json.dumps({"cluster": {"\x1b[31mx": ["\x1b[2J:1"]}, "task": {"type": "\x1b[31mx", "index": 0}})
    parsed = parse(text)
    assert parsed.config is not None
    assert "\\u001b" not in json.dumps(explain(parsed.config).to_json())
    assert all(f.message.isprintable() and f.fix.isprintable() for f in check(parsed))


def test_fix_escapes_what_a_terminal_would_obey():
    fixed = fix("{'x': '\\u009b31m \\u007f \\u202e \\ud800', 'cluster': {}}").text
    assert fixed.isprintable()
    assert json.loads(fixed)["x"] == "\x9b31m \x7f \u202e \ud800"


def test_a_word_of_a_megabyte_is_repeated_in_a_line():
    found = check(
        json.dumps({"cluster": {"w" * 1_000_000: ["a:1"]}, "task": {"type": "a:" + "/" * 100_000, "index": 0}})
    )
    assert max(len(f.message) + len(f.fix) for f in found) < 5000


@pytest.mark.parametrize("unit", ["x", "a:", "\\", "\\t", "@", "a@", "a:b@", ":", ".", " ", "-", "/", '"', "token="])
def test_a_long_word_costs_no_square_of_its_length(unit: str):
    text = unit * (400_000 // len(unit))
    start = time.perf_counter()
    assert [len(made(text)) > 0 for made in (line, sentence, brief)] == [True, True, True]
    assert time.perf_counter() - start < 5


@given(st.text())
def test_what_is_shown_is_one_printable_line(text: str):
    assert shown(text).isprintable()
    assert len(brief(text, 40)) <= 40
    assert sentence(text).isprintable()
    assert len(printable(text)) == len(text)
