"""What an agent told about its host when it joined: all that `bind` may know of it."""

from __future__ import annotations

import dataclasses

#: The CPUs (hardware threads) that one physical core is.
Core = tuple[int, ...]


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Host:
    """One living host.

    `id` is the engine's own number and never a task index: a gap in `worker` hangs TensorFlow.
    """

    id: int
    name: str
    #: The address under which the other hosts reach it: IP or name, no port.
    address: str
    #: Ports the agent holds for this generation's tasks, in the order to use them.
    ports: tuple[int, ...]
    cpus: int = 1
    gpus: int = 0
    #: The cores that its tasks may be pinned to, by NUMA node; none where they cannot be had for them alone, and why.
    nodes: tuple[tuple[Core, ...], ...] = ()
    unpinned: str = ""
    #: Cores' worth of CPU time that its cgroup allows; 0: no limit.
    quota: float = 0.0
    #: What CUDA_VISIBLE_DEVICES calls its GPUs; none: by their numbers.
    devices: tuple[str, ...] = ()
    #: The place in `nodes` of the NUMA node of each; -1 for none of them.
    gpu_nodes: tuple[int, ...] = ()
    #: Bytes of memory in all.
    memory: int = 0
    #: The folder on that host under which logs and task folders lie.
    folder: str = ""
    #: The only role whose tasks it takes: a pod is made for one. Empty: any.
    role: str = ""

    def takes(self, kind: str) -> bool:
        """Whether tasks of that type may run here."""
        return self.role in ("", kind)
