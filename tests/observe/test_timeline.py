"""The merged timeline: nothing lost, nothing twice, in the order in which it came, also while logs grow."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders import DAWN
from phalanx.errors import InputError
from phalanx.names import TaskId
from phalanx.observe.since import parse_since
from phalanx.observe.timeline import HOLD, Growing, Line, merged
from phalanx.observe.words import duration, size, stamp, uptime, visible
from phalanx.records.folder import LogFile, RunFolder
from phalanx.records.timeindex import record

SECOND = 1_000_000_000


class Log:
    """A log and its index, written as an agent does."""

    def __init__(self, folder: Path, task: str, stream: str = "out") -> None:
        name = TaskId.parse(task)
        path = RunFolder(folder).log(name, generation=1, attempt=1, stream=stream)
        path.parent.mkdir(parents=True, exist_ok=True)
        self.file = LogFile(task=name, generation=1, attempt=1, stream=stream, path=path)

    def wrote(self, ns: int, data: bytes) -> None:
        path = self.file.path
        offset = path.stat().st_size if path.exists() else 0
        with self.file.index.open("ab") as index:
            index.write(record(offset, ns))
        with path.open("ab") as log:
            log.write(data)


def texts(lines: list[Line]) -> list[str]:
    return [f"{line.log.task} {line.text}" for line in lines]


def test_lines_of_several_tasks_come_in_the_order_of_time(tmp_path: Path):
    one, two, err = Log(tmp_path, "worker:0"), Log(tmp_path, "worker:1"), Log(tmp_path, "worker:1", "err")
    one.wrote(10, b"a\nb\n")
    two.wrote(11, b"c\n")
    err.wrote(12, b"d\n")
    one.wrote(13, b"e\nlast")
    found = list(merged([one.file, two.file, err.file]))
    assert texts(found) == ["worker:0 a", "worker:0 b", "worker:1 c", "worker:1 d", "worker:0 e", "worker:0 last"]
    assert [line.ns for line in found] == [10, 10, 11, 12, 13, 13]
    assert texts(list(merged([one.file, two.file, err.file], since=12))) == [
        "worker:1 d",
        "worker:0 e",
        "worker:0 last",
    ]


def test_a_log_that_is_not_there_or_has_no_index_hinders_nobody(tmp_path: Path):
    one, two, none = Log(tmp_path, "worker:0"), Log(tmp_path, "worker:1"), Log(tmp_path, "worker:2")
    one.file.path.write_bytes(b"no index\n")
    two.wrote(5, b"x\n")
    found = list(merged([one.file, two.file, none.file]))
    assert texts(found) == ["worker:1 x", "worker:0 no index"]
    assert found[1].ns == one.file.path.stat().st_mtime_ns


WRITES = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 3), st.binary(max_size=300)), max_size=40)


def expected(writes: list[tuple[int, int, bytes]], number: int) -> list[bytes]:
    whole = b"".join(data for log, _, data in writes if log == number)
    lines = whole.split(b"\n")
    return lines if lines[-1] else lines[:-1]


@given(WRITES)
def test_nothing_is_lost_and_each_log_keeps_its_order(tmp_path_factory: pytest.TempPathFactory, writes: list):
    folder = tmp_path_factory.mktemp("merged")
    logs = [Log(folder, f"worker:{number}") for number in range(3)]
    now = 1
    for number, later, data in writes:
        now += later
        logs[number].wrote(now, data)
    found = list(merged(log.file for log in logs))
    assert [line.ns for line in found] == sorted(line.ns for line in found)
    for number, log in enumerate(logs):
        assert [line.data for line in found if line.log == log.file] == expected(writes, number)


@given(WRITES, st.integers(1, 5))
def test_following_shows_the_same_lines_once(tmp_path_factory: pytest.TempPathFactory, writes: list, pace: int):
    folder = tmp_path_factory.mktemp("growing")
    logs = [Log(folder, f"worker:{number}") for number in range(3)]
    files = [log.file for log in logs]
    growing = Growing()
    now, found = SECOND, []
    for look, (number, later, data) in enumerate(writes):
        now += later * HOLD // 2
        logs[number].wrote(now, data)
        if look % pace == 0:
            found += growing.new(files, now=now)
    found += growing.new(files, now=now, last=True)
    for number, log in enumerate(logs):
        assert [line.data for line in found if line.log == log.file] == expected(writes, number)


def test_a_young_line_waits_for_an_earlier_one_of_another_task(tmp_path: Path):
    one, two = Log(tmp_path, "worker:0"), Log(tmp_path, "worker:1")
    growing = Growing()
    one.wrote(SECOND + 5, b"later\n")
    assert list(growing.new([one.file], now=SECOND + 10)) == []
    two.wrote(SECOND + 1, b"earlier\n")
    found = list(growing.new([one.file, two.file], now=SECOND + HOLD + 10))
    assert texts(found) == ["worker:1 earlier", "worker:0 later"]
    assert list(growing.new([one.file, two.file], now=SECOND + HOLD + 10)) == []


def test_a_log_longer_than_a_batch_is_read_whole(tmp_path: Path):
    log = Log(tmp_path, "worker:0")
    for number in range(1000):
        log.wrote(number, b"%d\n" % number)
    assert [line.text for line in merged([log.file])] == [str(number) for number in range(1000)]
    assert [line.ns for line in merged([log.file], since=995)] == [995, 996, 997, 998, 999]


@pytest.mark.parametrize(("text", "seconds"), [("90s", 90), ("5m", 300), ("2h", 7200), ("1d", 86400), ("1.5m", 90)])
def test_since_a_while_ago(text: str, seconds: float):
    assert parse_since(text, DAWN) == int((DAWN - seconds) * SECOND)


@pytest.mark.parametrize("text", ["2026-11-30T07:00:00", "2026-11-30 07:00", "2026-11-30T08:00:00+01:00"])
def test_since_a_date(text: str):
    assert parse_since(text, 0.0) == int(DAWN) * SECOND


@pytest.mark.parametrize("text", ["5", "yesterday", "5 m", "", "-5m", "9999-99-99"])
def test_since_nonsense_says_how_to_write_it(text: str):
    with pytest.raises(InputError, match="is no point in time") as wrong:
        parse_since(text, DAWN)
    assert "5m" in (wrong.value.hint or "")


def test_times_and_sizes_in_words():
    assert [duration(s) for s in (-1, 0.04, 59.94, 61, 3700, 90061)] == [
        "0.0 s",
        "0.0 s",
        "59.9 s",
        "1 min 01 s",
        "1 h 01 min",
        "1 d 1 h",
    ]
    assert [uptime(s) for s in (0, 62.9, 3787)] == ["0:00", "1:02", "1:03:07"]
    assert [size(n) for n in (0, 999, 1000, 12_345_678, 10**13)] == ["0 B", "999 B", "1.0 kB", "12.3 MB", "10.0 TB"]
    assert stamp(int(DAWN) * SECOND + 42_999_999) == "2026-11-30T07:00:00.042+00:00"


@given(st.text())
def test_a_visible_line_has_no_control_but_the_tab(text: str):
    shown = visible(text)
    assert "\x1b" not in shown
    assert not any(ord(char) < 32 and char != "\t" for char in shown if char != "\n")
