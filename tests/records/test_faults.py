"""The run folder's disk at its worst, with real files: what is there is whole, and what is missing is told."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import phalanx
from builders import DAWN, history
from disks import disk, fill
from phalanx import events as ev
from phalanx.lead.keeper import Keeper
from phalanx.records import scribe
from phalanx.records.folder import RunFolder
from phalanx.records.leadfile import Rule, read_rule
from phalanx.records.reader import Tail
from phalanx.states import RunState

STORM = """
import sys
import time
from pathlib import Path
from phalanx.events import Noted, Record
from phalanx.lead.keeper import Keeper
keeper = Keeper(Path(sys.argv[1]))
past = keeper.past()
print(past.state.seq, flush=True)
number = past.state.seq
while True:
    number += 1
    keeper.append(Record(seq=number, epoch=1, event=Noted(time=float(number), message="m" * (number * 7919 % 9000))))
    while keeper._writing.waiting > 5000:  # memory, not the disk, would end this one
        time.sleep(0.001)
"""


def noted(number: int, size: int = 100) -> ev.Record:
    return ev.Record(seq=number, epoch=1, event=ev.Noted(time=DAWN + number, message="m" * size))


def read(folder: RunFolder) -> tuple[list[ev.Record], int]:
    tail = Tail(folder.events)
    try:
        return tail.poll(), tail.skipped
    finally:
        tail.close()


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of its own with room for 64 KiB."""
    with disk(tmp_path, "64k") as place:
        yield place


@pytest.fixture
def filled(tmp_path: Path) -> Iterator[tuple[RunFolder, Keeper]]:
    """A run on a disk of its own, of which others have taken the last byte since it began."""
    with disk(tmp_path, "1m") as place:
        keeper = Keeper(place)
        keeper.append(noted(1))
        lasting(lambda: keeper._writing.waiting == 0)
        fill(place)
        yield RunFolder(place), keeper


def lasting(true: Callable[[], bool], within: float = 10.0) -> None:
    """Wait until it is so: another thread or process does it."""
    until = time.monotonic() + within
    while not true():
        assert time.monotonic() < until, "not within its time"
        time.sleep(0.005)


def test_a_disk_that_fills_up_and_gets_room_again_has_every_record_and_a_note(
    small_disk: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(scribe, "AGAIN", 0.02)
    folder = RunFolder(small_disk)
    (small_disk / "ballast").write_bytes(b"\0" * 32768)
    keeper = Keeper(small_disk)
    keeper.append(noted(1))
    lasting(lambda: keeper._writing.waiting == 0)
    for number in range(2, 401):
        keeper.append(noted(number))
    lasting(lambda: keeper._writing._log.waiting > 0)
    records, skipped = read(folder)
    assert 0 < len(records) < 400
    assert skipped == 0
    keeper.write_report(RunState(), None)
    (small_disk / "ballast").unlink()
    subprocess.run(["mount", "-o", "remount,size=1m", small_disk], check=True)
    keeper.close()
    records, skipped = read(folder)
    assert [record.seq for record in records] == [*range(1, 401), 400]
    assert skipped == 0
    assert "were written late, 0 are lost" in records[-1].event.message
    assert folder.report.exists()


def ended(number: int) -> ev.Record:
    return ev.Record(
        seq=number, epoch=1, event=ev.RunEnded(time=DAWN + number, outcome="succeeded", exit_code=0, cause="well done")
    )


def test_others_who_fill_the_disk_leave_the_records_their_room(filled: tuple[RunFolder, Keeper]):
    folder, keeper = filled
    for number in range(2, 401):
        keeper.append(noted(number))
    keeper.append(ended(401))
    lasting(lambda: keeper._writing.waiting == 0)
    records, skipped = read(folder)
    assert [record.seq for record in records] == [*range(1, 402)]
    assert skipped == 0
    keeper.close()
    assert folder.events.stat().st_blocks * 512 < folder.events.stat().st_size + 4096 * 2


def test_a_run_whose_disk_stays_full_for_long_has_its_end_and_says_what_is_missing(
    filled: tuple[RunFolder, Keeper], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(scribe, "SHORT", 0.2)
    folder, keeper = filled
    last = 4000
    for number in range(2, last):
        keeper.append(noted(number))
    keeper.append(ended(last))
    lasting(lambda: keeper._writing._log.waiting > 0)
    keeper.close()
    (*whole, gap, end), skipped = read(folder)
    assert [record.seq for record in whole] == [*range(1, len(whole) + 1)]
    assert skipped == 0
    assert (gap.seq, end) == (len(whole), ended(last))
    assert f"{last - len(whole) - 1} are lost" in gap.event.message


def test_a_lead_that_dies_while_the_disk_is_full_has_a_successor_that_finds_room_for_its_word(
    filled: tuple[RunFolder, Keeper],
):
    folder, keeper = filled
    keeper.append(noted(2))
    lasting(lambda: keeper._writing.waiting == 0)
    keeper._log.close()  # the kernel, when its process is killed
    later = Keeper(folder.path, epoch=2)
    assert later.epoch == 2
    assert not keeper.holds()
    assert read_rule(folder) == Rule(epoch=2, address="", pid=os.getpid())
    later.append(ended(3))
    later.close()
    assert [record.seq for record in read(folder)[0]] == [1, 2, 3]


def test_a_disk_that_turns_read_only_is_waited_for(small_disk: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(scribe, "AGAIN", 0.02)
    keeper = Keeper(small_disk)
    keeper.append(noted(1))
    lasting(lambda: keeper._writing.waiting == 0)
    limited = subprocess.run(["mount", "-o", "remount,ro", small_disk], capture_output=True, text=True, check=False)
    if limited.returncode:  # a file that is open for writing forbids it: the descriptor is taken instead
        os.dup2(os.open(small_disk / "events.jsonl", os.O_RDONLY), keeper._log._fd)
    keeper.append(noted(2))
    lasting(lambda: keeper._log.waiting == 1)
    if limited.returncode:
        os.dup2(os.open(small_disk / "events.jsonl", os.O_RDWR | os.O_APPEND), keeper._log._fd)
    else:
        subprocess.run(["mount", "-o", "remount,rw", small_disk], check=True)
    keeper.close()
    records, _ = read(RunFolder(small_disk))
    assert [record.seq for record in records] == [1, 2, 2]


def test_a_refused_text_is_replaced_by_its_newer_one_and_written_in_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """A file where the plan's own should be, which nothing can replace: a folder."""
    monkeypatch.setattr(scribe, "AGAIN", 0.02)
    folder = RunFolder(tmp_path)
    folder.report.mkdir()
    keeper = Keeper(tmp_path)
    keeper.write_report(history(run="r-old").state, None)
    keeper.write_report(history(run="r-new").state, None)
    lasting(lambda: len(keeper._writing._late) == 1)
    folder.report.rmdir()
    keeper.close()
    assert '"run": "r-new"' in folder.report.read_text()


@pytest.mark.real
def test_a_lead_killed_fifty_times_in_a_storm_of_records_leaves_whole_ones_without_a_gap(tmp_path: Path):
    chance = random.Random(1)  # noqa: S311 - moments, no secrets
    environ = {**os.environ, "PYTHONPATH": str(Path(phalanx.__file__).parents[1])}
    folder = RunFolder(tmp_path)
    for _ in range(50):
        with subprocess.Popen([sys.executable, "-c", STORM, tmp_path], stdout=subprocess.PIPE, env=environ) as lead:
            assert lead.stdout is not None
            began = int(lead.stdout.readline())
            size = folder.events.stat().st_size
            lasting(lambda size=size: folder.events.stat().st_size > size)
            time.sleep(chance.uniform(0.0, 0.05))
            lead.kill()
        assert lead.returncode == -signal.SIGKILL
        numbers = [record.seq for record in read(folder)[0]]
        assert read(folder)[1] == 0
        assert numbers == list(range(1, len(numbers) + 1))
        assert len(numbers) > began
