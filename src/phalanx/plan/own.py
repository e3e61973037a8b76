"""Programs of our own that a task may run: named in a plan, and found where they lie on the task's host."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

#: What `command: server` runs; each host has it in a place of its own.
SERVER = "{phalanx}/runtime/server.py"

_PLACE = str(Path(__file__).parents[1] / "runtime" / "server.py")


def found_here(argv: Sequence[str]) -> tuple[str, ...]:
    """The same command with our program as a file of this host."""
    return tuple(_PLACE if word == SERVER else word for word in argv)
