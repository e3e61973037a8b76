"""This agent's own words: a line each, with the time, in `agents/<host>.log` of the run's folder."""

from __future__ import annotations

import sys
import time


def say(line: str) -> None:
    """One line of it."""
    sys.stderr.write(f"{time.strftime('%H:%M:%S')} {line}\n")
    sys.stderr.flush()
