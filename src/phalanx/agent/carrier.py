"""The lead that rides with this agent: its process is started beside ours, and started again when it dies or freezes.

Imports are few: the first lead starts before asyncio is there.
"""

from __future__ import annotations

import fcntl
import json
import os
import signal
import socket
import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from phalanx.agent.log import was_said
from phalanx.decide.quorum import STARTING
from phalanx.names import join_host_port

if TYPE_CHECKING:
    import asyncio

#: A lead that dies more often than this within a minute dies of something that a successor would die of too.
TRIES, WITHIN = 5, 60.0

#: It has written how the run ended; it was deposed by the lead of another host.
_NO_SUCCESSOR = (0, 5)

#: Our own log, which the lead writes into as well, and how many bytes of its end are looked at.
_LOG, _WORDS = 2, 16384

#: Where the new process finds its configuration, its listening socket, and the pipe whose end is its life. That pipe is
#: its standard output as well: what it says there as it ends is its last word.
_CONFIG, _LISTEN, _LIFE = 3, 4, 5


class Carrier:
    """Keeps a lead alive, one epoch after the other, at one address.

    The listening socket stays open here as well: while no lead lives, the kernel keeps the connections of those who
    ask, and nobody finds the address gone.
    """

    def __init__(self, carry: dict[str, Any], *, say: Callable[[str], None], clock: Callable[[], float]) -> None:
        """`carry`: `lead`, what a lead is told, and either `listen`, the number of the socket, which is ours from now
        on, or `address`, where one is bound (at `port`, where one is told): nobody is answered there before this host
        takes over. `reached`: the `host:port` by which others know it, where the socket does not tell. Raises OSError.
        """
        self._about, self._say, self._clock = carry["lead"], say, clock
        self._socket = (
            bound(carry["address"], carry.get("port", 0))
            if carry.get("listen") is None
            else socket.socket(fileno=carry["listen"])
        )
        self._listen = self._socket.fileno()
        os.set_inheritable(self._listen, False)  # noqa: FBT003 - it takes no name
        host, port = self._socket.getsockname()[:2]
        self.address = carry.get("reached", join_host_port(host, port))
        #: Why it starts no lead any more; empty while it would.
        self.why = ""
        self.done = False  # it has led the run to its end
        self._epoch = self._about.get("epoch", 1)
        self._pid: int | None = None
        self._life = -1
        self._begun = 0.0
        self._words = 0  # where in our log the words of this lead begin
        self._last = b""  # and what it said as it left: the log may lie on a disk that takes nothing
        self._deaths: list[float] = []
        self._loop: asyncio.AbstractEventLoop | None = None

    @property
    def carries(self) -> bool:
        """Whether a lead of ours lives."""
        return self._pid is not None

    @property
    def spent(self) -> bool:
        """Whether it will start no lead any more."""
        return bool(self.why)

    def start(self) -> None:
        """Start a lead of the next epoch, in a session of its own. Raises OSError."""
        read, write = os.pipe()
        self._life, life = os.pipe()
        self._words, self._last = os.fstat(_LOG).st_size, b""
        given = {_CONFIG: read, _LISTEN: self._listen, _LIFE: life}
        # Away from the target numbers first, so that one dup2 cannot close what the next needs.
        high = {number: fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 10) for number, fd in given.items()}
        try:
            self._pid = os.posix_spawn(
                sys.executable,
                [sys.executable, "-S", "-E", sys.argv[0], "lead", str(_CONFIG), str(_LISTEN)],
                dict(os.environ),
                file_actions=[
                    (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
                    *((os.POSIX_SPAWN_DUP2, fd, number) for number, fd in high.items()),
                    (os.POSIX_SPAWN_DUP2, high[_LIFE], 1),
                ],
                setsid=True,
            )
        finally:
            for fd in (read, life, *high.values()):
                os.close(fd)
        with os.fdopen(write, "wb") as pipe:
            pipe.write(json.dumps({**self._about, "epoch": self._epoch}).encode())
        self._epoch += 1
        self._begun = self._clock()

    def take_over(self, epoch: int) -> None:
        """The lead of another host is silent: start one here, of at least that epoch."""
        assert self._loop is not None  # noqa: S101 - attach() comes first
        self._say(f"the lead is silent; one of epoch {epoch} takes over at {self.address}")
        self._epoch = max(self._epoch, epoch)
        self._socket.listen(2048)
        self._start_anew()

    def end_silent(self, epoch: int) -> None:
        """Kill our lead, which is frozen: it has answered in `epoch`, or had time to start. Then it has a successor."""
        if self._pid is not None and (epoch >= self._epoch - 1 or self._clock() - self._begun > STARTING):
            self._say(f"the lead (pid {self._pid}) does not answer: it is killed")
            os.kill(self._pid, signal.SIGKILL)  # our own child, not yet waited for
            self._begun = self._clock()

    def attach(self, loop: asyncio.AbstractEventLoop) -> None:
        """From now on a lead that dies has a successor."""
        self._loop = loop
        if self._life >= 0:
            loop.add_reader(self._life, self._ended)

    def wait(self, patience: float) -> None:
        """The run is over: up to `patience` seconds for the lead to leave. It has no successor any more."""
        if self._loop is not None and not self._loop.is_closed() and self._life >= 0:
            self._loop.remove_reader(self._life)
        self._loop = None
        deadline = time.monotonic() + patience
        while self._pid is not None and time.monotonic() < deadline:
            try:
                pid, status = os.waitpid(self._pid, os.WNOHANG)
                if pid:
                    self.done = os.waitstatus_to_exitcode(status) == 0
                    self._pid = None
            except ChildProcessError:
                self._pid = None
            time.sleep(0.01)

    def _ended(self) -> None:
        """The lead's end of the pipe is closed: its process is gone, whatever it died of. Its last word comes first."""
        assert self._loop is not None  # noqa: S101 - whoever calls us is it
        assert self._pid is not None  # noqa: S101 - it was started
        if word := os.read(self._life, _WORDS):
            self._last = word
            return
        self._loop.remove_reader(self._life)
        os.close(self._life)
        self._life = -1
        code = os.waitstatus_to_exitcode(os.waitpid(self._pid, 0)[1])
        self._pid = None
        if code in _NO_SUCCESSOR:
            self.done = code == 0
            self._leave("the lead has ended")
            return
        how = f"with exit code {code}" if code > 0 else f"by {signal.Signals(-code).name}"
        now = self._clock()
        self._deaths = [then for then in self._deaths if then > now - WITHIN] + [now]
        if len(self._deaths) > TRIES:
            within = max(now - self._deaths[0], 1.0)
            often = f"the lead has died {len(self._deaths)} times within {within:.0f} s, the last time {how}"
            self._leave(f"{often}{_hint(code, self._last.decode(errors='replace').strip() or said_since(self._words))}")
            self._say(f"{self.why}; it has no successor here")
            return
        self._say(f"the lead has ended {how}; the one of epoch {self._epoch} takes over")
        self._start_anew()

    def _start_anew(self) -> None:
        assert self._loop is not None  # noqa: S101 - as above
        try:
            self.start()
        except OSError as wrong:
            self._leave(f"no lead can be started: {wrong.strerror}")
            self._say(self.why)
            return
        self._loop.add_reader(self._life, self._ended)

    def _leave(self, why: str) -> None:
        """Whoever asks now is told by the kernel that nobody is there."""
        self.why = why
        self._socket.close()


def said_since(start: int, log: int = _LOG) -> str:
    """The last line of a log from byte `start` on that is not the agent's; empty where there is none, or no file.

    The agent's own thread may write what it said of the lead before this one only after `start` was taken.
    """
    try:
        with open(f"/proc/self/fd/{log}", "rb") as file:  # noqa: PTH123 - no pathlib before the standbys are off
            file.seek(max(start, file.seek(0, os.SEEK_END) - _WORDS))
            lines = file.read().decode(errors="replace").splitlines()
    except OSError:
        return ""
    return next((line.strip() for line in reversed(lines) if line.strip() and not was_said(line)), "")


def _hint(code: int, said: str) -> str:
    """What a lead died of: its last line, or where to look."""
    if said:
        return f" ({said})"
    return " (killed from outside, or for want of memory: see dmesg)" if code == -signal.SIGKILL else ""


def bound(address: str, port: int = 0) -> socket.socket:
    """Bound, not listening: connections are refused, and nobody else gets the port. `::` takes IPv4 as well."""
    made = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET)
    try:
        if port:  # what was here before us may have left connections behind
            made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if address == "::":
            made.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        made.bind((address, port))
    except OSError:
        made.close()
        raise
    return made
