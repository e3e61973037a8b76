"""The disks: the run's folder, and the checkpoint folder, which must be one and the same for all."""

from __future__ import annotations

import contextlib
import errno
import os
import time
from collections.abc import Callable
from pathlib import Path

from phalanx.agent.preflight.asked import Answer, Asked

#: Seconds a reader waits for the token: agents do not begin at the same moment, and file servers cache folders.
PATIENCE = 10.0

#: What a checkpoint folder must take at once, and what any disk of ours should have left, in bytes and in files.
ROOM, LEFT, INODES = 1 << 20, 256 << 20, 100

_FULL = (errno.ENOSPC, errno.EDQUOT)


def disk(asked: Asked, answer: Answer) -> None:
    """The run's folder and the checkpoints' have something left."""
    answer.look("disk")
    for folder in dict.fromkeys(filter(None, (str(asked.folder), local(asked.list.checkpoint)))):
        path = _standing(Path(folder))
        try:
            room = os.statvfs(path)
        except OSError as wrong:
            answer.fault("disk", f"{path} cannot be asked for room: {wrong.strerror}")
            continue
        if room.f_bavail * room.f_frsize < LEFT:
            answer.fault("disk", f"the disk of {folder} has {room.f_bavail * room.f_frsize >> 20} MiB left")
        elif room.f_files and room.f_favail < INODES:
            answer.fault("disk", f"the disk of {folder} takes {room.f_favail} more files")


def local(checkpoint: str) -> str:
    """The folder, where it is one of this host: gs:// and its like are for TensorFlow alone."""
    return "" if "://" in checkpoint else checkpoint


class Checkpoints:
    """The proof that a checkpoint folder is shared. What it leaves in the folder goes with `end`."""

    def __init__(self) -> None:
        """Nothing made yet."""
        self._token: Path | None = None
        self._made: list[Path] = []

    def check(
        self,
        asked: Asked,
        answer: Answer,
        *,
        patience: float = PATIENCE,
        pause: Callable[[float], None] = time.sleep,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """The writer makes the folder and its token; the others find the token, then write as well."""
        folder = Path(local(asked.list.checkpoint))
        if folder == Path():
            return
        answer.look("checkpoint-writable", "checkpoint-room")
        if asked.list.hosts > 1:
            answer.look("checkpoint-shared")
        name, text = asked.token
        if asked.list.writes:
            if not self._make(folder, answer) or not _takes(folder, asked.host, answer):
                return
            if asked.list.hosts > 1:
                self._token = folder / name
                try:
                    self._token.write_text(text)
                except OSError as wrong:
                    answer.fault("checkpoint-writable", f"{self._token} cannot be written: {wrong.strerror}")
            return
        until = clock() + patience
        while _token(folder, name) != text:
            if clock() >= until:
                there = "is there, without" if folder.is_dir() else "is not there, nor"
                words = f"{folder} {there} the token that the leader's host wrote into it {patience:g} s ago"
                answer.fault("checkpoint-shared", words)
                return
            pause(0.1)
        _takes(folder, asked.host, answer)

    def _make(self, folder: Path, answer: Answer) -> bool:
        missing = [path for path in (folder, *folder.parents) if not path.exists()]
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as wrong:
            answer.fault("checkpoint-writable", f"{folder} cannot be made: {wrong.strerror}")
            return False
        self._made = missing
        return True

    def end(self, *, keep: bool) -> None:
        """Take the token away, and the folders that were made for it unless the job will `keep` them. Idempotent."""
        with contextlib.suppress(OSError):
            if self._token is not None:
                self._token.unlink(missing_ok=True)
            for path in () if keep else self._made:
                path.rmdir()  # only while it is empty
        self._token, self._made = None, []


def _token(folder: Path, name: str) -> str:
    """Listing the folder first makes a network file system ask its server again."""
    try:
        return (folder / name).read_text() if name in os.listdir(folder) else ""  # noqa: PTH208 - names only
    except (OSError, UnicodeDecodeError):
        return ""


def _takes(folder: Path, host: int, answer: Answer) -> bool:
    """Whether a file of a megabyte can be written there."""
    probe = folder / f".phalanx-probe-{host}-{os.getpid()}"
    try:
        with probe.open("wb") as file:
            file.write(b"\0" * ROOM)
            file.flush()
            os.fsync(file.fileno())
    except OSError as wrong:
        full = wrong.errno in _FULL
        words = f"{folder} {'has no room' if full else 'cannot be written to'}: {wrong.strerror}"
        answer.fault("checkpoint-room" if full else "checkpoint-writable", words)
        return False
    finally:
        with contextlib.suppress(OSError):
            probe.unlink(missing_ok=True)
    return True


def _standing(path: Path) -> Path:
    """The nearest folder above that exists."""
    return next((part for part in (path, *path.parents) if part.exists()), path)
