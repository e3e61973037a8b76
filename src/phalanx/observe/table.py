"""Rows of words under each other, cut to the width there is."""

from __future__ import annotations

from collections.abc import Sequence

_GAP = "  "


def columns(rows: Sequence[Sequence[str]], *, width: int) -> list[str]:
    """Each row as one line; every column as wide as its widest cell, the last one cut to `width`."""
    if not rows:
        return []
    wide = [max(len(row[n]) for row in rows) for n in range(len(rows[0]))]
    lines = []
    for row in rows:
        cells = [cell.ljust(wide[n]) for n, cell in enumerate(row[:-1])]
        head = _GAP.join([*cells, ""])
        lines.append((head + cut(row[-1], max(width - len(head), 0))).rstrip())
    return lines


def cut(text: str, width: int) -> str:
    """`text` in at most `width` characters, `…` where something is missing."""
    if len(text) <= width:
        return text
    return text[: width - 1] + "…" if width > 0 else ""
