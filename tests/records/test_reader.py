"""Reading events: torn, foreign and growing files."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders import history, killed, running
from phalanx.records.folder import RunFolder
from phalanx.records.reader import Tail, read_end, read_plan, read_records, read_state
from phalanx.states import RunPhase

if TYPE_CHECKING:
    from phalanx.events import Record

TOLD = killed()
BYTES = TOLD.text.encode()


def read(path: Path) -> tuple[list[Record], int]:
    tail = Tail(path)
    records = tail.poll()
    tail.close()
    return records, tail.skipped


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("reader") / "events.jsonl"


@given(st.integers(0, len(BYTES)))
def test_any_truncation_reads_as_a_prefix(path: Path, size: int):
    path.write_bytes(BYTES[:size])
    records, skipped = read(path)
    assert records == TOLD.records[: BYTES[:size].count(b"\n")]
    assert skipped == 0


@given(st.lists(st.integers(0, len(BYTES)), max_size=12))
def test_a_growing_file_gives_every_record_once(path: Path, sizes: list[int]):
    path.write_bytes(b"")
    tail = Tail(path)
    found = []
    for size in [*sorted(sizes), len(BYTES)]:
        path.write_bytes(BYTES[:size])
        found += tail.poll()
    tail.close()
    assert found == TOLD.records


@given(st.binary(max_size=200).filter(lambda junk: b"\n" not in junk), st.integers(0, len(TOLD.records)))
def test_a_line_of_junk_is_skipped_and_counted(path: Path, junk: bytes, place: int):
    lines = BYTES.splitlines(keepends=True)
    path.write_bytes(b"".join([*lines[:place], junk + b"\n", *lines[place:]]))
    records, skipped = read(path)
    assert records == TOLD.records
    assert skipped == bool(junk)


@pytest.mark.parametrize(
    "line",
    [
        '{"seq":9,"epoch":1,"event":"task-teleported","time":1.0}',
        '{"seq":9,"epoch":1,"event":"noted","time":"late","message":"m"}',
        '{"seq":"9","epoch":1,"event":"noted","time":1.0,"message":"m"}',
        '{"seq":9,"epoch":1,"event":["noted"],"time":1.0}',
        "[]",
        "[" * 100_000,
        "null",
    ],
)
def test_a_record_of_a_newer_phalanx_is_skipped_and_told(tmp_path: Path, line: str):
    folder = history().joined().write(tmp_path)
    with folder.events.open("a") as events:
        events.write(line + "\n")
    state = read_state(folder)
    assert list(state.hosts) == [0]
    assert [note.message for note in state.notes] == [
        "1 line of events.jsonl could not be read: torn, or of a newer phalanx"
    ]


def test_a_line_longer_than_one_read_is_whole(tmp_path: Path):
    told = history().noted("x" * (5 << 20)).noted("after")
    assert list(read_records(told.write(tmp_path).events)) == told.records


def test_a_file_that_is_not_there_yet_has_no_records(tmp_path: Path):
    tail = Tail(tmp_path / "events.jsonl")
    assert tail.poll() == []
    told = running()
    (tmp_path / "events.jsonl").write_text(told.text)
    assert tail.poll() == told.records
    assert tail.poll() == []
    tail.close()
    assert read_state(RunFolder(tmp_path)).phase is RunPhase.RUNNING


def test_the_end_is_found_without_reading_all(tmp_path: Path):
    folder = killed().write(tmp_path)
    with folder.events.open("ab") as events:
        events.write(b'{"torn')
    end = read_end(folder)
    assert end is not None
    assert (end.outcome, end.exit_code) == ("failed", 1)
    assert read_end(running(run="other-1130-070000").write(tmp_path)) is None
    assert read_end(RunFolder(tmp_path / "gone")) is None


def test_a_plan_that_cannot_be_read_is_none(tmp_path: Path):
    folder = RunFolder(tmp_path)
    assert read_plan(folder) is None
    folder.plan.write_text('{"version": 1}')
    assert read_plan(folder) is None


def test_a_disk_that_fails_for_a_moment_is_read_again_and_nothing_is_lost(tmp_path: Path, monkeypatch):
    path = tmp_path / "events.jsonl"
    path.write_bytes(BYTES)
    tail, usual = Tail(path), os.pread
    monkeypatch.setattr(os, "pread", _fails)
    assert tail.poll() == []
    monkeypatch.setattr(os, "pread", usual)
    assert tail.poll() == read(path)[0]
    tail.close()


def _fails(*_: object) -> bytes:
    raise OSError(errno.EIO, os.strerror(errno.EIO))
