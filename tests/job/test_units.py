from __future__ import annotations

import hypothesis.strategies as st
import pytest
from hypothesis import given

from outlines import unhurried
from phalanx.job import units


@pytest.mark.parametrize(
    ("written", "seconds"),
    [
        (90, 90),
        (0.5, 0.5),
        (0, 0),
        ("90", 90),
        ("30s", 30),
        ("5m", 300),
        ("1h30m", 5400),
        ("1h30m15s", 5415),
        ("2d", 172800),
        ("1.5h", 5400),
        ("500ms", 0.5),
        ("12:30:00", 45000),
        ("0:00:30", 30),
        (" 5M ", 300),
    ],
)
def test_durations_are_read_as_people_write_them(written, seconds):
    assert units.seconds(written) == seconds


@pytest.mark.parametrize(
    "written",
    ["", "5 parsecs", "m", "-5", -1, True, None, [], "1m1h", "12:61:00", "nan", float("nan"), float("inf"), "400d"],
)
def test_what_is_no_duration_is_refused_with_the_forms(written):
    with pytest.raises(ValueError, match=r"no duration.*write 90"):
        units.seconds(written)


@unhurried
@given(st.integers(0, 30 * 86400 * 1000))
def test_a_duration_in_words_is_the_same_duration(milliseconds):
    exact = milliseconds / 1000
    assert units.seconds(units.in_words(exact)) == pytest.approx(exact, rel=1e-3, abs=1e-3)


@pytest.mark.parametrize(("seconds", "words"), [(0, "0s"), (0.5, "0.5s"), (300, "5m"), (5400, "1h30m"), (86400, "1d")])
def test_durations_in_words_are_short(seconds, words):
    assert units.in_words(seconds) == words


@pytest.mark.parametrize(
    ("written", "size"),
    [
        (1024, 1024),
        ("1024", 1024),
        ("32Gi", 32 << 30),
        ("32GiB", 32 << 30),
        ("512MB", 512_000_000),
        ("512M", 512_000_000),
        ("1.5Gi", 3 << 29),
        ("8 Gi", 8 << 30),
        ("64k", 64_000),
    ],
)
def test_sizes_are_read_as_people_write_them(written, size):
    assert units.size(written) == size


@pytest.mark.parametrize("written", ["", "big", "-1", -1, True, 1.5, "1X", "Gi"])
def test_what_is_no_size_is_refused_with_the_forms(written):
    with pytest.raises(ValueError, match="no size; write 32Gi"):
        units.size(written)
