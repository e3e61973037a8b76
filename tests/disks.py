"""Small disks of a test's own, and others who fill them."""

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest


@contextlib.contextmanager
def disk(folder: Path, size: str) -> Iterator[Path]:
    """A disk of so many bytes below `folder`; skips where nothing can be mounted."""
    place = folder / "disk"
    place.mkdir()
    made = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", place], capture_output=True, text=True, check=False
    )
    if made.returncode:
        pytest.skip(f"a disk of its own takes root, and a kernel that lets it mount: {made.stderr.strip()}")
    try:
        yield place
    finally:
        subprocess.run(["umount", "-l", place], check=True)


def fill(place: Path) -> Path:
    """Take what is left of a disk, to the last byte; returns the file that holds it."""
    ballast = place / "ballast"
    with contextlib.suppress(OSError), ballast.open("ab", buffering=0) as out:
        while out.write(b"\0" * 4096):
            continue
    return ballast
