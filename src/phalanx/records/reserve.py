"""Room that a file has beyond its end, so that others who fill the disk leave it the blocks that it will need."""

from __future__ import annotations

import contextlib
import errno
import functools
import os
from collections.abc import Callable

#: Bytes that are reserved ahead, and how many of them are kept for the last words.
AHEAD, LAST = 256 * 1024, 16 * 1024

#: FALLOC_FL_KEEP_SIZE (linux/falloc.h): readers see no byte of it.
_KEEP_SIZE = 1

_FULL = (errno.ENOSPC, errno.EDQUOT)


class Reserve:
    """What one file has ahead. A file system that cannot reserve (NFS, some in user space) never has any, nor refuses.

    It survives whoever made it: the next writer of the file finds the blocks still there.
    """

    def __init__(self, fd: int) -> None:
        """`fd` is open for writing, and stays the caller's."""
        self._fd, self._upto = fd, 0

    def admit(self, size: int, *, keep: int) -> None:
        """To be asked before so many bytes are appended; reserves more where less than half of it is ahead.

        Raises OSError where the disk is full and less than `keep` bytes would be left.
        """
        end = os.fstat(self._fd).st_size
        if self._upto >= end + size + AHEAD // 2 or self._reach(end, size + AHEAD):
            return
        if self._upto < end + size + keep and not self._reach(end, size + keep):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def is_cut(self) -> None:
        """The file was made shorter: nothing is ahead any more."""
        self._upto = 0

    def give_back(self) -> None:
        """Nothing is appended any more, by anybody: what lies beyond the end is free again."""
        with contextlib.suppress(OSError):
            os.ftruncate(self._fd, os.fstat(self._fd).st_size)
        self.is_cut()

    def _reach(self, end: int, size: int) -> bool:
        """False where the disk is full. What else goes wrong, the write itself will tell."""
        number = _fallocate()(self._fd, end, size)
        if number == 0:
            self._upto = end + size
        return number not in _FULL


@functools.cache
def _fallocate() -> Callable[[int, int, int], int]:
    """`(fd, start, size)` → 0, or the number of the error. Python has only posix_fallocate, which moves the end."""
    import ctypes  # noqa: PLC0415 - for who writes, not for each verb that reads

    libc = ctypes.CDLL(None, use_errno=True)
    call = getattr(libc, "fallocate64", None) or libc.fallocate
    call.argtypes = [ctypes.c_int, ctypes.c_int, ctypes.c_int64, ctypes.c_int64]
    return lambda fd, start, size: ctypes.get_errno() if call(fd, _KEEP_SIZE, start, size) else 0
