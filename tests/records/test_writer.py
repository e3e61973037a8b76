"""Events on the disk: whole lines whatever kills the writer, none lost to a full disk, one writer at a time."""

from __future__ import annotations

import json
import os
import resource
import signal
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import phalanx
from builders import DAWN, history, killed
from phalanx import events as ev
from phalanx.errors import PlaceError
from phalanx.records import writer
from phalanx.records.reader import Tail, read_records
from phalanx.records.writer import EventLog, write_atomic

WRITE_FOREVER = """
import sys
from pathlib import Path
from phalanx.events import Noted, Record
from phalanx.records.writer import EventLog
log = EventLog(Path(sys.argv[1]))
number = 0
while True:
    number += 1
    log.append(Record(seq=number, epoch=1, event=Noted(time=float(number), message="m" * (number % 7000))))
    if number == 200:
        print("under way", flush=True)
"""


@contextmanager
def no_file_beyond(size: int) -> Iterator[None]:
    """The kernel takes the part of a write that fits, and refuses the next: what a full disk does."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def noted(number: int, message: str = "something") -> ev.Record:
    return ev.Record(seq=number, epoch=1, event=ev.Noted(time=DAWN + number, message=message))


def test_what_is_appended_reads_back(tmp_path: Path):
    log = EventLog(tmp_path / "events.jsonl")
    told = killed()
    for record in told.records:
        log.append(record)
    assert list(read_records(tmp_path / "events.jsonl")) == told.records
    assert (tmp_path / "events.jsonl").read_text() == told.text


@pytest.mark.real
def test_kill_9_in_mid_write_leaves_whole_records(tmp_path: Path):
    path = tmp_path / "events.jsonl"
    environ = {**os.environ, "PYTHONPATH": str(Path(phalanx.__file__).parents[1])}
    with subprocess.Popen([sys.executable, "-c", WRITE_FOREVER, path], stdout=subprocess.PIPE, env=environ) as process:
        assert process.stdout is not None
        ready = process.stdout.readline()
        process.kill()
    assert ready == b"under way\n"
    assert process.returncode == -signal.SIGKILL
    tail = Tail(path)
    numbers = [record.seq for record in tail.poll()]
    tail.close()
    assert numbers == list(range(1, len(numbers) + 1))
    assert len(numbers) >= 200
    assert tail.skipped == 0
    EventLog(path).append(noted(len(numbers) + 1))  # the lock went with the process
    assert len(list(read_records(path))) == len(numbers) + 1


def test_a_second_writer_is_refused(tmp_path: Path):
    first = EventLog(tmp_path / "events.jsonl")
    with pytest.raises(PlaceError, match="being written by another lead"):
        EventLog(tmp_path / "events.jsonl")
    first.close()
    EventLog(tmp_path / "events.jsonl").close()


def test_a_folder_that_is_gone_is_said_clearly(tmp_path: Path):
    with pytest.raises(PlaceError, match="No such file"):
        EventLog(tmp_path / "gone" / "events.jsonl")


def test_after_a_torn_line_the_next_record_stands_on_a_line_of_its_own(tmp_path: Path):
    path = tmp_path / "events.jsonl"
    told = history().joined(0)
    path.write_text(told.text + '{"seq":3,"epo')
    log = EventLog(path)
    log.append(noted(3))
    tail = Tail(path)
    assert [record.seq for record in tail.poll()] == [1, 2, 3]
    assert (tail.skipped, log.dropped) == (0, 13)


def test_wherever_a_writer_is_killed_the_next_one_finds_whole_records_and_says_what_it_dropped(tmp_path: Path):
    """Every length of the file that a kill, or a power cut, may leave."""
    path = tmp_path / "events.jsonl"
    told = killed()
    text = told.text.encode()
    ends = [len(text[:n]) for n in range(len(text) + 1) if text[n - 1 : n] == b"\n"]
    for length in range(len(text) + 1):
        path.write_bytes(text[:length])
        whole = sum(end <= length + 1 for end in ends)  # a line that lacks only its newline is whole
        log = EventLog(path)
        left = length - max([0, *(end for end in ends if end <= length)])
        assert log.dropped == (0 if length + 1 in ends else left)
        log.append(noted(99))
        log.close()
        tail = Tail(path)
        assert tail.poll() == [*told.records[:whole], noted(99)]
        assert tail.skipped == 0
        tail.close()


def test_a_full_disk_delays_records_and_is_told(tmp_path: Path):
    path = tmp_path / "events.jsonl"
    times = iter([DAWN, DAWN + 12.5])
    log = EventLog(path, clock=lambda: next(times))
    log.append(noted(1))
    with no_file_beyond(path.stat().st_size + 20):
        log.append(noted(2))
        log.append(noted(3))
        assert log.waiting == 2
        assert not log.flush()
        assert [record.seq for record in read_records(path)] == [1]
    log.append(noted(4))
    assert log.waiting == 0
    tail = Tail(path)
    records = tail.poll()
    assert [record.seq for record in records] == [1, 2, 3, 4, 4]
    assert tail.skipped == 0
    assert isinstance(records[-1].event, ev.Noted)
    assert "for 12.5 s (No space left on device): 3 records were written late, 0 are lost" in records[-1].event.message


def test_a_disk_that_stays_full_costs_bounded_memory_and_the_loss_is_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(writer, "BACKLOG", 5)
    path = tmp_path / "events.jsonl"
    log = EventLog(path)
    with no_file_beyond(10):
        for number in range(1, 10):
            log.append(noted(number))
        assert log.waiting == 5
    assert log.flush()
    records = list(read_records(path))
    assert [record.seq for record in records] == [5, 6, 7, 8, 9, 9]
    assert "5 records were written late, 4 are lost" in records[-1].event.message


def test_close_gives_a_full_disk_a_last_chance(tmp_path: Path):
    log = EventLog(tmp_path / "events.jsonl")
    with no_file_beyond(10):
        log.append(noted(1))
        log.close(patience=0.05)
    log.close()
    assert list(read_records(tmp_path / "events.jsonl")) == []


def test_the_last_record_is_synced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    synced = []
    monkeypatch.setattr(os, "fsync", synced.append)
    log = EventLog(tmp_path / "events.jsonl")
    for record in killed().records:
        log.append(record)
        assert len(synced) == isinstance(record.event, ev.RunEnded)


def test_credentials_in_the_words_of_tasks_do_not_reach_the_records(tmp_path: Path):
    key = "AKIA" + "IOSFODNN7EXAMPLE"
    log = EventLog(tmp_path / "events.jsonl")
    told = history().joined().bound().exited("worker:0", code=1, said=[f"key {key}"]).noted(f"seen {key}")
    for record in told.records:
        log.append(record)
    text = (tmp_path / "events.jsonl").read_text()
    assert key not in text
    assert len(list(read_records(tmp_path / "events.jsonl"))) == len(told.records)


def test_an_atomic_write_has_the_mode_and_leaves_no_scratch_file(tmp_path: Path):
    path = tmp_path / "plan.json"
    write_atomic(path, "old")
    write_atomic(path, "new ü", 0o600)
    assert path.read_text(encoding="utf-8") == "new ü"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [each.name for each in tmp_path.iterdir()] == ["plan.json"]


def test_an_atomic_write_that_fails_leaves_the_old_text(tmp_path: Path):
    path = tmp_path / "plan.json"
    write_atomic(path, "old")
    with no_file_beyond(10), pytest.raises(PlaceError, match=r"plan\.json cannot be written"):
        write_atomic(path, json.dumps(["long"] * 100))
    assert path.read_text() == "old"
    assert [each.name for each in tmp_path.iterdir()] == ["plan.json"]
