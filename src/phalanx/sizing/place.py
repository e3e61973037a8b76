"""Where it is to be trained: hosts, their memory and cores, the network, and how fast a core is."""

from __future__ import annotations

import dataclasses

#: What is taken for the network of several hosts where nobody says: 10 Gbit/s, and 0.1 ms there and back.
BANDWIDTH, RTT = 1.25e9, 1e-4


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Core:
    """What one core does of what steps are made of. Each look measures it; else that of docs/benchmarks.md."""

    #: Floating-point operations a second in a matrix product that stays in the cache.
    flops: float = 200e9
    #: Bytes read and written a second by an operation on each element.
    moved: float = 20e9
    #: Seconds of an operation that does next to nothing.
    operation: float = 1e-6
    #: Core seconds of a byte that one task sends and another gets by TensorFlow's gRPC, at both ends together.
    sent: float = 1.1e-9
    #: Core seconds of one hop of a ring on one worker, where it carries next to nothing.
    hop: float = 0.2e-3
    #: Core seconds of a byte of memory that the kernel hands out anew.
    anew: float = 0.5e-9


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Place:
    """The hosts, all alike."""

    hosts: int = 1
    cores: int = 1
    #: Bytes of memory of one host.
    memory: int = 0
    #: Bytes a second from one host to another, each way; None: all tasks are on one host.
    bandwidth: float | None = None
    #: The same for the slowest link of the ring that a collective goes round, where that was measured.
    ring: float | None = None
    #: Seconds there and back between two hosts.
    rtt: float = 0.0
    core: Core = Core()

    @property
    def collective(self) -> float | None:
        """Bytes a second at which a collective goes round."""
        return self.ring or self.bandwidth

    def on_one_host(self, tasks: int) -> int:
        """How many of so many tasks the fullest host carries."""
        return -(-tasks // self.hosts)
