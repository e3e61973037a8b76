"""Who asks something of a run, in the words of its records."""

from __future__ import annotations

import os
import pwd
import socket


def asker(verb: str) -> str:
    """`user@machine with `phalanx VERB``."""
    try:
        name = pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        name = str(os.getuid())
    return f"{name}@{socket.gethostname().partition('.')[0]} with `phalanx {verb}`"
