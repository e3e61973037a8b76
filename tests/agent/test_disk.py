"""A disk that hangs holds up its own thread and nobody else; people hear of it when it lasts, and when it is over."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from phalanx.agent import disk as module
from phalanx.agent import output
from phalanx.agent.disk import Disk
from phalanx.agent.logfile import Trouble
from phalanx.agent.output import Capture
from phalanx.records.timeindex import TimeIndex


class Hanging:
    """A disk that takes nothing from `hang` to `free`, on a clock of its own."""

    def __init__(self) -> None:
        self.told: list[str] = []
        self.now = 0.0
        self.disk = Disk(self.told.append, clock=lambda: self.now)
        self._free = threading.Event()

    def hang(self) -> None:
        self._free.clear()
        begun = threading.Event()
        self.disk.put(lambda: (begun.set(), self._free.wait(60)))
        assert begun.wait(30)

    def free(self) -> None:
        self._free.set()

    async def waits(self, seconds: float) -> None:
        """So long by the clock; a look every half second."""
        for _ in range(int(seconds / 0.5)):
            self.now += 0.5
            self.disk._look()
            await asyncio.sleep(0)


@pytest.fixture
def hanging(monkeypatch) -> Iterator[Hanging]:
    monkeypatch.setattr(module, "LOOK", 0.5)
    made = Hanging()
    yield made
    made.free()


async def finished(hanging: Hanging) -> None:
    """Until the disk has done all."""
    await asyncio.wait_for(hanging.disk.ask(lambda: None), 5)
    hanging.disk._look()


async def test_a_disk_that_hangs_is_told_once_and_again_when_it_is_back(hanging):
    hanging.hang()
    await hanging.waits(4.5)
    assert hanging.told == []
    await hanging.waits(10)
    [told] = hanging.told
    assert "has taken nothing for 5 s: tasks go on" in told
    hanging.free()
    await finished(hanging)
    assert hanging.told[1:] == ["the disk of the run's folder works again, after 14 s"]


async def test_an_agent_that_was_frozen_itself_accuses_no_disk(hanging):
    hanging.hang()
    hanging.now += 60  # nobody looked meanwhile
    hanging.disk._look()
    assert (hanging.disk.hangs, hanging.told) == (False, [])


async def test_nobody_waits_for_a_disk_that_hangs(hanging):
    hanging.hang()
    assert not hanging.disk.hangs
    waiting = asyncio.ensure_future(hanging.disk.settle(60))
    await hanging.waits(2)
    assert hanging.disk.hangs
    await asyncio.wait_for(waiting, 5)
    await asyncio.wait_for(hanging.disk.settle(60), 5)


async def test_what_is_put_is_settled_in_order_on_a_disk_that_works(disk):
    done: list[int] = []
    for number in range(100):
        disk.put(lambda number=number: done.append(number))
    await disk.settle(5)
    assert done == list(range(100))


async def test_a_job_that_fails_stops_none_of_the_others(disk, capsys):
    disk.put(lambda: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        await disk.ask(lambda: 1 / 0)
    assert await disk.ask(lambda: 7) == 7
    assert "ZeroDivisionError" in capsys.readouterr().err


async def test_the_end_waits_for_a_disk_that_hangs_only_so_long(monkeypatch):
    monkeypatch.setattr(module, "STUCK", 0.1)
    disk, free = Disk(lambda _: None), threading.Event()
    disk.put(lambda: free.wait(30))
    assert not disk.close()
    free.set()
    assert disk.close()


class Talk:
    """One stream, written by the test."""

    def __init__(self, hanging: Hanging, log: Path) -> None:
        read, self.write = os.pipe()
        self.troubles: list[Trouble] = []
        hanging.disk.put(lambda: None)
        self.capture = Capture(read, log, hanging.disk, on_trouble=self.troubles.append)
        os.set_blocking(self.write, False)

    async def say(self, data: bytes) -> None:
        while data:
            try:
                data = data[os.write(self.write, data) :]
            except BlockingIOError:
                await asyncio.sleep(0.001)

    async def end(self) -> None:
        os.close(self.write)
        await asyncio.wait_for(self.capture.done.wait(), 5)


async def test_what_is_said_while_the_disk_hangs_is_written_when_it_is_back(hanging, tmp_path):
    talk = Talk(hanging, tmp_path / "log")
    await talk.say(b"before\n")
    hanging.hang()
    await talk.say(b"meanwhile\n")
    while talk.capture.last_line != "meanwhile":  # known here at once
        await asyncio.sleep(0.01)
    await hanging.waits(20)
    hanging.free()
    await talk.say(b"after\n")
    await talk.end()
    assert (tmp_path / "log").read_bytes() == b"before\nmeanwhile\nafter\n"
    assert (talk.capture.dropped, talk.troubles) == (0, [])


async def test_a_slow_disk_holds_a_flood_up_and_loses_nothing(hanging, tmp_path, monkeypatch):
    monkeypatch.setattr(output, "WAITING", 1 << 16)
    talk = Talk(hanging, tmp_path / "log")
    hanging.hang()
    flood = asyncio.ensure_future(talk.say((b"x" * 63 + b"\n") * (1 << 16)))  # 4 MiB
    await asyncio.sleep(0.2)
    assert not flood.done()  # as a terminal would
    hanging.free()
    await asyncio.wait_for(flood, 10)
    await talk.end()
    assert ((tmp_path / "log").stat().st_size, talk.capture.dropped) == (1 << 22, 0)


async def test_a_disk_that_hangs_for_long_holds_nobody_up_and_the_log_says_what_is_missing(
    hanging, tmp_path, monkeypatch
):
    monkeypatch.setattr(output, "WAITING", 1 << 16)
    talk, log = Talk(hanging, tmp_path / "log"), tmp_path / "log"
    hanging.hang()
    line = b"x" * 63 + b"\n"
    flood = asyncio.ensure_future(talk.say(line * (1 << 16)))
    await hanging.waits(3)
    await asyncio.wait_for(flood, 10)
    while talk.capture.dropped < 1 << 20:
        await asyncio.sleep(0.01)
    hanging.free()
    await finished(hanging)
    await talk.say(b"after\n")
    await talk.end()
    dropped = talk.capture.dropped
    with TimeIndex(log) as index:
        [(offset, missing)] = index.gaps()
        lines = list(index.lines())
    [told] = [each for each in lines if each.data.startswith(b"[phalanx")]
    kept = [each.data for each in lines if each is not told]
    assert missing == dropped
    assert told.offset == offset
    assert told.data.decode() == (
        f"[phalanx: {dropped:,} bytes of output are missing here: the disk took nothing for too long]\n"
    )
    assert set(kept) == {line, b"after\n"}
    assert sum(map(len, kept)) + dropped == (1 << 22) + len(b"after\n")
    assert all(each.time for each in lines)
    assert [(trouble.over, trouble.dropped) for trouble in talk.troubles] == [(False, dropped), (True, dropped)]


async def test_what_is_missing_at_the_end_of_a_hanging_disk_is_said_there(hanging, tmp_path, monkeypatch):
    monkeypatch.setattr(output, "WAITING", 1 << 16)
    talk = Talk(hanging, tmp_path / "log")
    hanging.hang()
    flood = asyncio.ensure_future(talk.say(b"x" * (1 << 21)))
    await hanging.waits(3)
    await asyncio.wait_for(flood, 10)
    os.close(talk.write)
    while not talk.capture._ended:
        await asyncio.sleep(0.01)
    hanging.free()
    await asyncio.wait_for(talk.capture.done.wait(), 5)
    text = (tmp_path / "log").read_text()
    assert text.endswith(
        f"{talk.capture.dropped:,} bytes of output are missing here: the disk took nothing for too long]\n"
    )
