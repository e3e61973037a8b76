"""The life line of one attempt, seen from the agent: what its runtime counts, what it tells, what its threads do.

One file in memory that both sides map (a stuck or frozen process can still be read, and a step costs it no system
call), and one pipe for what happens once. Where nothing attaches (no Python, `-S`), there is nothing to see.
"""

from __future__ import annotations

import dataclasses
import json
import mmap
import os
import signal
import struct
import time
from collections.abc import Mapping
from typing import Any

from phalanx.runtime.boot import phalanx_life as inside

#: The files' numbers in the child, below those of a standby's pipes.
_MEMORY, _PIPE = 196, 197

#: The signal that has all stacks written: TensorFlow, the C library and Python leave it alone.
STACKS = signal.SIGRTMIN + 7

#: Seconds between two looks at what has been written; how often it must be the same to be whole; when to give up.
_LOOK, _SAME, _PATIENCE = 0.01, 4, 2.0

_DOING = ((inside.FINISHED, "finished"), (inside.SAVING, "saving"), (inside.TRACING, "tracing"))


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Sign:
    """What the runtime has counted so far. All None, 0 and empty where none is attached or no step is done."""

    #: Steps of this attempt, from 1.
    step: int | None = None
    #: When the last one ended: Unix seconds, true to the clock as it stands now.
    stepped: float | None = None
    #: Seconds, the longest gap between two steps with no pause between them.
    longest: float = 0.0
    #: "", "tracing", "validation", "saving" or "finished".
    doing: str = ""
    #: Facts that the pipe did not take.
    dropped: int = 0
    #: As in `sample.TaskSample`; none of it is known where no step is done.
    epoch: int | None = None
    epochs: int | None = None
    steps_per_epoch: int | None = None
    epoch_step: int | None = None
    loss: float | None = None
    collective: float | None = None
    #: Whether the main thread is in a training step, or was when an exception ended that.
    inside: bool | None = None


class Life:
    """The agent's end: `env` and `fds` for the start, then `started`; `close` at the end. Owns its files."""

    def __init__(self) -> None:
        """Raises OSError where no file is to be had."""
        self._memory = self._pipe = self._theirs = -1
        self._map: mmap.mmap | None = None
        self._memory = os.memfd_create("life", os.MFD_CLOEXEC)
        os.ftruncate(self._memory, inside.SIZE)
        self._map = mmap.mmap(self._memory, inside.SIZE)
        self._pipe, self._theirs = os.pipe()
        for fd in (self._pipe, self._theirs):
            os.set_blocking(fd, False)
        self._rest = b""

    @property
    def fds(self) -> Mapping[int, int]:
        """Number in the child → open file here."""
        return {_MEMORY: self._memory, _PIPE: self._theirs}

    def env(self) -> dict[str, str]:
        """What to add to the environment, besides `boot_env`. The runtime takes it out again."""
        return {"PHALANX_BOOT_LIFE": f"{_MEMORY},{_PIPE},{int(STACKS)}"}

    def started(self) -> None:
        """The child has its end of the pipe; ours of it is closed. Idempotent."""
        if self._theirs >= 0:
            os.close(self._theirs)
            self._theirs = -1

    def fileno(self) -> int:
        """Readable when there are facts, or when nobody is left to tell any; −1 once closed."""
        return self._pipe

    @property
    def pid(self) -> int | None:
        """The process that has attached; None where none has."""
        return self._words()[inside.PID] or None

    def sign(self) -> Sign:
        """What is counted at this moment. Never waits."""
        words = self._words()
        doing = next((name for place, name in _DOING if words[place]), "")
        if not doing and words[inside.VALIDATION]:
            doing = "validation"
        if not words[inside.STEPS]:
            return Sign(doing=doing, dropped=words[inside.DROPPED])
        ago = (time.monotonic_ns() - words[inside.STEPPED]) / 1e9
        return Sign(
            step=words[inside.STEPS],
            stepped=time.time() - ago,
            longest=words[inside.LONGEST] / 1e9,
            doing=doing,
            dropped=words[inside.DROPPED],
            epoch=words[inside.EPOCH] or None,
            epochs=words[inside.EPOCHS] or None,
            steps_per_epoch=words[inside.PER_EPOCH] or None,
            epoch_step=words[inside.IN_EPOCH] if words[inside.EPOCH] else None,
            loss=_double(words[inside.LOSS]) if words[inside.LOSSES] else None,
            collective=words[inside.COLLECTIVE] / 1e9 if words[inside.COLLECTIVE] else None,
            inside=bool(words[inside.INSIDE]),
        )

    def facts(self) -> list[dict[str, Any]] | None:
        """What it has told since the last call, oldest first; None when all is told and nobody is left to tell more.

        Each has "is": "first-step", "saved" (path, step), "restored" (path), "finished", "asked", "stopping" (step,
        saved, peers), "raised" (said, where, bytes) or "note" (message).
        """
        if self._pipe < 0:
            return None
        ended = False
        while True:
            try:
                chunk = os.read(self._pipe, 1 << 16)
            except BlockingIOError:
                break
            if not chunk:
                ended = True
                break
            self._rest += chunk
        *lines, self._rest = self._rest.split(b"\n")
        found = [fact for fact in map(_fact, lines) if fact is not None]
        return found if found or not ended else None

    def text(self, size: int) -> bytes:
        """The first `size` bytes that it has left behind the words."""
        return os.pread(self._memory, size, inside.SIZE) if self._memory >= 0 else b""

    async def stacks(self) -> str:
        """The Python stacks of all its threads, as it writes them itself; empty where it cannot.

        Works while the main thread is in C++. Does not where no runtime is attached, or the process is frozen. Takes
        50 ms, at most 2 s.
        """
        import asyncio  # noqa: PLC0415 - dear before the standbys are off

        if not self._ask_for_stacks():
            return ""
        size, same, deadline = 0, 0, time.monotonic() + _PATIENCE
        while same < _SAME and time.monotonic() < deadline:
            await asyncio.sleep(_LOOK)
            now = os.fstat(self._memory).st_size - inside.SIZE
            same = same + 1 if now == size and now > 0 else 0
            size = now
        return os.pread(self._memory, size, inside.SIZE).decode(errors="replace") if same >= _SAME else ""

    def _ask_for_stacks(self) -> bool:
        """Signal it, if it is still the process that has our handler and our file: any other would die of it."""
        pid = self.pid
        if pid is None:
            return False
        try:
            process = os.pidfd_open(pid)
        except OSError:
            return False
        try:
            theirs, ours = os.stat(f"/proc/{pid}/fd/{_MEMORY}"), os.fstat(self._memory)  # noqa: PTH116 - as in standby
            if (theirs.st_dev, theirs.st_ino) != (ours.st_dev, ours.st_ino) or not _catches(pid, STACKS):
                return False
            os.ftruncate(self._memory, inside.SIZE)
            os.lseek(self._memory, inside.SIZE, os.SEEK_SET)
            signal.pidfd_send_signal(process, STACKS)
        except OSError:
            return False
        finally:
            os.close(process)
        return True

    def _words(self) -> tuple[int, ...]:
        if self._map is None:
            return (0,) * inside.WORDS
        return struct.unpack_from(f"={inside.WORDS}q", self._map)

    def close(self) -> None:
        """Let go of everything. `sign` then is that of nobody. Idempotent."""
        self.started()
        for fd in (self._memory, self._pipe):
            if fd >= 0:
                os.close(fd)
        self._memory = self._pipe = -1
        if self._map is not None:
            self._map.close()
            self._map = None

    def __del__(self) -> None:
        """Nobody can look at it any more."""
        self.close()


def _double(word: int) -> float:
    """The number whose bits the word holds."""
    return float(struct.unpack("=d", struct.pack("=q", word))[0])


def _fact(line: bytes) -> dict[str, Any] | None:
    try:
        fact = json.loads(line)
    except ValueError:  # the program wrote into our pipe
        return None
    return fact if isinstance(fact, dict) and isinstance(fact.get("is"), str) else None


def _catches(pid: int, number: int) -> bool:
    with open(f"/proc/{pid}/status", encoding="ascii", errors="replace") as file:  # noqa: PTH123 - as above
        for line in file:
            if line.startswith("SigCgt:"):
                return bool(int(line.split()[1], 16) >> (number - 1) & 1)
    return False
