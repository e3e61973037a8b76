"""Numbers of CPUs as the kernel writes them, `0-3,8`, both ways."""

from __future__ import annotations

import re
from collections.abc import Iterable

_RUN = re.compile(r"(\d+)(?:-(\d+))?", re.ASCII)


def cpus_of(text: str) -> tuple[int, ...]:
    """The numbers, in the order in which they stand; what is none is passed over."""
    runs = [found for part in text.split(",") if (found := _RUN.fullmatch(part.strip()))]
    return tuple(cpu for found in runs for cpu in range(int(found[1]), int(found[2] or found[1]) + 1))


def text_of(cpus: Iterable[int]) -> str:
    """The shortest text for a set of numbers."""
    runs: list[list[int]] = []
    for cpu in sorted(set(cpus)):
        if runs and cpu == runs[-1][1] + 1:
            runs[-1][1] = cpu
        else:
            runs.append([cpu, cpu])
    return ",".join(str(low) if low == high else f"{low}-{high}" for low, high in runs)
