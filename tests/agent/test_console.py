"""A container's log: the records whole and in order, the tasks' lines whole, and nobody who waits for it."""

from __future__ import annotations

import fcntl
import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from launched import wait_for
from phalanx.agent import console
from phalanx.agent.console import RECORD, Console
from phalanx.names import TaskId

W0, W1 = TaskId("worker", 0), TaskId("worker", 1)


class Log:
    """A pipe as a container's standard output is one, and who reads it, or does not."""

    def __init__(self) -> None:
        self.read, self.write = os.pipe()
        fcntl.fcntl(self.write, fcntl.F_SETPIPE_SZ, 4096)
        self.text = b""
        self._reader = threading.Thread(target=self._take, daemon=True)

    def follow(self) -> None:
        self._reader.start()

    def _take(self) -> None:
        while data := os.read(self.read, 1 << 16):
            self.text += data

    def ended(self) -> list[bytes]:
        os.close(self.write)
        self._reader.join(5)
        os.close(self.read)
        return self.text.splitlines()


@pytest.fixture
def log() -> Iterator[Log]:
    return Log()


def test_records_are_told_whole_and_in_order_while_this_host_leads(tmp_path: Path, log: Log):
    leads = False
    records = tmp_path / "events.jsonl"
    made = Console(records, leads=lambda: leads, fd=log.write)
    made.start()
    log.follow()
    with records.open("wb", buffering=0) as file:
        file.write(b'{"seq":1}\n{"seq":2}\n{"se')
        time.sleep(3 * console._LOOK)
        assert log.text == b""  # on a volume of all, another pod's lead tells them
        leads = True
        wait_for(lambda: log.text.count(b"\n") == 2, "two records")
        file.write(b'q":3}\n' + b"".join(b'{"seq":%d,"x":"%s"}\n' % (n, b"y" * n) for n in range(4, 400)))
        made.close(5)
    lines = log.ended()
    assert all(line.startswith(RECORD) for line in lines)
    assert [int(line.partition(b'"seq":')[2].split(b",")[0].rstrip(b"}")) for line in lines] == list(range(1, 400))


def test_what_tasks_say_comes_in_whole_lines_with_the_tasks_name(tmp_path: Path, log: Log):
    made = Console(tmp_path / "none", leads=lambda: False, fd=log.write)
    made.start()
    log.follow()
    one, two = made.stream(W0), made.stream(W1)
    one(b"loss ")
    two(b"a\nb")
    one(b"0.5\n\n")
    two(b"")
    one(b"x" * (console._LINE + 1))
    one(b"y\n")
    made.close(5)
    assert log.ended() == [
        b"worker:1 | a",
        b"worker:0 | loss 0.5",
        b"worker:0 | ",
        b"worker:1 | b",
        b"worker:0 | " + b"x" * (console._LINE + 1),
        b"worker:0 | y",
    ]


def test_a_log_that_takes_nothing_holds_up_nobody_and_says_later_what_is_left_out(tmp_path: Path, log: Log):
    records = tmp_path / "events.jsonl"
    made = Console(records, leads=lambda: True, fd=log.write)
    made.start()
    say = made.stream(W0)
    begun = time.monotonic()
    for _ in range(80):
        say(b"z" * 65_535 + b"\n")
    records.write_bytes(b'{"seq":1}\n' * 1000)
    assert time.monotonic() - begun < 1
    log.follow()
    wait_for(lambda: log.text.count(RECORD) == 1000, "every record")
    wait_for(lambda: made._put == made._took, "the rest")
    say(b"again\n")
    made.close(5)
    lines = log.ended()
    kept = [line for line in lines if line.startswith(b"worker:0 | z")]
    missing = (80 - len(kept)) * 65_535
    assert 0 < missing < 80 * 65_535
    assert lines[-2:] == [
        b"worker:0 | (%d bytes are left out: this log is slow; logs/ has them)" % missing,
        b"worker:0 | again",
    ]


def test_where_nobody_reads_any_more_the_end_is_not_waited_for(tmp_path: Path, log: Log):
    made = Console(tmp_path / "events.jsonl", leads=lambda: True, fd=log.write)
    made.start()
    made.stream(W0)(b"z" * 100_000 + b"\n")
    begun = time.monotonic()
    made.close(0.3)
    assert time.monotonic() - begun < 2
    os.close(log.read)
    made._thread.join(5)
    assert not made._thread.is_alive()
