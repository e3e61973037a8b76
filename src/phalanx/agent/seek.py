"""Who leads a run, asked of every host that may: for a pod that has come later than others."""

from __future__ import annotations

import dataclasses
import socket
import time
from collections.abc import Sequence

from phalanx.agent.log import say
from phalanx.names import join_host_port

#: Seconds for one question, between two rounds, and between two words about it.
_ASK, _AGAIN, _TOLD = 2.0, 0.5, 30.0


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Sought:
    """`lead` is where one answers, `host:port`; None: nowhere. `says`: what came instead."""

    lead: str | None
    says: str


def seek(names: Sequence[str], port: int, *, until: float, nobody: float | None = None) -> Sought:
    """Ask all of them, round by round, until one leads, or it is `until` by the monotonic clock.

    `nobody`: from then on it is enough that none of the names is anybody's.
    """
    told = time.monotonic() + _TOLD
    while True:
        says, known = {}, False
        for name in dict.fromkeys(names):
            answer = _ask(name, port)
            if answer == "":
                return Sought(lead=join_host_port(name, port), says="")
            says[name] = answer or "its name is not known"
            known |= answer is not None
        now = time.monotonic()
        words = "; ".join(f"{name}: {words}" for name, words in says.items())
        if now >= until or (nobody is not None and now >= nobody and not known):
            return Sought(lead=None, says=words)
        if now >= told:
            say(f"no lead yet ({words})")
            told = now + _TOLD
        time.sleep(_AGAIN)


def _ask(name: str, port: int) -> str | None:
    """Empty where a lead answers, else what is wrong; None where there is no such host."""
    try:
        with socket.create_connection((name, port), timeout=_ASK) as asked:
            asked.sendall(f"GET /healthz HTTP/1.1\r\nhost: {name}\r\nconnection: close\r\n\r\n".encode())
            return "" if asked.recv(64).split(b" ")[1:2] == [b"200"] else "it answers otherwise"
    except socket.gaierror:
        return None
    except OSError as wrong:
        return wrong.strerror or "no answer in time"
