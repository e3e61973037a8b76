"""The three standard streams of the command: there, whoever closed them, and no reason for a traceback."""

from __future__ import annotations

import errno
import io
import os
import sys

from phalanx.errors import PlaceError
from phalanx.patient import patient_stderr

#: What a print into a stream that takes nothing fails with. An error about a file that was opened names the file.
_REFUSALS = (errno.EPIPE, errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EBADF)


def settle() -> None:
    """Put /dev/null where 0, 1 or 2 is closed, and streams where Python has none. The first thing the command does.

    Else a socket or a pipe of ours would get such a number, and whoever prints would write into it. What standard
    error does not take is dropped; what the terminal's encoding does not have is escaped.
    """
    while (number := os.open(os.devnull, os.O_RDWR)) <= 2:  # noqa: PLR2004 - stdin, stdout, stderr
        os.set_inheritable(number, True)  # noqa: FBT003 - the standard library's
    os.close(number)
    sys.stdin = sys.stdin or io.TextIOWrapper(io.BufferedReader(io.FileIO(0, closefd=False)), encoding="utf-8")
    sys.stdout = sys.stdout or io.TextIOWrapper(io.BufferedWriter(io.FileIO(1, "w", closefd=False)), encoding="utf-8")
    if isinstance(sys.stdout, io.TextIOWrapper) and sys.stdout.errors == "strict":
        sys.stdout.reconfigure(errors="backslashreplace")
    patient_stderr()


def is_refusal(wrong: OSError) -> bool:
    """Whether this came from printing."""
    return wrong.filename is None and wrong.errno in _REFUSALS


def unprinted(wrong: OSError, code: int) -> int:
    """What to exit with where standard output has refused. A reader that has gone, as `head` does, is no error."""
    to_nowhere()
    if wrong.errno == errno.EPIPE:
        return code
    sys.stderr.write(f"phalanx: standard output cannot be written: {wrong.strerror}\n")
    return code or PlaceError.exit_code


def flushed(code: int) -> int:
    """`code`, once standard output has taken everything; else see `unprinted`."""
    try:
        sys.stdout.flush()
    except OSError as wrong:
        return unprinted(wrong, code)
    return code


def to_nowhere() -> None:
    """What is still to be printed goes to /dev/null."""
    number = os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC)
    os.dup2(number, sys.stdout.fileno())
    os.close(number)
