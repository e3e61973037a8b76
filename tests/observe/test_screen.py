"""The picture on its own screen: whatever a change of size has left there, the next one stands alone."""

from __future__ import annotations

import io
import re

import pytest
from rich.console import Console
from rich.text import Text

from phalanx.observe.screen import Screen


class Terminal(io.StringIO):
    """Enough of one: two screens of rows, a cursor, and what a Screen says to it."""

    def __init__(self, width: int, height: int = 6) -> None:
        super().__init__()
        self.width, self.height = width, height
        self.first = self.rows = ["$ phalanx run"]
        self.row = self.column = 0
        self.cursor = self.wraps = True

    def mess_up(self) -> None:
        """What a terminal may make of its rows when it is resized: anything."""
        self.rows[:] = ["stale" * 9] * self.height
        self.row, self.column = self.height - 1, 3

    def write(self, text: str) -> int:
        for piece in re.findall(r"\x1b\[\??\d*[A-Za-z]|\n|[^\x1b\n]+", text):
            match piece.removeprefix("\x1b["):
                case "?1049h":
                    self.rows = []
                case "?1049l":
                    self.rows = self.first
                case "?25l" | "?25h":
                    self.cursor = piece.endswith("h")
                case "?7l" | "?7h":
                    self.wraps = piece.endswith("h")
                case "H":
                    self.row = self.column = 0
                case "K":
                    self.rows[self.row] = self.rows[self.row][: self.column]
                case "J":
                    self.rows[self.row :] = [self.rows[self.row][: self.column]]
                case "\n":
                    self.row, self.column = self.row + 1, 0
                case _:
                    assert not piece.startswith("\x1b")
                    assert not self.wraps
                    self.rows += [""] * (self.row + 1 - len(self.rows))
                    row = self.rows[self.row]
                    self.rows[self.row] = (row[: self.column] + piece + row[self.column + len(piece) :])[: self.width]
                    self.column = min(self.column + len(piece), self.width)
        return len(text)


def console(terminal: Terminal) -> Console:
    return Console(file=terminal, force_terminal=True, width=terminal.width, height=terminal.height, color_system=None)


@pytest.mark.parametrize("widths", [(80, 30, 80), (80, 79, 20, 10), (30, 80)])
def test_a_terminal_of_another_size_shows_one_picture(widths: tuple[int, ...]):
    terminal = Terminal(widths[0])
    made = console(terminal)
    screen = Screen(made)
    for number, width in enumerate(widths):
        terminal.width = made.width = width
        picture = [Text(f"{number}{name}" * 100)[: width - 1] for name in "abc"]
        screen.draw(picture)
        assert terminal.rows == [line.plain for line in picture]
        assert not terminal.cursor
        assert screen.size == (width, 6)
        terminal.mess_up()
    screen.clear()
    screen.clear()
    assert terminal.rows == ["$ phalanx run"]
    assert terminal.cursor
    assert terminal.wraps


def test_a_shorter_picture_leaves_nothing_of_the_longer_one():
    terminal = Terminal(40)
    screen = Screen(console(terminal))
    screen.draw([Text("long line"), Text("second"), Text("third")])
    screen.draw([Text("short")])
    assert terminal.rows == ["short"]


def test_a_picture_has_no_more_lines_than_the_terminal_has_rows():
    terminal = Terminal(40, height=2)
    Screen(console(terminal)).draw([Text(name) for name in "abc"])
    assert terminal.rows == ["a", "b"]
