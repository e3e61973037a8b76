"""What was measured, and the file that keeps it."""

from __future__ import annotations

import dataclasses
import json
import statistics
from pathlib import Path
from typing import Any

from phalanx.errors import InputError

_VERSION = 1


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Machine:
    """A host: bytes of memory, cores and NUMA nodes. `address` is where the others reach it."""

    name: str
    address: str
    memory: int
    cores: int
    nodes: int = 1


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Link:
    """From one host to another, by their numbers: bytes a second while it is used both ways, seconds there and back."""

    source: int
    target: int
    rate: float
    rtt: float


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Measured:
    """Hosts in their order, and the links between them."""

    hosts: tuple[Machine, ...]
    #: Both directions of each pair that was measured: all pairs, or some of many.
    links: tuple[Link, ...] = ()
    #: Bytes a second from each host to the next one, the last to the first, all at once.
    ring: tuple[float, ...] = ()
    #: Bytes a second of one link while the others rest, where that says more than `links`.
    alone: float | None = None
    #: Seconds since 1970.
    time: float = 0.0

    @property
    def pairs(self) -> int:
        """How many there are, measured or not."""
        return len(self.hosts) * (len(self.hosts) - 1) // 2

    @property
    def median(self) -> float | None:
        """Bytes a second of the middle link."""
        return statistics.median([link.rate for link in self.links]) if self.links else None

    @property
    def rtt(self) -> float:
        """Seconds there and back of the middle link; 0 for one host."""
        return statistics.median([link.rtt for link in self.links]) if self.links else 0.0


def save(measured: Measured, path: Path) -> None:
    """Raises InputError."""
    told = {"phalanx_hosts": _VERSION, **dataclasses.asdict(measured)}
    try:
        path.write_text(json.dumps(told, indent=1) + "\n", encoding="utf-8")
    except OSError as wrong:
        raise InputError(
            f"{path} cannot be written: {wrong.strerror}", hint="name another file: --save FILE"
        ) from wrong


def load(path: Path) -> Measured:
    """What `save` has written. Raises InputError."""
    try:
        told = json.loads(path.read_text(encoding="utf-8"))
    except OSError as wrong:
        raise InputError(
            f"{path} cannot be read: {wrong.strerror}", hint="measure: --measure n1,n2 --save FILE"
        ) from wrong
    except ValueError as wrong:
        raise InputError(f"{path} is no JSON: {wrong}", hint="measure anew: --measure n1,n2 --save FILE") from wrong
    try:
        return _read(told)
    except (KeyError, TypeError, ValueError, OverflowError) as wrong:
        message = f"{path} is not what `advise --save` writes: {wrong!r}"
        raise InputError(message, hint="measure anew: --measure n1,n2 --save FILE") from wrong


def _read(told: Any) -> Measured:
    if told["phalanx_hosts"] != _VERSION:
        raise ValueError(f"version {told['phalanx_hosts']}")
    hosts = tuple(
        Machine(
            name=str(one["name"]),
            address=str(one["address"]),
            memory=_whole(one["memory"]),
            cores=_whole(one["cores"]),
            nodes=_whole(one["nodes"]),
        )
        for one in told["hosts"]
    )
    links = tuple(
        Link(
            source=range(len(hosts)).index(one["source"]),
            target=range(len(hosts)).index(one["target"]),
            rate=_above(one["rate"]),
            rtt=float(one["rtt"]),
        )
        for one in told["links"]
    )
    ring = tuple(map(_above, told["ring"]))
    if not hosts or len(ring) != (len(hosts) if len(hosts) > 1 else 0):
        raise ValueError("hosts and ring do not match")
    alone = None if told["alone"] is None else _above(told["alone"])
    return Measured(hosts=hosts, links=links, ring=ring, alone=alone, time=float(told["time"]))


def _whole(value: Any) -> int:
    if int(value) < 1:
        raise ValueError(f"{value} is less than 1")
    return int(value)


def _above(value: Any) -> float:
    if not 0 < float(value) < float("inf"):
        raise ValueError(f"{value} is no rate")
    return float(value)
