"""Folders that are thrown away, those of a process that was killed too: the next one of the kind removes them."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

#: Seconds that a folder without a lock may be just being made.
_YOUNG = 60.0


@contextlib.contextmanager
def scratch(prefix: str) -> Iterator[Path]:
    """An empty folder, removed in the end. It is locked for as long as its process lives, whatever ends that.

    What somebody still writes there while it is removed is left to the next sweep.
    """
    _sweep(prefix)
    with tempfile.TemporaryDirectory(prefix=prefix, ignore_cleanup_errors=True) as name:
        held = _locked(Path(name))
        try:
            yield Path(name)
        finally:
            if held is not None:
                os.close(held)


def _sweep(prefix: str) -> None:
    """Remove this user's folders of that kind that nobody holds."""
    for folder in Path(tempfile.gettempdir()).glob(f"{prefix}*"):
        with contextlib.suppress(OSError):
            facts = folder.lstat()
            if facts.st_uid != os.getuid() or facts.st_mtime > time.time() - _YOUNG:
                continue
            held = _locked(folder)
            if held is not None:
                shutil.rmtree(folder, ignore_errors=True)
                os.close(held)


def _locked(folder: Path) -> int | None:
    """What holds its lock; None where another does, or where its disk knows no locks."""
    try:
        held = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(held)
        return None
    return held
