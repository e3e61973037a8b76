"""Lines get the time at which they came, from any place in a log, while it grows, however long they are."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from phalanx.records import timeindex
from phalanx.records.timeindex import TimeIndex, gap, record

SECOND = 10**9


@pytest.fixture
def log(tmp_path):
    return tmp_path / "g1.a1.out"


def write(log, data: bytes, records: bytes) -> None:
    with log.open("ab") as file:
        file.write(data)
    with log.with_name(log.name + ".idx").open("ab") as file:
        file.write(records)


def test_a_record_is_two_little_endian_numbers_of_eight_bytes():
    assert record(1, 2) == b"\1\0\0\0\0\0\0\0\2\0\0\0\0\0\0\0"
    assert gap(1, 2) == b"\1\0\0\0\0\0\0\x80\2\0\0\0\0\0\0\0"


def test_a_byte_has_the_time_of_the_record_before_it(log):
    write(log, b"abcdef", record(0, 5 * SECOND) + record(3, 6 * SECOND))
    with TimeIndex(log) as index:
        assert [index.time_at(offset) // SECOND for offset in range(7)] == [5, 5, 5, 6, 6, 6, 6]
        assert [index.offset_at(second * SECOND) for second in (0, 5, 6, 7)] == [0, 0, 3, 6]


def test_a_gap_has_no_time_of_its_own(log):
    write(log, b"abcdef", record(0, 5 * SECOND) + gap(3, 99) + record(3, 6 * SECOND))
    with TimeIndex(log) as index:
        assert [index.time_at(offset) // SECOND for offset in (2, 3)] == [5, 6]
        assert index.offset_at(6 * SECOND) == 3
        assert index.gaps() == ((3, 99),)


def test_a_log_without_an_index_has_lines_without_time(log):
    log.write_bytes(b"a\nb\n")
    with TimeIndex(log) as index:
        assert [(line.time, line.data) for line in index.lines()] == [(0, b"a\n"), (0, b"b\n")]
        assert index.gaps() == ()


def test_a_missing_log_is_said_so(log):
    with pytest.raises(FileNotFoundError):
        TimeIndex(log)


def test_a_record_that_is_half_written_is_not_read(log):
    write(log, b"abc", record(0, SECOND) + record(1, 2 * SECOND)[:9])
    with TimeIndex(log) as index:
        assert index.time_at(2) == SECOND


def test_a_growing_log_is_followed_by_the_end_of_the_last_line(log):
    write(log, b"one\ntw", record(0, SECOND))
    with TimeIndex(log) as index:
        (line,) = index.lines()
        assert list(index.lines(line.end)) == []
        write(log, b"o\nthree", record(6, 2 * SECOND))
        (line,) = index.lines(line.end)
        assert (line.time, line.data) == (SECOND, b"two\n")  # the time of its first byte
        (line,) = index.lines(line.end, final=True)
        assert (line.time, line.data) == (2 * SECOND, b"three")


def test_an_index_that_appears_after_the_log_is_found(log):
    log.write_bytes(b"a\n")
    with TimeIndex(log) as index:
        assert index.time_at(0) == 0
        write(log, b"", record(0, SECOND))
        assert index.time_at(0) == SECOND


def test_since_begins_with_the_line_that_was_not_finished_then(log):
    write(log, b"one\ntwo\nthree\n", record(0, SECOND) + record(6, 2 * SECOND))
    with TimeIndex(log) as index:
        assert [line.data for line in index.lines(since=2 * SECOND)] == [b"two\n", b"three\n"]
        assert [line.data for line in index.lines(since=0)] == [b"one\n", b"two\n", b"three\n"]
        assert [line.data for line in index.lines(since=3 * SECOND)] == []


def test_a_line_longer_than_memory_likes_comes_in_pieces(log, monkeypatch):
    monkeypatch.setattr(timeindex, "LONGEST", 1000)
    monkeypatch.setattr(timeindex, "_BLOCK", 256)
    data = b"x" * 2500 + b"\nshort\n"
    write(log, data, record(0, SECOND))
    with TimeIndex(log) as index:
        lines = list(index.lines())
    assert b"".join(line.data for line in lines) == data
    assert max(len(line.data) for line in lines) <= 1000
    assert [line.data.endswith(b"\n") for line in lines] == [False, False, True, True]


@given(
    lines=st.lists(st.binary(max_size=40).map(lambda line: line.replace(b"\n", b"") + b"\n"), max_size=30),
    cuts=st.lists(st.integers(1, 60), max_size=30),
)
def test_every_line_has_the_time_of_its_first_byte_however_it_was_cut(tmp_path_factory, lines, cuts):
    data = b"".join(lines)
    log = tmp_path_factory.mktemp("log") / "out"
    offsets, offset = [], 0
    for cut in [*cuts, len(data)]:
        if offset < len(data):
            offsets.append(offset)
        offset += cut
    write(log, data, b"".join(record(offset, number + 1) for number, offset in enumerate(offsets)))
    with TimeIndex(log) as index:
        read = list(index.lines())
        assert [line.data for line in read] == lines
        for line in read:
            assert line.time == index.time_at(line.offset) == sum(offset <= line.offset for offset in offsets)
            assert next(iter(index.lines(line.offset))) == line
