"""A picture that has the terminal's second screen to itself, as a pager has.

There it can be drawn anew from the corner whatever a change of size has made of the old one: on the first screen the
terminal breaks lines anew, in its own time, and nobody knows where the picture then begins.
"""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console, Group
from rich.text import Text

_ENTER, _LEAVE = "\x1b[?1049h\x1b[?25l", "\x1b[?25h\x1b[?1049l"
_CORNER, _END_OF_LINE, _BELOW = "\x1b[H", "\x1b[K", "\x1b[J"
#: A line that is too long, since the terminal has just got narrower, is cut and takes no second row.
_CUT, _WRAP = "\x1b[?7l", "\x1b[?7h"


class Screen:
    """Draws lines from the corner. What the terminal showed before is back after `clear`."""

    def __init__(self, console: Console) -> None:
        """The terminal is as it was until the first `draw`."""
        self._console = console
        self._entered = False
        #: The size for which was drawn last, in columns and rows.
        self.size: tuple[int, int] = (0, 0)

    def draw(self, picture: Sequence[Text]) -> None:
        """`picture` in one write, a line each, as far as there are rows."""
        width, height = self._console.size
        self.size = (width, height)
        with self._console.capture() as captured:
            self._console.print(Group(*picture[:height]), end="")
        text = captured.get().rstrip("\n").replace("\n", f"{_END_OF_LINE}\n")
        start = "" if self._entered else _ENTER
        self._entered = True
        self._write(f"{start}{_CUT}{_CORNER}{text}{_END_OF_LINE}{_BELOW}{_WRAP}")

    def clear(self) -> None:
        """Give the terminal back as it was. Idempotent."""
        if self._entered:
            self._entered = False
            self._write(f"{_CORNER}{_BELOW}{_LEAVE}")  # empty: some terminals keep lines of a screen they leave

    def _write(self, text: str) -> None:
        self._console.file.write(text)
        self._console.file.flush()
