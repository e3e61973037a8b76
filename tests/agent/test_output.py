"""Output is kept to the byte with the time of each piece, whatever the task writes and whatever the disk does."""

from __future__ import annotations

import asyncio
import fcntl
import os
import pty
import resource
import subprocess
import sys
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from phalanx.agent import output
from phalanx.agent.output import Capture, shown
from phalanx.records.timeindex import TimeIndex
from phalanx.redact import Masker

JUNK = bytes(range(256)) * 300


@pytest.fixture
def log(tmp_path):
    return tmp_path / "g1.a1.out"


async def captured(log, disk, *pieces: bytes, **more) -> Capture:
    """A capture of these pieces, written one after the other, to the end."""
    read, write = os.pipe()
    capture = Capture(read, log, disk, **more)
    for piece in pieces:
        os.write(write, piece)
        await asyncio.sleep(0)
    os.close(write)
    await asyncio.wait_for(capture.done.wait(), 5)
    return capture


@pytest.mark.parametrize(
    "data",
    [b"", b"\n", b"no newline at the end", b"a\r\nb\r\n", b" 10%\r 20%\r100%\n", JUNK, b"x" * 600_000 + b"\n"],
    ids=["nothing", "blank", "no newline", "dos", "progress", "junk", "long line"],
)
async def test_the_file_holds_what_was_written_to_the_byte(log, disk, data):
    capture = await captured(log, disk, data)
    assert log.read_bytes() == data
    assert (capture.size, capture.dropped) == (len(data), 0)


async def test_a_second_attempt_with_the_same_file_appends(log, disk):
    await captured(log, disk, b"one\n")
    capture = await captured(log, disk, b"two\n")
    assert log.read_bytes() == b"one\ntwo\n"
    with TimeIndex(log) as index:
        assert 0 < index.time_at(0) < index.time_at(4)
    assert capture.size == 8


async def test_a_pipe_is_made_as_roomy_as_it_may_be(log, disk):
    read, write = os.pipe()
    capture = Capture(read, log, disk)
    assert fcntl.fcntl(write, fcntl.F_GETPIPE_SZ) >= 65536  # 1 MiB unless this user has used up his share
    os.close(write)
    await capture.done.wait()


async def test_a_terminal_is_captured_as_well(log, disk):
    leader, follower = pty.openpty()
    capture = Capture(leader, log, disk)
    os.write(follower, b"hello\n")
    os.close(follower)
    await asyncio.wait_for(capture.done.wait(), 5)
    assert log.read_bytes() == b"hello\r\n"


async def test_what_a_busy_loop_did_not_read_yet_is_not_lost(log, disk):
    read, write = os.pipe()
    capture = Capture(read, log, disk)
    os.set_blocking(write, False)
    sent = 0
    for _ in range(50):  # far more than the pipe holds: the task would wait
        try:
            sent += os.write(write, b"y" * 100_000)
        except BlockingIOError:
            await asyncio.sleep(0.005)
    os.close(write)
    await asyncio.wait_for(capture.done.wait(), 5)
    assert log.stat().st_size == sent


async def test_data_that_comes_after_the_exit_is_kept(log, disk):
    read, write = os.pipe()
    capture = Capture(read, log, disk)
    shell = subprocess.Popen(["sh", "-c", "(sleep 0.1; echo late) & echo early"], stdout=write)  # noqa: ASYNC220 - a task
    os.close(write)
    shell.wait()
    assert not capture.done.is_set()
    await asyncio.wait_for(capture.done.wait(), 5)
    assert log.read_bytes() == b"early\nlate\n"


async def test_close_takes_what_is_there_from_a_stream_that_somebody_holds_open(log, disk):
    read, write = os.pipe()
    capture = Capture(read, log, disk)
    os.write(write, b"x" * 60_000)
    capture.close()
    capture.close()
    await capture.done.wait()
    assert log.stat().st_size == 60_000
    os.close(write)


async def test_declared_secrets_are_masked_across_reads(log, disk):
    capture = await captured(log, disk, b"the key is hun", b"ter2, a", b" hunter", masker=Masker([b"hunter2"]))
    assert log.read_bytes() == b"the key is ***, a hunter"
    assert capture.last_line == "the key is ***, a hunter"


async def test_the_index_tells_when_each_byte_came(log, disk):
    read, write = os.pipe()
    times = iter(range(1_000_000_000, 10**12, 1_000_000_000))
    capture = Capture(read, log, disk, clock=lambda: next(times))
    for number in range(3):
        os.write(write, b"line %d\n" % number)
        while capture.size < 7 * (number + 1):
            await asyncio.sleep(0.001)
    os.close(write)
    await capture.done.wait()
    with TimeIndex(log) as index:
        assert [(line.time // 10**9, line.data) for line in index.lines()] == [
            (1, b"line 0\n"),
            (2, b"line 1\n"),
            (3, b"line 2\n"),
        ]
    assert capture.last_output == 3


async def test_a_clock_that_is_set_back_does_not_muddle_the_index(log, disk):
    times = iter((5_000_000_000, 1_000_000_000, 6_000_000_000))
    read, write = os.pipe()
    capture = Capture(read, log, disk, clock=lambda: next(times))
    for number in range(3):
        os.write(write, b"x\n")
        while capture.size < 2 * (number + 1):
            await asyncio.sleep(0.001)
    os.close(write)
    await capture.done.wait()
    with TimeIndex(log) as index:
        assert [index.time_at(offset) // 10**9 for offset in (0, 2, 4)] == [5, 5, 6]


async def test_a_chatty_task_gets_no_record_a_line(log, disk):
    read, write = os.pipe()
    capture = Capture(read, log, disk, clock=lambda: 1_000_000_000)
    for number in range(100):
        os.write(write, b"x\n")
        while capture.size < 2 * (number + 1):
            await asyncio.sleep(0)
            capture._read()
    os.close(write)
    await capture.done.wait()
    assert log.with_name("g1.a1.out.idx").stat().st_size == 16


async def test_a_full_disk_drops_output_tells_once_and_goes_on_when_there_is_room(log, disk):
    log.symlink_to("/dev/full")
    told = []
    read, write = os.pipe()
    capture = Capture(read, log, disk, on_trouble=told.append)
    for size in (10, 20):
        before = capture.dropped
        os.write(write, b"x" * size)
        while capture.dropped < before + size:  # the task is not held up
            await asyncio.sleep(0.001)
    assert [(trouble.why, trouble.over) for trouble in told] == [("No space left on device", False)]
    assert "cannot be written (No space left on device): the task goes on" in told[0].message
    log.unlink()  # and now there is room
    os.write(write, b"back\n")
    while not capture.size:
        await asyncio.sleep(0.001)
    os.close(write)
    await capture.done.wait()
    assert log.read_text() == "[phalanx: 30 bytes of output are missing here: No space left on device]\nback\n"
    assert [(trouble.dropped, trouble.over) for trouble in told[1:]] == [(30, True)]
    assert capture.last_line.endswith("back")
    with TimeIndex(log) as index:
        assert index.gaps() == ((0, 30),)
        assert index.time_at(0) > 0


async def test_a_gap_at_the_end_is_in_the_index_too(log, disk):
    log.symlink_to("/dev/full")
    capture = await captured(log, disk, b"lost")
    assert capture.dropped == 4
    with TimeIndex(log) as index:
        assert index.gaps() == ((0, 4),)


async def test_a_folder_that_is_missing_does_not_stop_the_task(tmp_path, disk):
    told = []
    capture = await captured(tmp_path / "no" / "g1.a1.out", disk, b"lost", on_trouble=told.append)
    assert capture.dropped == 4
    assert [trouble.why for trouble in told] == ["No such file or directory"]
    assert capture.last_line == "lost"


async def test_a_log_emptied_to_make_room_starts_a_new_index(log, disk):
    read, write = os.pipe()
    capture = Capture(read, log, disk)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4000, limits[1]))  # the nearest thing to a small disk
    try:
        os.write(write, b"old\n" * 1001)
        while not capture.dropped:
            await asyncio.sleep(0.001)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert (capture.size, capture.dropped) == (4000, 4)
    os.truncate(log, 0)
    os.write(write, b"new\n")
    os.close(write)
    await capture.done.wait()
    with TimeIndex(log) as index:
        told, line = index.lines()
        assert told.data.startswith(b"[phalanx: 4 bytes of output are missing here")
        assert (line.data, line.time) == (b"new\n", index.time_at(line.offset))
        assert told.time > 0
        assert index.gaps() == ((0, 4),)


async def test_a_line_of_ours_tells_what_is_missing_and_stands_alone(log, disk):
    """A soak run lost one line to a full disk, and nothing in the log said so."""
    read, write = os.pipe()
    told = []
    capture = Capture(read, log, disk, on_trouble=told.append)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10, limits[1]))
    try:
        os.write(write, b"epoch 1: lost\n")
        while not capture.dropped:
            await asyncio.sleep(0.001)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    os.write(write, b"epoch 2: kept\n")
    os.close(write)
    await capture.done.wait()
    marker = "[phalanx: 4 bytes of output are missing here: File too large]"
    assert log.read_text() == f"epoch 1: l\n{marker}\nepoch 2: kept\n"
    assert [(trouble.over, trouble.dropped) for trouble in told] == [(False, 4), (True, 4)]
    with TimeIndex(log) as index:
        assert index.gaps() == ((10, 4),)
        assert all(line.time for line in index.lines())


async def test_what_is_missing_at_the_end_is_told_as_soon_as_there_is_room(log, disk):
    read, write = os.pipe()
    capture = Capture(read, log, disk)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4, limits[1]))
    try:
        os.write(write, b"half a line\n")
        while not capture.dropped:
            await asyncio.sleep(0.001)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    os.close(write)
    await capture.done.wait()
    assert log.read_text() == "half\n[phalanx: 8 bytes of output are missing here: File too large]\n"


FLOOD = """
import os, sys
for number in range({lines}):
    os.write(1, b"%08d\\n" % number)
"""


@pytest.mark.real
async def test_a_flood_line_by_line_loses_nothing_and_wakes_us_seldom(log, disk, monkeypatch):
    wakes = 0
    turn = Capture._turn

    def counted(self):
        nonlocal wakes
        wakes += 1
        turn(self)

    monkeypatch.setattr(Capture, "_turn", counted)
    lines = 200_000
    read, write = os.pipe()
    capture = Capture(read, log, disk)
    begin = time.monotonic()
    flood = subprocess.Popen([sys.executable, "-I", "-S", "-c", FLOOD.format(lines=lines)], stdout=write)  # noqa: ASYNC220 - a task
    os.close(write)
    await asyncio.wait_for(capture.done.wait(), 60)
    assert flood.wait() == 0
    assert log.read_bytes() == b"".join(b"%08d\n" % number for number in range(lines))
    assert wakes < 20 + 250 * (time.monotonic() - begin)  # about a hundred a second, not one a line
    assert capture.last_line == f"{lines - 1:08d}"


def test_what_a_terminal_would_show():
    assert shown("plain") == ["plain"]
    assert shown("\x1b[1;31merror\x1b[0m: \x1b]0;title\x07no") == ["error: no"]
    assert shown(" 10%|#  |\r 20%|## |\r100%|###|\nnext\r\n") == ["100%|###|", "next", ""]
    assert shown("\b\b\b\b\r1/10\b\b\b\b\r10/10 - loss: 0.1") == ["10/10 - loss: 0.1"]
    assert shown("bell\x07 and \x00 nul") == ["bell and  nul"]


@given(st.text())
def test_nothing_shown_can_move_the_cursor(text):
    assert all(not (set(line) & set(map(chr, range(32))) - {"\t"}) for line in shown(text))


async def test_last_lines_are_the_last_ones_and_never_half_of_one(log, disk):
    capture = await captured(log, disk, *(b"line %05d\n" % number for number in range(10_000)), b"\n\n")
    assert capture.last_lines(2) == ("line 09998", "line 09999")
    assert capture.last_lines(10**6)[0].startswith("line 0")
    assert len(capture.last_lines(10**6)[0]) == 10
    assert capture.last_lines(0) == ()


async def test_last_lines_of_junk_are_text(log, disk):
    capture = await captured(log, disk, b"\xff\xfe\x00 ok\n", b"\xe2\x82")
    assert capture.last_lines(2) == ("�� ok", "�")


async def test_the_last_line_is_looked_for_a_few_times_a_second(log, disk, monkeypatch):
    looked = 0

    def counted(text):
        nonlocal looked
        looked += 1
        return shown(text)

    monkeypatch.setattr(output, "shown", counted)
    read, write = os.pipe()
    capture = Capture(read, log, disk)
    for number in range(200):
        os.write(write, b"%d\n" % number)
        await asyncio.sleep(0)
        assert capture.last_line is not None
    os.close(write)
    await capture.done.wait()
    assert capture.last_line == "199"
    assert looked <= 4
