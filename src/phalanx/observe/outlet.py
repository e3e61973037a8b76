"""Where a view writes to: a stream whose reader may go, or whose disk may fill, without harm to the run."""

from __future__ import annotations

import io
import os
from collections.abc import Callable
from typing import TextIO, cast


class Outlet(io.TextIOBase):
    """Passes text on until the stream refuses it, tells once why, and drops everything from then on.

    The stream itself then leads to /dev/null, so that what it still holds troubles nobody at exit.
    """

    def __init__(self, stream: TextIO | None, refused: Callable[[str], None] = lambda _: None) -> None:
        """`refused` gets the reason, once. A stream that is None or closed drops everything and is nobody's news."""
        super().__init__()
        self._stream = None if stream is None or stream.closed else stream
        self._refused = refused

    @property
    def encoding(self) -> str:  # type: ignore[override]  # typeshed has a plain attribute
        """The stream's."""
        return (self._stream.encoding if self._stream is not None else None) or "utf-8"

    def isatty(self) -> bool:
        """Whether a terminal is there, still."""
        return self._stream is not None and self._stream.isatty()

    def fileno(self) -> int:
        """The stream's; raises OSError where there is none."""
        if self._stream is None:
            raise io.UnsupportedOperation("fileno")
        return self._stream.fileno()

    def write(self, text: str) -> int:
        """Never raises for a stream that takes nothing."""
        if self._stream is not None:
            try:
                self._stream.write(text)
            except OSError as wrong:
                self._drop(wrong)
        return len(text)

    def flush(self) -> None:
        """As `write`."""
        if self._stream is not None:
            try:
                self._stream.flush()
            except OSError as wrong:
                self._drop(wrong)

    def _drop(self, wrong: OSError) -> None:
        stream, self._stream = self._stream, None
        if stream is not None:
            to_nowhere(stream)
        self._refused(wrong.strerror or str(wrong))


def to_nowhere(stream: TextIO) -> None:
    """Let the stream's descriptor lead to /dev/null. One without a descriptor stays as it is."""
    try:
        number = stream.fileno()
    except (OSError, ValueError):
        return
    nowhere = os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC)
    os.dup2(nowhere, number)
    os.close(nowhere)


def guarded(stream: TextIO | None, refused: Callable[[str], None] = lambda _: None) -> TextIO:
    """An Outlet, as views take it."""
    return cast("TextIO", Outlet(stream, refused))
