"""Who asks something of a run, in the words of its records; and what he hears while nobody answers."""

from __future__ import annotations

import os
import pwd
import socket
import sys


def asker(verb: str) -> str:
    """`user@machine with `phalanx VERB``."""
    try:
        name = pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        name = str(os.getuid())
    return f"{name}@{socket.gethostname().partition('.')[0]} with `phalanx {verb}`"


def patiently(message: str) -> None:
    """What `audience` says to whoever waits."""
    sys.stderr.write(f"phalanx: {message}\n")
