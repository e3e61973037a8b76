"""What a host is: cores, memory, GPUs, as `/proc` and `/sys` say, without a single library."""

from __future__ import annotations

import os
from collections.abc import Mapping

from phalanx.agent import gpus, topology
from phalanx.agent.machine import Machine
from phalanx.plan.host import Host


def cpu_count() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0))


def memory_bytes() -> int:
    """Physical memory in bytes, or what our cgroup allows of it; 0 where it cannot be read."""
    return Machine().memory().total


def gpu_count(environ: Mapping[str, str] = os.environ) -> int:
    """GPUs that a task with this environment sees."""
    return len(gpus.visible(environ))


def this_machine(environ: Mapping[str, str]) -> Host:
    """Its cores, memory and GPUs, as tasks with this environment may have them; it has no name and no ports yet.

    Cores are pinned to only where they are ours: where CPU time is limited instead, others run on the same ones.
    """
    cpus, quota = cpu_count(), topology.quota()
    limited = 0 < quota < cpus
    cores = topology.nodes()
    cards = gpus.visible(environ)
    numbers = list(cores)
    return Host(
        id=0,
        name="",
        address="",
        ports=(),
        cpus=cpus,
        memory=memory_bytes(),
        nodes=() if limited else tuple(cores.values()),
        unpinned=f"its cgroup gives it the time of {quota:g} cores, and any {cpus} to spend it on" if limited else "",
        quota=quota,
        gpus=len(cards),
        devices=_names(cards, environ),
        gpu_nodes=tuple(numbers.index(card.node) if card.node in numbers else -1 for card in cards),
    )


def _names(cards: tuple[gpus.Gpu, ...], environ: Mapping[str, str]) -> tuple[str, ...]:
    """None where plain numbers from 0 say it."""
    plain = "CUDA_VISIBLE_DEVICES" not in environ and not any(card.slice for card in cards)
    return () if plain else tuple(card.name for card in cards)
