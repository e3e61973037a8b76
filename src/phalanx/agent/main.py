"""The agent's process. What takes longest comes first: the tasks' interpreters start before the agent is whole.

Imports here are few on purpose: everything that needs asyncio is imported once the reaper and the standbys are off.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any

from phalanx.agent.children import fork_reaper
from phalanx.agent.prestart import prestart, refusal

#: The launcher ended before it had said what to do, or the operating system refused what it wants.
_PLACE_FAILED = 3


def main() -> int:
    """Run one host's agent to its end: 0 when the lead dismissed it, 3 when the lead was lost."""
    line = _first_line(0)
    if not line:
        return _PLACE_FAILED
    config: dict[str, Any] = json.loads(line)
    try:
        reaper = fork_reaper()
        waiting = prestart(config, reaper)
        lead = _carry_lead(config.get("carry"))
    except OSError as wrong:
        sys.stderr.write(f"the agent cannot start its processes: {refusal(wrong)}\n")
        return _PLACE_FAILED
    from phalanx.agent.host import run_agent  # noqa: PLC0415 - asyncio and all above it, after the first effects

    return run_agent(config, reaper, waiting, lead)


def _first_line(fd: int) -> bytes:
    """Up to the first newline and no byte more: what follows on this pipe is its end."""
    found = bytearray()
    while not found.endswith(b"\n"):
        chunk = os.read(fd, 1 << 20)
        if not chunk:
            return b""
        found += chunk
    return bytes(found)


def _carry_lead(carry: dict[str, Any] | None) -> int | None:
    """Start the lead beside this agent, in a session of its own; its pid, or None where another host carries it."""
    if carry is None:
        return None
    read, write = os.pipe()
    argv = [sys.executable, "-S", "-E", sys.argv[0], "lead", "3", "4"]
    # Away from the target numbers first, so that one dup2 cannot close what the next needs.
    listen = carry["listen"]
    high_read, high_listen = _above(read), _above(listen)
    pid = os.posix_spawn(
        sys.executable,
        argv,
        dict(os.environ),
        file_actions=[
            (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
            (os.POSIX_SPAWN_DUP2, high_read, 3),
            (os.POSIX_SPAWN_DUP2, high_listen, 4),
        ],
        setsid=True,
    )
    for fd in (read, high_read, listen, high_listen):
        os.close(fd)
    with os.fdopen(write, "wb") as pipe:
        pipe.write(json.dumps(carry["lead"]).encode())
    return pid


def _above(fd: int) -> int:
    import fcntl  # noqa: PLC0415 - needed once, by one agent of a run

    return fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 10)
