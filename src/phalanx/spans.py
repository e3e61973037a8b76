"""A limit in the words people read: to the second where it has some, and no finer than it was set."""

from __future__ import annotations

_UNITS = ((86400, "d"), (3600, "h"), (60, "min"))


def span(seconds: float) -> str:
    """`0.5 s`, `45 s`, `5 min`, `1 h 30 min`, `1 d`."""
    if seconds < 60:  # noqa: PLR2004 - a minute
        return f"{seconds:g} s"
    rest, words = round(seconds), []
    for size, unit in _UNITS:
        count, rest = divmod(rest, size)
        words += [f"{count} {unit}"] if count else []
    return " ".join([*words, f"{rest} s"] if rest else words)
