"""Which of our ports somebody listens on, by `/proc/net/tcp`: TensorFlow says nothing itself (facts §3)."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

_LISTEN = "0A"


def listening(
    ports: Iterable[int], tables: Iterable[Path] = (Path("/proc/net/tcp"), Path("/proc/net/tcp6"))
) -> set[int]:
    """Those of `ports` with a listener, on any address. A held port has none: it is bound, never listened on."""
    wanted = set(ports)
    found: set[int] = set()
    for table in tables:
        try:
            lines = table.read_text().splitlines()[1:]
        except OSError:
            continue  # no IPv6 in this kernel
        for line in lines:
            fields = line.split(maxsplit=4)
            if fields[3] == _LISTEN and (port := int(fields[1].rpartition(":")[2], 16)) in wanted:
                found.add(port)
    return found
