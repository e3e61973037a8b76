"""A declared secret never gets through, wherever the chunks are cut; what looks like a credential is not shown."""

from __future__ import annotations

import re
import time

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import phalanx.redact as redact_module
from phalanx.redact import Masker, redact, tells

# Few letters: secrets that contain, overlap and begin one another.
SECRETS = st.lists(st.text("abc", max_size=6).map(str.encode), max_size=5)
CHUNKS = st.lists(st.text("abc\n", max_size=8).map(str.encode), max_size=12)


def at_once(secrets: list[bytes], data: bytes) -> bytes:
    real = sorted(filter(None, secrets), key=len, reverse=True)
    return re.sub(b"|".join(map(re.escape, real)), b"***", data) if real else data


@given(SECRETS, CHUNKS)
@example([b"ab", b"abc"], [b"ab", b"c"])
@example([b"bc", b"abcd"], [b"abc", b"x"])
@example([b"aab"], [b"aaa", b"b"])
def test_the_result_is_that_of_one_replacement_wherever_the_chunks_are_cut(secrets, chunks):
    masker = Masker(secrets)
    assert b"".join([*map(masker.feed, chunks), masker.flush()]) == at_once(secrets, b"".join(chunks))


@given(SECRETS, CHUNKS)
def test_no_more_is_held_back_than_may_still_become_a_secret(secrets, chunks):
    masker = Masker(secrets)
    for chunk in chunks:
        masker.feed(chunk)
        held = masker._held
        assert not held or any(len(held) < len(secret) and secret.startswith(held) for secret in secrets)


@given(SECRETS.filter(any), CHUNKS)
def test_no_declared_secret_gets_through(secrets, chunks):
    masker = Masker(secrets)
    out = b"".join([*map(masker.feed, chunks), masker.flush()])
    assert not any(secret in piece for piece in out.split(b"***") for secret in secrets if secret)


def test_without_secrets_the_very_same_bytes_go_through():
    data = b"x" * 100
    assert Masker([]).feed(data) is data
    assert Masker([b""]).feed(data) is data


def test_masking_a_megabyte_takes_milliseconds():
    masker = Masker([b"hunter2hunter2", b"-----BEGIN " + b"k" * 3000])
    data = b"step 1 loss 0.123 ----- \n" * 40_000
    begin = time.process_time()
    assert masker.feed(data) + masker.flush() == data
    assert time.process_time() - begin < 0.5


KEY = "MIIEvQIBADANBgkqhkiG9w0BAQEFAASC"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("HF_TOKEN=hf_x", "HF_TOKEN=***"),
        ("export PGPASSWORD='p w'", "export PGPASSWORD='***'"),
        ("PASSWORD=123456", "PASSWORD=***"),
        ('{"password": "a\\"b", "user": "u"}', '{"password": "***", "user": "u"}'),
        ("db_password: hunter2", "db_password: ***"),
        ("AWS_SECRET_ACCESS_KEY=abc/def+ghi", "AWS_SECRET_ACCESS_KEY=***"),
        ("WANDB_API_KEY = 0123456789abcdef", "WANDB_API_KEY = ***"),
        ("MY_KEY=abcdef", "MY_KEY=***"),
        ("--api-key s3cr3t --epochs 3", "--api-key *** --epochs 3"),
        ("['--token', 's3cr3t', '--epochs', '3']", "['--token', '***', '--epochs', '3']"),
        ("key id AKIAIOSFODNN7EXAMPLE here", "key id *** here"),
        (f"push ghp_{'a1' * 18} now", "push *** now"),
        (f"with github_pat_{'a1' * 15}", "with ***"),
        (f"maps AIza{'b' * 35}", "maps ***"),
        (f"login hf_{'c' * 34}", "login ***"),
        ("jwt eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0abc.c2lnbmF0dXJl!", "jwt ***!"),
        ("Authorization: Bearer abcdefghijklmnop", "Authorization: Bearer ***"),
        ("curl -H 'Authorization: Basic dXNlcjpwYXNz' x", "curl -H 'Authorization: Basic ***' x"),
        ("git clone https://me:hunter2@example.com/x", "git clone https://me:***@example.com/x"),
        (
            f"-----BEGIN RSA PRIVATE KEY-----\n{KEY}\n-----END RSA PRIVATE KEY-----\nend",
            "-----BEGIN RSA PRIVATE KEY-----***-----END RSA PRIVATE KEY-----\nend",
        ),
        (f"-----BEGIN PRIVATE KEY-----\n{KEY} (cut off)", "-----BEGIN PRIVATE KEY-----***"),
    ],
)
def test_what_looks_like_a_credential_is_masked(text, expected):
    assert redact(text) == expected
    assert redact(expected) == expected


@pytest.mark.parametrize(
    "text",
    [
        "Epoch 3/10 - loss: 0.12 - accuracy: 0.95 - 12 tokens/s",
        "tokens=512 num_tokens: 1024 max_token=128 pad_token=[PAD] eos_token=</s>",
        "KeyError: 'x'  keys: 3  monkey=banana  key=value",
        "use_auth_token: False, token=None",
        "https://example.com:8080/path?x=1 user@example.com",
        "worker:0 on n7:22103 grpc://10.0.0.1:2222",
        "Basic training of bearer tokens",
        "/usr/lib/python3.11/tokenize.py:12: in tokenizer",
    ],
)
def test_what_training_prints_is_left_alone(text):
    assert redact(text) == text


WORDS = st.sampled_from(
    [
        "token",
        "=",
        ": ",
        " ",
        "PASSWORD",
        "'",
        '"',
        "--api-key",
        "KEY",
        "\n",
        "x1y2",
        "***",
        "://",
        "u:",
        "@h",
        "bearer ",
    ]
)


@given(st.lists(WORDS, max_size=12).map("".join))
def test_redacting_twice_changes_nothing_more(text):
    once = redact(text)
    assert redact(once) == once


@pytest.mark.parametrize(
    "piece", ["a_", "token", "--", "-----BEGIN PRIVATE KEY-----", "eyJ", "://", '"', "KEY \t", "A1_"]
)
def test_a_megabyte_of_anything_takes_no_for_ever(piece):
    text = piece * (200_000 // len(piece))
    begin = time.process_time()
    assert redact(text)
    assert time.process_time() - begin < 2


_PIECES = st.sampled_from(
    [
        *(
            "hfToken=abc123def456",
            "PGPASSWORD: 'x y'",
            "--api-key q1w2e3r4t5",
            "KEY=1",
            "passphrase = zzz",
            "Credentials: abcdef",
        ),
        *("AKIA" + "A1" * 8, "ASIA" + "B2" * 8, "ghp_" + "a" * 36, "ghs_" + "a" * 36, "github_pat_" + "b" * 22),
        *("glpat-" + "c" * 20, "AIza" + "d" * 35, "ya29." + "e" * 20, "GOCSPX-" + "f" * 20, "hf_" + "g" * 30),
        *("sk-" + "h" * 20, "xoxb-" + "i" * 10, "eyJ" + "j" * 8 + "." + "k" * 8 + ".l", "Authorization: Basic abcd"),
        *(
            "bearer " + "m" * 16,
            "https://me:secret@h/x",
            "-----BEGIN RSA PRIVATE KEY-----",
            "step 17",
            " ",
            "\n",
            "=",
            "x",
        ),
    ]
)


@given(st.lists(_PIECES | st.text(max_size=5), max_size=8).map("".join))
def test_a_text_without_a_telling_word_holds_nothing_that_a_search_would_find(text):
    assert redact(text) == redact_module._search(text)


@pytest.mark.parametrize(
    ("text", "tells_one"),
    [
        ("train --token=$TOKEN --lr 0.1", False),
        ('train --password "$PW" --x y', False),
        ("train --api-key $(KEY)", False),
        ("PASSWORD=${PW} train", False),
        ("train --token=abcdefghijk", True),
        ("train --token=$A-abcdefghijk", True),
        ("train --password hunter22", True),
    ],
)
def test_a_reference_to_a_variable_is_no_credential(text, tells_one):
    assert tells(text) == tells_one
