"""The container's log: the run's records, where this host leads, and what its tasks say; whole lines of one thread.

Nobody waits for it. Records are taken from their file, so that none is missing however slow the log is, and whichever
of our leads wrote it; what tasks say waits in memory, and what has no room there is counted and left out: it is in
`logs/` as well.
"""

from __future__ import annotations

import collections
import os
import threading
import time
from collections.abc import Callable
from pathlib import Path

from phalanx.names import TaskId
from phalanx.plan import marks

RECORD, START = marks.RECORD.encode(), marks.START.encode()

#: Seconds between two looks at the records.
_LOOK = 0.1

#: Bytes that may wait for the log, and of a line without an end until it is cut.
_WAITING, _LINE = 1 << 22, 1 << 16

#: Bytes read of the records at once.
_PIECE = 1 << 20


class Console:
    """Starts its thread with `start`. `stream` and what it gives are for one other thread, the agent's loop."""

    def __init__(self, records: Path, *, leads: Callable[[], bool], fd: int = 1) -> None:
        """`records` are told while `leads` says so: on a volume that all share others write them, too."""
        self._records, self._leads, self._fd = records, leads, fd
        self._told = 0  # bytes of the records
        self._lines: collections.deque[bytes] = collections.deque()
        self._put = self._took = 0
        self._left_out: dict[bytes, int] = {}
        self._news = threading.Event()
        self._over = False
        self._thread = threading.Thread(target=self._run, name="console", daemon=True)

    def start(self) -> None:
        """From now on."""
        self._thread.start()

    def stream(self, task: TaskId, start: str = "") -> Callable[[bytes], None]:
        """Takes what one stream of that task says, piece by piece, and b"" at its end.

        `start`: which start of the task begins here, `g1.a1`; a line of its own says so, for whoever sorts the log.
        """
        head, rest = f"{task} | ".encode(), b""
        if start:
            self._say(START, [f"{task} {start}".encode()])

        def take(data: bytes) -> None:
            nonlocal rest
            *lines, rest = (rest + data).split(b"\n")
            if rest and (not data or len(rest) > _LINE):
                lines, rest = [*lines, rest], b""
            if lines:
                self._say(head, lines)

        return take

    def close(self, patience: float) -> None:
        """Up to `patience` seconds for what is still to be told."""
        self._over = True
        self._news.set()
        if self._thread.is_alive():
            self._thread.join(patience)

    def _say(self, head: bytes, lines: list[bytes]) -> None:
        size = sum(map(len, lines))
        if self._put - self._took > _WAITING:
            self._left_out[head] = self._left_out.get(head, 0) + size
            return
        if missed := self._left_out.pop(head, 0):
            lines = [b"(%d bytes are left out: this log is slow; logs/ has them)" % missed, *lines]
        text = b"".join(head + line + b"\n" for line in lines)
        self._put += len(text)
        self._lines.append(text)
        self._news.set()

    def _run(self) -> None:
        try:
            while not self._over:
                self._news.wait(_LOOK)
                self._news.clear()
                self._tell()
            self._tell()
        except OSError:
            return  # nobody reads it any more

    def _tell(self) -> None:
        while piece := self._new_records():
            self._write(piece)
        while self._lines:
            text = self._lines.popleft()
            self._write(text)
            self._took += len(text)

    def _new_records(self) -> bytes:
        """The next whole lines, each with its beginning."""
        if not self._leads():
            return b""
        try:
            with self._records.open("rb") as file:
                size = _PIECE
                while data := os.pread(file.fileno(), size, self._told):
                    if whole := data.rfind(b"\n") + 1:
                        self._told += whole
                        return b"".join(RECORD + line + b"\n" for line in data[:whole].split(b"\n") if line)
                    if len(data) < size:
                        break
                    size *= 2
        except OSError:  # not there yet; or the disk fails for a while
            time.sleep(0 if self._over else _LOOK)
        return b""

    def _write(self, text: bytes) -> None:
        while text:
            text = text[os.write(self._fd, text) :]
