"""Hosts of a kernel's own: network namespaces, each pair joined by a cable that has its own rate."""

from __future__ import annotations

import itertools
import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import pytest

#: `ip netns exec` leaves the process where it is in all but its network.
THROUGH = "ip netns exec {host}"


@contextmanager
def hosts(count: int, *, rate: str, slow: Mapping[tuple[int, int], str]) -> Iterator[list[str]]:
    """Their names; the address of number 2 is 10.203.0.2. Skips the test where they cannot be made."""
    if os.geteuid() or not (shutil.which("ip") and shutil.which("tc")):
        pytest.skip("network namespaces need root, ip and tc")
    names = [f"px{os.getpid()}n{number}" for number in range(count)]
    try:
        for name in names:
            _made("ip", "netns", "add", name)
            _made("ip", "-n", name, "link", "set", "lo", "up")
        for a, b in itertools.combinations(range(count), 2):
            cable(names, a, b, slow.get((a, b), rate))
        yield names
    finally:
        for name in names:
            subprocess.run(["ip", "netns", "del", name], check=False, capture_output=True)


def cable(names: list[str], a: int, b: int, rate: str) -> None:
    _made("ip", "-n", names[a], "link", "add", f"to{b}", "type", "veth", "peer", "name", f"to{a}", "netns", names[b])
    for one, other in ((a, b), (b, a)):
        own, peer = f"10.203.0.{one}/32", f"10.203.0.{other}/32"
        _made("ip", "-n", names[one], "addr", "add", own, "peer", peer, "dev", f"to{other}")
        _made("ip", "-n", names[one], "link", "set", f"to{other}", "up")
        bucket = ("rate", rate, "burst", "32k", "latency", "50ms")
        _made("tc", "-n", names[one], "qdisc", "add", "dev", f"to{other}", "root", "tbf", *bucket)


def closed(names: list[str], a: int, b: int) -> None:
    """What the one sends to the other goes to nobody, as behind a firewall that drops it."""
    nobody = ("lladdr", "02:00:00:00:00:01", "nud", "permanent")
    _made("ip", "-n", names[a], "neigh", "replace", f"10.203.0.{b}", *nobody, "dev", f"to{b}")


def _made(*words: str) -> None:
    done = subprocess.run(words, check=False, capture_output=True, text=True)
    if done.returncode:
        pytest.skip(f"this kernel cannot do it: {' '.join(words)}: {done.stderr.strip()}")
