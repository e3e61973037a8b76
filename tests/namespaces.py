"""Hosts of a kernel's own: network namespaces, each pair joined by a cable that has its own rate."""

from __future__ import annotations

import itertools
import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from launched import wait_for

#: A host's name is the number of the process that holds its namespace. All but the network is this machine's.
THROUGH = "nsenter -t {host} -n"


@contextmanager
def hosts(count: int, *, rate: str, slow: Mapping[tuple[int, int], str]) -> Iterator[list[str]]:
    """Their names; the address of number 2 is 10.203.0.2. Skips the test where they cannot be made.

    A namespace goes with its last process: that of ours ends with the test's own, whatever ends that.
    """
    if os.geteuid() or not all(map(shutil.which, ("ip", "tc", "unshare", "nsenter"))):
        pytest.skip("network namespaces need root, ip, tc, unshare and nsenter")
    with ExitStack() as held:
        names = [held.enter_context(_namespace()) for _ in range(count)]
        for a, b in itertools.combinations(range(count), 2):
            _cable(names, a, b, slow.get((a, b), rate))
        yield names


@contextmanager
def _namespace() -> Iterator[str]:
    own = Path("/proc/self/ns/net").readlink()
    with subprocess.Popen(["unshare", "-n", "cat"], stdin=subprocess.PIPE, stderr=subprocess.DEVNULL) as holder:
        theirs = Path(f"/proc/{holder.pid}/ns/net")
        wait_for(lambda: holder.poll() is not None or theirs.readlink() != own, "a namespace")
        if holder.poll() is not None:
            pytest.skip("this kernel makes no network namespaces")
        yield str(holder.pid)


def _cable(names: list[str], a: int, b: int, rate: str) -> None:
    _made(names[a], "ip", "link", "add", f"to{b}", "type", "veth", "peer", "name", f"to{a}", "netns", names[b])
    for one, other in ((a, b), (b, a)):
        own, peer = f"10.203.0.{one}/32", f"10.203.0.{other}/32"
        _made(names[one], "ip", "addr", "add", own, "peer", peer, "dev", f"to{other}")
        _made(names[one], "ip", "link", "set", f"to{other}", "up")
        bucket = ("rate", rate, "burst", "32k", "latency", "50ms")
        _made(names[one], "tc", "qdisc", "add", "dev", f"to{other}", "root", "tbf", *bucket)


def closed(names: list[str], a: int, b: int) -> None:
    """What the one sends to the other goes to nobody, as behind a firewall that drops it."""
    nobody = ("lladdr", "02:00:00:00:00:01", "nud", "permanent")
    _made(names[a], "ip", "neigh", "replace", f"10.203.0.{b}", *nobody, "dev", f"to{b}")


def _made(name: str, *words: str) -> None:
    argv = ["nsenter", "-t", name, "-n", *words]
    done = subprocess.run(argv, check=False, capture_output=True, text=True)
    if done.returncode:
        pytest.skip(f"this kernel cannot do it: {' '.join(words)}: {done.stderr.strip()}")
