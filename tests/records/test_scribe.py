"""A disk that hangs, refuses or fills holds up nobody but the thread that writes to it."""

from __future__ import annotations

import asyncio
import threading
import time
from pathlib import Path

import pytest

from phalanx import events as ev
from phalanx.records import scribe, writer
from phalanx.records.reader import Tail
from phalanx.records.scribe import Scribe
from phalanx.records.writer import EventLog, FencedError


class SlowLog(EventLog):
    """A disk that takes nothing until it is let."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.may = threading.Event()
        self.hangs = threading.Event()

    def flush(self) -> bool:
        self.hangs.set()
        self.may.wait(10)
        return super().flush()


def noted(number: int) -> ev.Record:
    return ev.Record(seq=number, epoch=1, event=ev.Noted(time=float(number), message="something"))


def numbers(path: Path) -> list[int]:
    tail = Tail(path)
    found = [record.seq for record in tail.poll()]
    tail.close()
    assert tail.skipped == 0
    return found


async def test_what_was_put_is_written_when_an_answer_may_go_out(tmp_path: Path):
    writing = Scribe(EventLog(tmp_path / "events.jsonl"))
    for number in range(1, 1001):
        writing.put(noted(number))
    await writing.settle()
    assert numbers(tmp_path / "events.jsonl") == list(range(1, 1001))
    assert writing.close(5)


async def test_a_disk_that_hangs_holds_up_one_answer_for_a_moment_and_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(scribe, "SETTLE", 0.05)
    log = SlowLog(tmp_path / "events.jsonl")
    writing = Scribe(log)
    writing.put(noted(1))
    await asyncio.to_thread(log.hangs.wait, 5)
    await writing.settle()
    before = time.monotonic()
    for number in range(2, 1000):
        writing.put(noted(number))
        await writing.settle()
    assert time.monotonic() - before < 2
    assert not writing.close(0)
    log.may.set()
    assert writing.close(5)
    assert numbers(tmp_path / "events.jsonl") == list(range(1, 1000))


async def test_what_piles_up_behind_a_hanging_disk_is_bounded_and_the_loss_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(writer, "BACKLOG", 10)
    log = SlowLog(tmp_path / "events.jsonl")
    writing = Scribe(log)
    writing.put(noted(1))
    await asyncio.to_thread(log.hangs.wait, 5)
    for number in range(2, 32):
        writing.put(noted(number))
    log.may.set()
    assert writing.close(5)
    assert numbers(tmp_path / "events.jsonl") == [1, *range(22, 32), 31]
    tail = Tail(tmp_path / "events.jsonl")
    assert "10 records were written late, 20 are lost" in tail.poll()[-1].event.message
    tail.close()


def test_a_text_keeps_its_place_among_the_records_and_is_tried_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(scribe, "AGAIN", 0.01)
    path, tries = tmp_path / "events.jsonl", []

    def refused_once() -> bool:
        tries.append(numbers(path))
        return len(tries) > 1

    log = SlowLog(path)
    writing = Scribe(log)
    writing.put(noted(1))
    writing.write(refused_once)
    writing.put(noted(2))
    log.may.set()
    assert writing.close(5)
    assert tries == [[1], [1, 2]]


async def test_who_is_fenced_off_writes_nothing_more_and_nobody_waits_for_it(tmp_path: Path):
    log = EventLog(tmp_path / "events.jsonl")
    asked, free = [], [True]

    def fence() -> None:
        asked.append(1)
        if not free[0]:
            raise FencedError("another one's")

    log.fence = fence
    writing = Scribe(log)
    writing.put(noted(1))
    await writing.settle()
    free[0] = False
    writing.put(noted(2))
    await writing.settle()
    assert writing.fenced
    free[0] = True
    before = time.monotonic()
    for number in range(3, 100):
        writing.put(noted(number))
        await writing.settle()
    assert writing.close(5)
    assert time.monotonic() - before < 2
    assert numbers(tmp_path / "events.jsonl") == [1]
    assert len(asked) == 2


async def test_the_fence_is_asked_before_each_write_also_of_what_had_to_wait(tmp_path: Path):
    """A write that hangs may end after another lead has begun: the next batch finds out."""
    log = SlowLog(tmp_path / "events.jsonl")
    asked = []

    def fence() -> None:
        asked.append(1)
        if len(asked) > 1:
            raise FencedError("another one's")

    log.fence = fence
    writing = Scribe(log)
    writing.put(noted(1))
    await asyncio.to_thread(log.hangs.wait, 5)
    for number in range(2, 400):
        writing.put(noted(number))
    log.may.set()
    assert writing.close(5)
    assert writing.fenced
    assert numbers(tmp_path / "events.jsonl") == [1]
