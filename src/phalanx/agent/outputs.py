"""Looks for what a job should leave behind, on this host's file systems."""

from __future__ import annotations

import asyncio
import glob
import itertools
import os
import re
import time
from collections.abc import Iterable, Iterator, Sequence

from phalanx.apart import apart
from phalanx.plan.outputs import Output

#: What makes a name a pattern, as `glob` has it.
_MAGIC = re.compile(r"[*?[]")
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
    parts = path.split(os.sep)[1:]  # noqa: PTH206 - `Path.parts` drops the last `/`, by which only folders fit
    found = [path] if os.path.lexists(path) else _fitting(os.sep, parts)
    try:
        return _counted(pattern, _in_time(found, time.monotonic() + longest), time.monotonic() + longest)
    except _LateError:
        wrong = f"{longest:g} s were not enough to look through all that may fit it; name its folder more exactly"
        return Output(path=pattern, wrong=wrong)


def _fitting(base: str, parts: Sequence[str]) -> Iterator[str]:
    """Those below `base` that fit, as they are found; an empty text between two folders that are looked through.

    A level at a time, so that no pattern goes through more than a folder without a word in between.
    """
    part, *rest = parts
    if not _MAGIC.search(part):
        path = os.path.join(base, part)  # noqa: PTH118 - text, not a path
        if rest:
            yield from _fitting(path, rest)
        elif os.path.lexists(path):
            yield path
        return
    deep = [""] if part == "**" else []
    pattern = f"{part}{os.sep}" if rest else part
    for name in itertools.chain(deep, glob.iglob(pattern, root_dir=base, recursive=True)):  # noqa: PTH207 - as above
        yield ""
        found = os.path.join(base, name)  # noqa: PTH118 - as above
        if rest:
            yield from _fitting(found, rest)
        else:
            yield found


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
