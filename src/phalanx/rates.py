"""Bytes a second and times of a step in the words people read."""

from __future__ import annotations


def per_second(rate: float) -> str:
    """`930 B/s`, `11 MB/s`, `1.1 GB/s`: two digits, which is what such a measurement is worth."""
    for unit in ("B", "kB", "MB"):
        if rate < 999.5:  # noqa: PLR2004 - SI, rounded
            return f"{_two(rate)} {unit}/s"
        rate /= 1000
    return f"{_two(rate)} GB/s"


def milliseconds(seconds: float) -> str:
    """`0.41 ms`, `21 ms`, `1.9 s`."""
    return f"{_two(seconds * 1000)} ms" if seconds < 0.9995 else f"{_two(seconds)} s"  # noqa: PLR2004 - as above


def _two(value: float) -> str:
    if value >= 9.95:  # noqa: PLR2004 - rounded
        return f"{value:.0f}"
    return f"{value:.1f}" if value >= 0.995 else f"{value:.2f}"  # noqa: PLR2004 - as above
