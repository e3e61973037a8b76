"""What an agent has said stays on its disk, and is told again to a lead that knows less."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from phalanx.agent import outbox
from phalanx.agent.disk import Disk
from phalanx.agent.journal import Journal
from phalanx.agent.outbox import Outbox


def told(box: Outbox) -> list[int]:
    """The numbers of all that waits, by what was put at each."""
    found = []
    while box.waiting:
        first, batch = box.batch()
        assert [event["n"] for event in batch] == list(range(first, first + len(batch)))
        found += [event["n"] for event in batch]
        box.taken(found[-1])
    return found


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outbox, "KEPT", 3)


async def filled(journal: Journal | None) -> Outbox:
    """Twenty words, all taken: memory keeps a few."""
    box = Outbox(journal)
    for number in range(1, 21):
        box.put({"event": "noted", "n": number, "message": "x"})
        box.taken(number)
    return box


@pytest.mark.usefixtures("few")
async def test_a_lead_that_knows_nothing_is_told_all_of_it_again_from_the_disk(tmp_path: Path):
    disk = Disk(lambda _: None)
    journal = Journal(tmp_path / "0.words", disk)
    box = await filled(journal)
    await box.rewind(0)
    assert told(box) == list(range(1, 21))
    await box.rewind(7)
    assert told(box) == list(range(8, 21))
    journal.close(keep=False)
    assert disk.close()
    assert not os.listdir(tmp_path)  # noqa: PTH208 - as below


@pytest.mark.usefixtures("few")
async def test_without_a_disk_that_takes_it_the_newest_is_told_again_as_far_as_memory_keeps_it(tmp_path: Path):
    disk = Disk(lambda _: None)
    journal = Journal(tmp_path / "no such folder" / "0.words", disk)
    box = await filled(journal)
    await box.rewind(0)
    numbers = told(box)
    assert 3 <= len(numbers) < 20
    assert numbers[-1] == 20
    journal.close(keep=True)
    assert disk.close()


async def test_words_that_no_lead_has_taken_stay_on_the_disk_without_what_looks_like_a_secret(tmp_path: Path):
    path = tmp_path / "0.words"
    disk = Disk(lambda _: None)
    journal = Journal(path, disk)
    box = Outbox(journal)
    box.put({"event": "noted", "message": "AWS_SECRET_ACCESS_KEY=abcdefghijklmnopqrstuvwxyz0123456789ABCD"})
    journal.close(keep=box.waiting > 0)
    assert disk.close()
    text = path.read_text()
    assert text.endswith("}\n")
    assert "abcdefghij" not in text
    assert os.stat(path).st_mode & 0o077 == 0  # noqa: PTH116 - no pathlib in what asyncio runs
