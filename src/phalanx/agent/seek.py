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


def seek(names: Sequence[str], port: int, *, patience: float, nobody: float | None = None, former: str = "") -> Sought:
    """Ask all of them, round by round, until one leads, or for `patience` seconds: once in any case.

    `nobody`: after so many seconds it is enough that none of the names is anybody's. `former`: the name of a pod that
    may still be ending while its replacement, which asks, has come; as long as it leads, time does not count.
    """
    since, told = time.monotonic(), time.monotonic() + _TOLD
    while True:
        says, known = {}, False
        for name in dict.fromkeys(names):
            lead, answer = _ask(name, port)
            if lead:
                return Sought(lead=lead, says="")
            says[name] = answer or "its name is not known"
            known |= answer is not None
        if former and _ask(former, port)[0]:
            says[former], since = "the pod before this one still leads", time.monotonic()
        now, words = time.monotonic(), "; ".join(f"{name}: {words}" for name, words in says.items())
        if now - since >= patience or (nobody is not None and now - since >= nobody and not known):
            return Sought(lead=None, says=words)
        if now >= told:
            say(f"no lead yet ({words})")
            told = now + _TOLD
        time.sleep(_AGAIN)


def _ask(name: str, port: int) -> tuple[str, str | None]:
    """Where a lead answers, `host:port` with its address, for a name may be two pods'; else "" and what is wrong, None
    where there is no such host.
    """
    try:
        with socket.create_connection((name, port), timeout=_ASK) as asked:
            asked.sendall(f"GET /healthz HTTP/1.1\r\nhost: {name}\r\nconnection: close\r\n\r\n".encode())
            if asked.recv(64).split(b" ")[1:2] == [b"200"]:
                return join_host_port(asked.getpeername()[0], port), ""
            return "", "it answers otherwise"
    except socket.gaierror:
        return "", None
    except OSError as wrong:
        return "", wrong.strerror or "no answer in time"
