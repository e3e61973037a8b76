"""Looks for what a job should leave behind, on this host's file systems."""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Iterator, Sequence

from phalanx.plan.outputs import Output

_URL = re.compile(r"[a-z][a-z0-9+.-]*://", re.IGNORECASE)

#: Files that are counted of one pattern: beyond, sizes and times are those of the first so many.
_MOST = 10_000


def find(patterns: Sequence[str], cwd: str) -> tuple[Output, ...]:
    """One answer for each pattern, in their order. `**` stands for any number of folders. May wait for a disk."""
    return tuple(_find(pattern, cwd) for pattern in patterns)


def _find(pattern: str, cwd: str) -> Output:
    if _URL.match(pattern):
        return Output(path=pattern, wrong="it is no path of a host, and phalanx looks for files only")
    path = os.path.join(cwd, os.path.expanduser(pattern))  # noqa: PTH111, PTH118 - a pattern, not a path
    # A name that happens to look like a pattern is a name where a file has it.
    found = [path] if os.path.lexists(path) else sorted(glob.glob(path, recursive=True))  # noqa: PTH207 - as above
    count = total = 0
    newest: float | None = None
    for file in _files(found):
        try:
            facts = os.stat(file)  # noqa: PTH116 - text, not a path
        except OSError:
            continue
        total += facts.st_size
        newest = facts.st_mtime if newest is None else max(newest, facts.st_mtime)
        count += 1
        if count == _MOST:
            break
    return Output(path=pattern, count=len(found) if count else 0, bytes=total, newest=newest)


def _files(found: Sequence[str]) -> Iterator[str]:
    """The files among them, and those in the folders among them; a folder itself where it is empty."""
    for path in found:
        if not os.path.isdir(path):  # noqa: PTH112 - text, not a path
            yield path
            continue
        empty = True
        for folder, _, names in os.walk(path):
            for name in names:
                empty = False
                yield os.path.join(folder, name)  # noqa: PTH118 - as above
        if empty:
            yield path
