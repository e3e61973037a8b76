"""Small disks of a test's own, and others who fill them."""

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest


@contextlib.contextmanager
def disk(folder: Path, size: str) -> Iterator[Path]:
    """A disk of so many bytes below `folder`; skips where nothing can be mounted."""
    place = folder / "disk"
    place.mkdir()
    if wrong := _done("mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", place):
        pytest.skip(f"a disk of its own takes root, and a kernel that lets it mount: {wrong}")
    try:
        yield place
    finally:
        subprocess.run(["umount", "-l", place], check=True)


@contextlib.contextmanager
def fragile(folder: Path) -> Iterator[tuple[Path, Callable[[], None]]]:
    """A disk below `folder`, and what makes the kernel mount it read-only, as after an error of the device."""
    with _ext4(folder, 16 << 20, "loop,errors=remount-ro", "a disk that breaks") as place:
        [device] = [line.split()[0] for line in Path("/proc/mounts").read_text().splitlines() if f" {place} " in line]
        trigger = Path("/sys/fs/ext4", Path(device).name, "trigger_fs_error")
        if not trigger.exists():
            pytest.skip("this kernel does not let a test break a disk")

        def breaks() -> None:
            trigger.write_text("broken by a test")

        yield place, breaks


@contextlib.contextmanager
def frozen(folder: Path) -> Iterator[tuple[Path, Callable[[], None], Callable[[], None]]]:
    """A disk below `folder`, what makes every write to it hang, and what lets them go on."""
    with _ext4(folder, 64 << 20, "loop", "a disk that hangs") as place:
        try:
            wrong = _done("fsfreeze", "-f", place) or _done("fsfreeze", "-u", place)
            if wrong:
                pytest.skip(f"a disk that hangs takes fsfreeze: {wrong}")
            yield place, lambda: _must("fsfreeze", "-f", place), lambda: _must("fsfreeze", "-u", place)
        finally:
            _done("fsfreeze", "-u", place)


@contextlib.contextmanager
def _ext4(folder: Path, size: int, options: str, what: str) -> Iterator[Path]:
    """A disk of a file below `folder`; skips `what` where nothing can be mounted."""
    image, place = folder / "image", folder / "disk"
    place.mkdir()
    with image.open("wb") as out:
        out.truncate(size)
    if wrong := _done("mkfs.ext4", "-q", image) or _done("mount", "-o", options, image, place):
        pytest.skip(f"{what} takes root, loop devices and mkfs.ext4: {wrong}")
    try:
        yield place
    finally:
        subprocess.run(["umount", "-l", place], check=True)


def _must(*command: str | Path) -> None:
    if wrong := _done(*command):
        raise AssertionError(wrong)


def _done(*command: str | Path) -> str:
    """Why the command failed; empty where it did not."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError as wrong:
        return str(wrong)
    return done.stderr.strip() if done.returncode else ""


def fill(place: Path) -> Path:
    """Take what is left of a disk, to the last byte; returns the file that holds it."""
    ballast = place / "ballast"
    with contextlib.suppress(OSError), ballast.open("ab", buffering=0) as out:
        while out.write(b"\0" * 4096):
            continue
    return ballast
