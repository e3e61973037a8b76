"""The word somebody probably meant: a slip of the finger away, and no further."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from pathlib import PurePath

#: Two slips in a word of seven letters; below, everything is near everything (`nope.py` and `ps.py`).
_ALIKE = 0.7


def nearest(word: str, known: Iterable[str]) -> str | None:
    """The known word that a slip of the finger would turn into `word`."""
    lowered = {one.lower(): one for one in known}
    found = difflib.get_close_matches(word.lower(), lowered, n=1, cutoff=_ALIKE)
    return lowered[found[0]] if found else None


def nearest_file(name: str, names: Iterable[str]) -> str | None:
    """The same for names of files: what they share by their ending makes them no nearer."""
    stems = {PurePath(one).stem.lower(): one for one in sorted(names, reverse=True)}
    found = difflib.get_close_matches(PurePath(name).stem.lower(), stems, n=1, cutoff=_ALIKE)
    return stems[found[0]] if found else None
