"""Looks for what a job should leave behind, on this host's file systems."""

from __future__ import annotations

import asyncio
import glob
import os
import re
import time
from collections.abc import Iterable, Iterator, Sequence

from phalanx.apart import apart
from phalanx.plan.outputs import Output

_URL = re.compile(r"[a-z][a-z0-9+.-]*://", re.IGNORECASE)

#: Files that are counted of one pattern: beyond, sizes and times are those of the first so many.
_MOST = 10_000

#: Seconds that are spent on one pattern, and that a disk has to answer: both within what the lead waits for the whole.
_LONGEST, _HANGS = 1.0, 3.0


class _LateError(Exception):
    """There is more to look through than there is time."""


async def find(patterns: Sequence[str], cwd: str) -> tuple[Output, ...]:
    """One answer for each pattern, in their order, whatever becomes of the others."""
    return tuple(await asyncio.gather(*(_answer(pattern, cwd) for pattern in patterns)))


async def _answer(pattern: str, cwd: str) -> Output:
    try:
        return await asyncio.wait_for(apart(lambda: look(pattern, cwd), name="outputs"), _HANGS)
    except TimeoutError:
        return Output(path=pattern, wrong=f"its disk did not answer within {_HANGS:g} s")


def look(pattern: str, cwd: str, *, longest: float = _LONGEST) -> Output:
    """What fits it. `**` stands for any number of folders. May wait for a disk, but walks no longer than `longest`."""
    if _URL.match(pattern):
        return Output(path=pattern, wrong="it is no path of a host, and phalanx looks for files only")
    path = os.path.join(cwd, os.path.expanduser(pattern))  # noqa: PTH111, PTH118 - a pattern, not a path
    # A name that happens to look like a pattern is a name where a file has it.
    found = [path] if os.path.lexists(path) else _fitting(path)
    try:
        return _counted(pattern, _in_time(found, time.monotonic() + longest), time.monotonic() + longest)
    except _LateError:
        wrong = f"{longest:g} s were not enough to look through all that may fit it; name its folder more exactly"
        return Output(path=pattern, wrong=wrong)


def _fitting(path: str) -> Iterator[str]:
    """Those that fit, as they are found; an empty text between two folders that are looked through."""
    head, deep, rest = path.partition(f"{os.sep}**{os.sep}")
    if not deep or not rest:
        yield from glob.iglob(path, recursive=True)  # noqa: PTH207 - as above
        return
    for folder in glob.iglob(head + deep, recursive=True):  # noqa: PTH207 - as above
        yield ""
        yield from _fitting(glob.escape(folder) + rest)


def _in_time(found: Iterable[str], until: float) -> Iterator[str]:
    for one in found:
        if time.monotonic() > until:
            raise _LateError
        if one:
            yield one


def _counted(pattern: str, found: Iterator[str], until: float) -> Output:
    fits, seen = set[str](), set[str]()
    total, newest = 0, None
    for file in _in_time(_files(found, fits), until):
        if file in seen:  # once by itself and once in its folder
            continue
        try:
            facts = os.stat(file)  # noqa: PTH116 - text, not a path
        except OSError:
            continue
        total += facts.st_size
        newest = facts.st_mtime if newest is None else max(newest, facts.st_mtime)
        seen.add(file)
        if len(seen) == _MOST:
            fits.update(found)
            break
    return Output(path=pattern, count=len(fits) if seen else 0, bytes=total, newest=newest)


def _files(found: Iterator[str], fits: set[str]) -> Iterator[str]:
    """The files among them, and those in the folders among them; a folder itself where it is empty.

    `fits` takes what has been found so far.
    """
    walked = set[str]()
    for path in found:
        fits.add(path)
        if not os.path.isdir(path):  # noqa: PTH112 - text, not a path
            yield path
            continue
        if path in walked:
            continue
        empty = True
        for folder, _, names in os.walk(path):
            walked.add(folder)
            for name in names:
                empty = False
                yield os.path.join(folder, name)  # noqa: PTH118 - as above
            yield ""
        if empty:
            yield path
