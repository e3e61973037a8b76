"""A model by flags: how numbers are read, and what is refused."""

from __future__ import annotations

import pytest

from phalanx.errors import InputError
from phalanx.sizing import given


@pytest.mark.parametrize(("text", "number"), [("25M", 25e6), ("1.5B", 1.5e9), ("4000", 4000), ("10k", 1e4)])
def test_parameters_are_read_as_people_write_them(text, number):
    assert given.count("--parameters", text) == number


@pytest.mark.parametrize(
    ("text", "rate"),
    [("10Gbit", 1.25e9), ("100Mbit", 1.25e7), ("1.25GB", 1.25e9), ("25Gbit/s", 3.125e9), ("10Gb", 1.25e9)],
)
def test_a_bandwidth_is_bits_or_bytes(text, rate):
    assert given.rate("--bandwidth", text) == rate


def test_tables_touch_a_row_for_each_id_of_each_example():
    model = given.model(parameters="1M", tables=["10Mx64", "1kx8"], optimizer="adam", batch=256, ids=20)
    assert [(one.rows, one.bytes, one.touched) for one in model.tables] == [
        (10**7, 2_560_000_000, 5120),
        (1000, 32_000, 5120),
    ]
    assert model.dense == 4_000_000
    assert model.slots == 2 * model.bytes


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"tables": ["10M"]}, "--tables 10M: not ROWSxCOLUMNS"),
        ({"tables": ["x"]}, "--tables x: not ROWSxCOLUMNS"),
        ({"tables": ["0x64"]}, "--tables 0x64: must have a row and a column"),
        ({"tables": ["10Mx0"]}, "--tables 10Mx0: must have a row and a column"),
        ({"tables": ["9" * 20 + "x" + "9" * 17]}, "--tables 999"),
        ({"tables": ["9" * 400 + "x1"]}, "--tables 999"),
        ({"parameters": "9" * 26 + "T"}, "--parameters 999"),
        ({"parameters": "9" * 400}, "--parameters 999"),
        ({"parameters": "0"}, "--parameters 0: must be from 1 to 100T parameters"),
        ({"parameters": "many"}, "--parameters many: not a number"),
        ({"optimizer": "adma", "parameters": "1M"}, "--optimizer adma: none of sgd"),
        ({}, "there is nothing to train"),
    ],
)
def test_what_cannot_be_read_is_refused_with_its_flag(more, said):
    flags = {"parameters": None, "tables": [], "optimizer": "sgd", "batch": 8, **more}
    with pytest.raises(InputError) as wrong:
        given.model(**flags)
    assert str(wrong.value).startswith(said)
    assert wrong.value.hint


def test_whoever_mistypes_a_table_is_shown_how_a_table_is_written():
    with pytest.raises(InputError) as wrong:
        given.model(parameters=None, tables=["x"], optimizer="sgd", batch=8)
    assert "10Mx64" in str(wrong.value.hint)


def test_a_bandwidth_beyond_all_numbers_is_none():
    with pytest.raises(InputError, match="not a bandwidth"):
        given.rate("--bandwidth", "9" * 400 + "Gbit")
