"""The agent's process. What takes longest comes first: the tasks' interpreters start before the agent is whole.

Imports here are few on purpose: everything that needs asyncio is imported once the reaper and the standbys are off.
"""

from __future__ import annotations

import fcntl
import json
import os
import sys
import time
from typing import Any

from phalanx.agent.carrier import Carrier
from phalanx.agent.children import fork_reaper
from phalanx.agent.log import say
from phalanx.agent.prestart import prestart, refusal
from phalanx.errors import PhalanxError
from phalanx.patient import last_word_to, patient_stderr

#: The launcher ended before it had said what to do, or the operating system refused what it wants.
_PLACE_FAILED = 3


def main() -> int:
    """Run one host's agent to its end: 0 when the lead dismissed it, 3 when the lead was lost; in a pod see `host`."""
    patient_stderr()  # the agent's log lies on the run's disk, which may be full
    line = _first_line(0)
    if not line:
        return _PLACE_FAILED
    config: dict[str, Any] = json.loads(line)
    last_word_to(config["pod"]["word"] if "pod" in config else 1)
    _hold()
    try:
        reaper = fork_reaper()
        waiting = prestart(config, reaper)
        carrier = _carry(config["carry"])
    except OSError as wrong:
        sys.stderr.write(f"the agent cannot start its processes: {refusal(wrong)}\n")
        return _PLACE_FAILED
    except PhalanxError as wrong:
        sys.stderr.write(f"the agent cannot start its processes: {wrong}\n")
        return wrong.exit_code
    from phalanx.agent.host import run_agent  # noqa: PLC0415 - asyncio and all above it, after the first effects

    return run_agent(config, reaper, waiting, carrier)


def _hold() -> None:
    """Keep this version's folder as long as this process lives: what it starts later is started from there."""
    try:
        fcntl.flock(os.open(__file__, os.O_RDONLY | os.O_CLOEXEC), fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return  # a file inside an archive, or a file system without locks


def _first_line(fd: int) -> bytes:
    """Up to the first newline and no byte more: what follows on this pipe is its end."""
    found = bytearray()
    while not found.endswith(b"\n"):
        chunk = os.read(fd, 1 << 20)
        if not chunk:
            return b""
        found += chunk
    return bytes(found)


def _carry(carry: dict[str, Any]) -> Carrier:
    """Start the lead beside this agent, where this host carries the first one; the others may have to, later."""
    carrier = Carrier(carry, say=say, clock=time.monotonic)
    if carry["listen"] is not None:
        carrier.start()
    return carrier
