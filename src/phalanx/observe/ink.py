"""Colour, where the other end is a terminal that wants it."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping
from typing import TextIO

_CODES = {"bold": 1, "dim": 2, "red": 31, "green": 32, "yellow": 33, "blue": 34, "magenta": 35, "cyan": 36}
#: Which colours tell tasks apart; red is for failures.
_TASKS = ("cyan", "green", "magenta", "blue", "yellow")


@dataclasses.dataclass(frozen=True, slots=True)
class Ink:
    """Paints words. `on=False` gives them back as they are."""

    on: bool = False

    @classmethod
    def of(cls, stream: TextIO | None, environ: Mapping[str, str] = os.environ) -> Ink:
        """On for a terminal, unless NO_COLOR is set to anything, or the terminal is dumb. A closed stream is none."""
        if stream is None or stream.closed:
            return cls()
        return cls(stream.isatty() and not environ.get("NO_COLOR") and environ.get("TERM") != "dumb")

    def __call__(self, text: str, *colours: str) -> str:
        """`text` in those colours: bold, dim, red, green, yellow, blue, magenta, cyan."""
        if not self.on or not colours or not text:
            return text
        return f"\x1b[{';'.join(str(_CODES[colour]) for colour in colours)}m{text}\x1b[0m"

    def task(self, text: str, number: int) -> str:
        """`text` in the colour of the task with this number: neighbours differ."""
        return self(text, _TASKS[number % len(_TASKS)])
