"""What a host is: cores, memory, GPUs, as `/proc` and `/sys` say, without a single library."""

from __future__ import annotations

import os
import re
from pathlib import Path


def cpu_count() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0))


def memory_bytes(meminfo: Path = Path("/proc/meminfo")) -> int:
    """Physical memory in bytes; 0 where it cannot be read."""
    try:
        found = re.search(r"^MemTotal:\s+(\d+) kB", meminfo.read_text(), re.MULTILINE)
    except OSError:
        return 0
    return int(found[1]) * 1024 if found else 0


def gpu_count(driver: Path = Path("/proc/driver/nvidia/gpus")) -> int:
    """GPUs that NVIDIA's driver shows; 0 where there is no driver."""
    try:
        return sum(1 for _ in driver.iterdir())
    except OSError:
        return 0
