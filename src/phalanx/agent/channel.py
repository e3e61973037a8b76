"""Messages of any size, with open files, between the agent and its reaper: length, number of files, JSON."""

from __future__ import annotations

import array
import contextlib
import json
import socket
import struct
from collections.abc import Sequence
from typing import Any

Message = dict[str, Any]

_HEAD = struct.Struct("<II")
_CHUNK = 65536
#: The kernel passes at most this many files with one message (SCM_MAX_FD).
MAX_FILES = 253

_SPACE = socket.CMSG_SPACE(MAX_FILES * array.array("i").itemsize)
_FLAGS = socket.MSG_DONTWAIT | socket.MSG_CMSG_CLOEXEC


class Channel:
    """One end of a stream socket pair. Files ride on the first byte of their message, so their order is kept."""

    def __init__(self, sock: socket.socket) -> None:
        """Owns `sock` from now on."""
        self._sock = sock
        self._in, self._out = bytearray(), bytearray()
        self._files: list[list[int]] = []  # one list a message that carried any

    def fileno(self) -> int:
        """For select, poll and add_reader."""
        return self._sock.fileno()

    def send(self, message: Message, files: Sequence[int] = ()) -> None:
        """Send at once, waiting while the other end is slow.

        Raises OSError where the other end is gone, or takes nothing for longer than the socket's SO_SNDTIMEO; the
        channel is then of no more use.
        """
        frame = _frame(message, len(files))
        try:
            sent = socket.send_fds(self._sock, [frame], files) if files else self._sock.send(frame)
            while sent < len(frame):
                sent += self._sock.send(memoryview(frame)[sent:])
        except OSError:
            self._hang_up()
            raise

    def put(self, message: Message) -> None:
        """Queue a message without files and send what the socket takes now. Never waits."""
        self._out += _frame(message, 0)
        self.flush()

    def flush(self) -> bool:
        """Send what is queued, as far as the socket takes it; True when nothing is left. A dead peer takes all."""
        while self._out:
            try:
                del self._out[: self._sock.send(self._out, socket.MSG_DONTWAIT)]
            except BlockingIOError:
                return False
            except OSError:
                self._out.clear()  # nobody will read it; the end shows at the next receive()
        return True

    def receive(self) -> list[tuple[Message, list[int]]]:
        """Every message that has arrived whole, with its files (close-on-exec). Never waits.

        A message whose list is shorter than its sender's had files that this process could not open (EMFILE). Raises
        EOFError at the end of the stream, once everything before it has been handed out.
        """
        found: list[tuple[Message, list[int]]] = []
        while True:
            try:
                # Not recv_fds: Python 3.11's forgets its flags.
                data, extras, flags, _ = self._sock.recvmsg(_CHUNK, _SPACE, _FLAGS)
            except BlockingIOError:
                break
            except OSError:  # reset: the other end died with unread words
                data, extras, flags = b"", [], 0
            files = [number for *_, extra in extras for number in array.array("i", extra)]
            if files or flags & socket.MSG_CTRUNC:
                self._files.append(files)
            if not data:
                if found:
                    break
                raise EOFError
            self._in += data
            found += self._whole()
        return found

    def close(self) -> None:
        """The other end reads the end of the stream. Harmless when closed already."""
        self._sock.close()

    def _hang_up(self) -> None:
        """Half a message may be on its way: nothing that follows could be understood."""
        with contextlib.suppress(OSError):
            self._sock.shutdown(socket.SHUT_WR)

    def _whole(self) -> list[tuple[Message, list[int]]]:
        found = []
        while len(self._in) >= _HEAD.size:
            size, files = _HEAD.unpack_from(self._in)
            if len(self._in) < _HEAD.size + size:
                break
            message = json.loads(self._in[_HEAD.size : _HEAD.size + size])
            del self._in[: _HEAD.size + size]
            found.append((message, self._files.pop(0) if files else []))
        return found


def _frame(message: Message, files: int) -> bytes:
    # ASCII only: an environment may hold bytes that are no UTF-8, which Python shows as lone surrogates.
    body = json.dumps(message, separators=(",", ":")).encode("ascii")
    return _HEAD.pack(len(body), files) + body
