"""The cores that this process may use, and what they share: `/sys` and the cgroup, read and never written."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

from phalanx.plan.cpulist import cpus_of

SYS, PROC, CGROUPS = Path("/sys/devices/system"), Path("/proc"), Path("/sys/fs/cgroup")


def nodes(allowed: frozenset[int] | None = None, system: Path = SYS) -> dict[int, tuple[tuple[int, ...], ...]]:
    """By NUMA node (by package, where the kernel knows no nodes): its cores, each the CPUs that it is.

    Only CPUs that this process may use: its affinity, which lies within its cpuset. What `/sys` does not tell is a core
    of its own, on node 0.
    """
    mine = frozenset(os.sched_getaffinity(0)) if allowed is None else allowed
    home = {cpu: node for node, cpus in _listed(system) for cpu in cpus}
    found: dict[int, dict[int, tuple[int, ...]]] = {}
    for cpu in sorted(mine):
        topology = system / f"cpu/cpu{cpu}/topology"
        core = tuple(sorted(mine & {cpu, *_cpus(topology / "thread_siblings_list")}))
        node = home[cpu] if cpu in home else int(_read(topology / "physical_package_id") or 0)
        found.setdefault(max(node, 0), {}).setdefault(core[0], core)
    return {node: tuple(cores.values()) for node, cores in sorted(found.items())}


def quota(proc: Path = PROC, cgroups: Path = CGROUPS) -> float:
    """Cores' worth of CPU time that the tightest of our cgroups allows, of version 2 or 1; 0 where none limits it."""
    limits = [limit for line in _read(proc / "self/cgroup").splitlines() for limit in _limits(line, cgroups)]
    return min(limits, default=0.0)


def _limits(line: str, cgroups: Path) -> Iterator[float]:
    number, _, rest = line.partition(":")
    controllers, _, name = rest.partition(":")
    if number == "0":
        root = cgroups
    elif "cpu" in controllers.split(","):
        root = next((cgroups / each for each in (controllers, "cpu") if (cgroups / each).is_dir()), cgroups / "cpu")
    else:
        return
    folder = root / name.lstrip("/")
    for group in (folder, *folder.parents):
        if not group.is_relative_to(root):
            return
        words = _read(group / "cpu.max").split() if number == "0" else _version_1(group)
        if len(words) == 2 and all(word.isdecimal() and int(word) for word in words):  # noqa: PLR2004 - quota, period
            yield int(words[0]) / int(words[1])


def _version_1(group: Path) -> list[str]:
    return [_read(group / f"cpu.cfs_{name}_us") for name in ("quota", "period")]


def _listed(system: Path) -> Iterator[tuple[int, tuple[int, ...]]]:
    for path in sorted((system / "node").glob("node*/cpulist")):
        if found := re.fullmatch(r"node(\d+)", path.parent.name):
            yield int(found[1]), _cpus(path)


def _cpus(path: Path) -> tuple[int, ...]:
    return cpus_of(_read(path))


def _read(path: Path) -> str:
    try:
        return path.read_text().strip()
    except OSError:
        return ""
