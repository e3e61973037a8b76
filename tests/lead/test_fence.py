"""A lead that another one has replaced writes no word, gives no order, and ends; its disk may hang meanwhile."""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from pathlib import Path

import pytest

from builders import history
from phalanx import events as ev
from phalanx.lead import main
from phalanx.lead.deposed import DeposedError
from phalanx.lead.keeper import Keeper
from phalanx.lead.lead import Lead
from phalanx.plan.host import Host
from phalanx.protocol.messages import VERSION, Join, Poll
from phalanx.records import scribe
from phalanx.records.folder import RunFolder
from phalanx.records.reader import read_records
from simulated import DAWN, outline


def noted(number: int) -> ev.Record:
    return ev.Record(seq=number, epoch=1, event=ev.Noted(time=DAWN + number, message="something"))


def messages(folder: RunFolder) -> list[int]:
    return [record.seq for record in read_records(folder.events)]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RunFolder:
    monkeypatch.setattr(scribe, "SETTLE", 30.0)  # a machine with other work is no disk that hangs
    return RunFolder.create(tmp_path, "job", DAWN)


async def test_a_replaced_lead_learns_so_from_its_thread_and_is_told_at_each_further_word(folder: RunFolder):
    old = Keeper(folder.path)
    old.append(noted(1))
    await old.settle()
    new = Keeper(folder.path, watch=0.0)
    old.append(noted(2))
    with pytest.raises(DeposedError):
        await old.settle()
    with pytest.raises(DeposedError):
        old.append(noted(3))
    with pytest.raises(DeposedError):
        old.write_report(history(run="r-old").state, None)
    new.append(noted(2))
    old.close()
    new.close()
    assert messages(folder) == [1, 2]
    assert not folder.report.exists()


async def test_a_text_that_was_begun_before_the_fall_is_not_put_in_place_after_it(folder: RunFolder):
    old = Keeper(folder.path)
    state = history(run="r-old").state
    Keeper(folder.path, watch=0.0).close()
    old.write_report(state, None)
    with pytest.raises(DeposedError):
        await old.settle()
    old.close()
    assert not folder.report.exists()


async def test_a_replaced_lead_orders_nothing_and_ends_as_deposed(folder: RunFolder):
    keeper = Keeper(folder.path)
    lead = Lead(outline(), run=folder.run, epoch=1, records=keeper, clock=lambda: DAWN)
    over = asyncio.ensure_future(lead.run_until_ended())
    await asyncio.sleep(0)  # it has said that the run has started
    about = Host(id=0, name="n0", address="10.0.0.1", ports=tuple(range(20000, 20008)))
    lead.join(Join(version=VERSION, run=folder.run, instance="i", host=about, pid=1))
    await lead.settle()
    Keeper(folder.path, watch=0.0).close()
    with contextlib.suppress(DeposedError):  # as soon as its thread has found out
        lead.people.stop(by="somebody", hard=True)
    with pytest.raises(DeposedError):
        await lead.orders(Poll(instance="i", host=0, after=0))
    with pytest.raises(DeposedError):
        async with asyncio.timeout(5):
            await over
    keeper.close()


async def test_a_replaced_lead_that_has_nothing_to_say_and_that_nobody_asks_ends_all_the_same(folder: RunFolder):
    keeper = Keeper(folder.path)
    lead = Lead(outline(), run=folder.run, epoch=1, records=keeper, clock=lambda: DAWN)
    over = asyncio.ensure_future(lead.run_until_ended())
    ruling = asyncio.ensure_future(main.rule(lead, keeper.holds))
    await asyncio.sleep(0)  # it has said that the run has started, and waits for hosts
    Keeper(folder.path, watch=0.0).close()
    with pytest.raises(DeposedError):
        async with asyncio.timeout(10):
            await over
    await ruling
    keeper.close()


async def test_a_disk_that_hangs_holds_up_no_loop_and_no_sign_of_life_but_its_own(
    folder: RunFolder, monkeypatch: pytest.MonkeyPatch
):
    """Neither the thread that writes nor the look at `lead.json` comes back; answers go out all the same."""
    monkeypatch.setattr(scribe, "SETTLE", 0.2)
    keeper, stuck = Keeper(folder.path), threading.Event()
    lead = Lead(outline(), run=folder.run, epoch=1, records=keeper, clock=lambda: DAWN)
    asked = []

    def holds() -> bool:
        asked.append(1)
        stuck.wait(10)
        return False

    keeper._log.fence = lambda: stuck.wait(10)
    ruling = asyncio.ensure_future(main.rule(lead, holds))
    keeper.append(noted(1))
    before = time.monotonic()
    for _ in range(5):
        await keeper.settle()
    assert time.monotonic() - before < 3
    assert len(asked) == 1
    assert not ruling.done()
    stuck.set()
    await ruling
    with pytest.raises(DeposedError):
        lead.check_epoch(1)
    keeper.close()
    assert messages(folder) == [1]


async def test_a_lead_whose_writing_hangs_still_gives_signs_of_life(folder: RunFolder, monkeypatch: pytest.MonkeyPatch):
    """So that a newcomer, who finds the records held, leaves it alone."""
    monkeypatch.setattr(main, "BEAT", 0.02)
    keeper, stuck = Keeper(folder.path), threading.Event()
    keeper._log.fence = lambda: stuck.wait(10)
    keeper.append(noted(1))
    ruling = asyncio.ensure_future(main.rule(Lead(outline(), run="r", epoch=1, records=keeper), keeper.holds))
    with pytest.raises(DeposedError, match="a lead that lives"):
        await asyncio.to_thread(Keeper, folder.path, watch=5.0)
    ruling.cancel()
    stuck.set()
    keeper.close()
