"""A view's stream may fail: what was said, what is dropped, and that nothing is raised."""

from __future__ import annotations

import io
import os
import sys

from phalanx.observe.outlet import Outlet


class Breaks(io.StringIO):
    """Takes `room` writes, then none."""

    def __init__(self, room: int, wrong: OSError) -> None:
        super().__init__()
        self.room, self.wrong = room, wrong

    def write(self, text: str) -> int:
        self.room -= 1
        if self.room < 0:
            raise self.wrong
        return super().write(text)


def test_a_reader_that_has_gone_is_told_once_and_the_rest_is_dropped():
    told: list[str] = []
    stream = Breaks(1, BrokenPipeError(32, "Broken pipe"))
    out = Outlet(stream, told.append)
    for line in ("one\n", "two\n", "three\n"):
        assert out.write(line) == len(line)
        out.flush()
    assert stream.getvalue() == "one\n"
    assert told == ["Broken pipe"]
    assert not out.isatty()


def test_what_the_stream_still_holds_goes_nowhere():
    reader, writer = os.pipe()
    os.close(reader)
    told: list[str] = []
    with os.fdopen(writer, "w") as stream:
        out = Outlet(stream, told.append)
        out.write("kept in the buffer\n")
        out.flush()
        stream.flush()  # as the interpreter does at its end
    assert told == ["Broken pipe"]


def test_a_stream_that_is_not_there_drops_everything():
    closed = io.StringIO()
    closed.close()
    for stream in (None, closed):
        told: list[str] = []
        out = Outlet(stream, told.append)
        out.write("x")
        out.flush()
        assert not out.isatty()
        assert told == []


def test_an_outlet_is_as_its_stream_is():
    out = Outlet(sys.__stdout__)
    assert sys.__stdout__ is not None
    assert out.encoding == sys.__stdout__.encoding
    assert out.fileno() == sys.__stdout__.fileno()
