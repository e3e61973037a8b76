"""This agent's own words: a line each, with the time, in `agents/<host>.log` of the run's folder."""

from __future__ import annotations

import re
import sys
import time

_TIMED = re.compile(r"\d\d:\d\d:\d\d ")


def say(line: str) -> None:
    """One line of it."""
    sys.stderr.write(f"{time.strftime('%H:%M:%S')} {line}\n")
    sys.stderr.flush()


def was_said(line: str) -> bool:
    """Whether it is one of these, and not of a process that writes into the same file."""
    return _TIMED.match(line) is not None
