"""Standard error that drops what its file does not take: no disk is a reason to fail or wait for a word of ours."""

from __future__ import annotations

import atexit
import io
import os
import stat
import sys
import time

#: Bytes that may wait for a file that hangs, and seconds for which the end of the process waits for it.
_WAITING, _LAST = 1 << 20, 1.0

#: Bytes of the last line that are remembered: a pipe takes them in one piece, at once.
_LINE = 4000


class _Patient(io.FileIO):
    def write(self, data: object, /) -> int:
        word = bytes(memoryview(data))  # type: ignore[arg-type]  # typeshed's Buffer is of Python 3.12
        _Said.remember(word)
        return self._pass_on(word)

    def _pass_on(self, word: bytes) -> int:
        try:
            return super().write(word) or 0
        except OSError:
            return len(word)


class _Apart(_Patient):
    """Writes in a thread, which starts with the first word."""

    def __init__(self, fd: int) -> None:
        super().__init__(fd, "w", closefd=False)
        import queue  # noqa: PLC0415 - a process that prints a word and leaves needs no threads
        import threading  # noqa: PLC0415 - as above

        self._words: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        self._put = self._took = 0
        self._thread = threading.Thread(target=self._run, name="stderr", daemon=True)
        atexit.register(self._end)

    def write(self, data: object, /) -> int:
        word = bytes(memoryview(data))  # type: ignore[arg-type]  # as above
        _Said.remember(word)
        if self._put - self._took < _WAITING:
            if not self._put:
                self._thread.start()
            self._put += len(word)
            self._words.put(word)
        return len(word)

    def _run(self) -> None:
        while True:
            rest = word = self._words.get()
            while rest:
                rest = rest[self._pass_on(rest) :]
            self._took += len(word)

    def _end(self) -> None:
        deadline = time.monotonic() + _LAST
        while self._took < self._put and time.monotonic() < deadline:
            time.sleep(0.005)


class _Said:
    """The last line that this process has written there, whether or not the file took it."""

    line = b""

    @classmethod
    def remember(cls, data: bytes) -> None:
        lines = [line for line in data.splitlines() if line.strip()]
        cls.line = lines[-1][:_LINE] if lines else cls.line


def patient_stderr(*, apart: bool = False) -> None:
    """From now on `sys.stderr` never raises: a full disk costs the line, and what the encoding lacks is escaped.

    `apart`: nor does it wait; a thread writes. For who is watched for being silent, and forks no more.
    """
    encoding = sys.stderr.encoding if sys.stderr else "utf-8"
    raw = io.BufferedWriter(_Apart(2) if apart else _Patient(2, "w", closefd=False))
    sys.stderr = io.TextIOWrapper(raw, encoding=encoding, errors="backslashreplace", line_buffering=True)


def last_word_to(where: int | str) -> None:
    """As this process ends, its last line on stderr goes there too: into a pipe, since a disk may not have it, or into
    a file that is still empty then.
    """

    def tell() -> None:
        try:
            fd = os.open(where, os.O_WRONLY) if isinstance(where, str) else where
            facts = os.fstat(fd)
            if _Said.line and (stat.S_ISFIFO(facts.st_mode) or (isinstance(where, str) and not facts.st_size)):
                os.write(fd, _Said.line + b"\n")
        except OSError:
            return  # whoever would have read it has gone

    atexit.register(tell)
