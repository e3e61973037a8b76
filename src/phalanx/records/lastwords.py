"""The ends of logs: what a task or an agent said last, and when."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from phalanx.noise import is_noise, telling
from phalanx.records.folder import LogFile

#: How many last lines a task has in the report where it failed.
LAST_LINES = 20
_TAIL_BYTES = 16384
_LINE_LENGTH = 500


def last_lines(path: Path, count: int = LAST_LINES) -> tuple[str, ...]:
    """The last telling lines of a log, each as a terminal would leave it. None where there is no file."""
    try:
        with path.open("rb") as log:
            log.seek(max(0, log.seek(0, os.SEEK_END) - _TAIL_BYTES))
            text = log.read().decode(errors="replace")
    except OSError:
        return ()
    lines = [line.rstrip("\r").rpartition("\r")[2][:_LINE_LENGTH] for line in text.split("\n")]
    if lines and not lines[-1]:
        lines.pop()
    return telling(lines)[-count:]


def last_words(said: tuple[str, ...], logs: Sequence[LogFile], *, killed: bool) -> tuple[str, ...]:
    """What a task said last: `said` is what its agent told of it, on stderr where it used that.

    One that was `killed` had no time to explain itself there: the stream of its newest attempt that wrote last. Lines
    that tell something are taken from wherever they are before any noise is.
    """
    newest = [log.path for log in logs if log.attempt == logs[-1].attempt and _facts(log.path)[0]]
    written = [last_lines(path) for path in sorted(newest, key=lambda path: _facts(path)[1], reverse=True)]
    choices = [telling(lines) for lines in ([*written, said] if killed or not said else [said, *written]) if lines]
    best = (lines for lines in choices if any(line.strip() and not is_noise(line) for line in lines))
    return next(best, choices[0] if choices else ())[-LAST_LINES:]


def last_output(logs: Sequence[LogFile]) -> str:
    """The last line of stdout that is not blank."""
    outs = [log for log in logs if log.stream == "out"]
    lines = last_lines(outs[-1].path) if outs else ()
    return next((line for line in reversed(lines) if line.strip()), "")


def last_written(logs: Sequence[LogFile]) -> float | None:
    """When the newest of these logs was written last, in Unix seconds; None where nothing was."""
    times = [time for size, time in (_facts(log.path) for log in logs) if size]
    return max(times, default=None)


def _facts(path: Path) -> tuple[int, float]:
    """Bytes, and the time of the last write; zeros where there is no file."""
    try:
        facts = path.stat()
    except OSError:
        return 0, 0.0
    return facts.st_size, facts.st_mtime
