"""The copy of the records on a host that may lead next."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import pytest

from phalanx.records import copybook
from phalanx.records.copybook import CopyBook
from phalanx.records.folder import RunFolder


@pytest.fixture
def folder(tmp_path: Path) -> RunFolder:
    made = RunFolder(tmp_path / "run")
    made.agents.mkdir(parents=True)
    return made


def copies(folder: RunFolder) -> int:
    return len(list((folder.agents / "1.copy").iterdir()))


def test_what_is_handed_over_is_the_newest_copy_that_ever_was_whole(folder: RunFolder):
    book = CopyBook(folder, host=1)
    book.begin()
    book.add("one\n", plan="{}", generation=1, whole=False)
    assert not book.hand_over()
    book.add("two\n", whole=True)
    assert (book.size, book.plan) == (8, 1)
    book.begin()
    book.add("another\n", whole=False)
    assert book.hand_over()
    assert folder.events.read_text() == "one\ntwo\n"
    assert folder.plan.read_text() == "{}"
    book.add("late\n", whole=True)
    assert folder.events.read_text() == "one\ntwo\n"


def test_a_host_that_has_records_of_its_own_takes_no_copy_for_them(folder: RunFolder):
    folder.events.write_text("mine\n")
    book = CopyBook(folder, host=1)
    book.begin()
    book.add("theirs\n", whole=True)
    assert not book.hand_over()
    assert folder.events.read_text() == "mine\n"


def test_however_often_a_copy_is_begun_one_that_is_whole_and_one_that_is_not_are_kept(folder: RunFolder):
    book = CopyBook(folder, host=1)
    for _ in range(4):
        book.begin()
        book.add("half\n", whole=False)
    assert copies(folder) == 1
    book.add("rest\n", whole=True)
    for _ in range(4):
        book.begin()
        book.add("half\n", whole=False)
    assert copies(folder) == 2
    assert book.hand_over()
    assert folder.events.read_text() == "half\nrest\n"


def test_a_disk_that_hangs_in_the_middle_of_a_write_holds_up_nobody_who_would_take_over(folder: RunFolder):
    book = CopyBook(folder, host=1)
    book.begin()
    book.add("one\n", whole=True)
    frozen, thaw = threading.Event(), threading.Event()

    def writes() -> None:
        with book._lock:
            frozen.set()
            thaw.wait(30)

    writer = threading.Thread(target=writes)
    writer.start()
    frozen.wait(30)
    begun = time.monotonic()
    assert not book.hand_over()
    assert time.monotonic() - begun < copybook._HANGS + 5
    thaw.set()
    writer.join()
    assert book.hand_over()
