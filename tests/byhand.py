"""A script as its README starts it: plain processes, each with its TF_CONFIG, and nothing of phalanx around them."""

from __future__ import annotations

import json
import math
import os
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from phalanx.agent.ports import PortHolder

EXAMPLES = Path(__file__).parents[1] / "examples"
#: Where `make` puts the data of examples/recommender: a folder of its own, since that wheel brings a package `tests`.
MOVIELENS = Path(sys.prefix) / "movielens"


def environ(**more: str) -> dict[str, str]:
    ours = ("PHALANX_", "TF_CONFIG", "PYTHONPATH")
    return {name: value for name, value in os.environ.items() if not name.startswith(ours)} | more


def threads(tasks: int) -> dict[str, str]:
    """As many as phalanx gives each of so many tasks on this host: sums are made in parts, one a thread (facts §6)."""
    return {"TF_NUM_INTRAOP_THREADS": str(max(math.ceil(len(os.sched_getaffinity(0)) / tasks), 1))}


def start(
    script: Path, *words: object, tf_config: Mapping[str, Any] | None = None, **more: str
) -> subprocess.Popen[str]:
    given = {"TF_CONFIG": json.dumps(tf_config)} if tf_config else {}
    return subprocess.Popen(
        [sys.executable, script, *map(str, words)],
        env=environ(PYTHONPATH=str(MOVIELENS), **given, **more),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def finish(process: subprocess.Popen[str]) -> list[str]:
    """Its lines on standard output, once it has ended well."""
    out, err = process.communicate(timeout=400)
    assert process.returncode == 0, err
    return out.splitlines()


def start_all(roles: Mapping[str, int], script: Path, *words: object, **more: str) -> dict[str, subprocess.Popen[str]]:
    """Task → process, of a cluster on free ports of this machine."""
    holder = PortHolder()
    ports = iter(holder.hold(sum(roles.values())))
    holder.release_all()
    more = threads(sum(roles.values())) | more
    cluster = {role: [f"127.0.0.1:{next(ports)}" for _ in range(count)] for role, count in roles.items()}
    return {
        f"{role}:{index}": start(
            script, *words, tf_config={"cluster": cluster, "task": {"type": role, "index": index}}, **more
        )
        for role, count in roles.items()
        for index in range(count)
    }


def together(roles: Mapping[str, int], script: Path, *words: object) -> dict[str, list[str]]:
    """Task → its lines, once all have ended well. Beside a ps only the chief ends by itself: the others are ended."""
    tasks = start_all(roles, script, *words)
    try:
        return {task: finish(one) for task, one in tasks.items() if "ps" not in roles or task == "chief:0"}
    finally:
        for one in tasks.values():
            one.kill()
            one.communicate()


def epochs(text: str) -> list[str]:
    return [line for line in text.splitlines() if line.startswith("epoch ")]


def figures(lines: list[str], name: str) -> list[float]:
    """What stands behind a name in the line of each epoch, in their order."""
    return [float(found[1]) for line in lines if (found := re.search(rf"^epoch .*\b{name} (\d+\.\d+)", line))]
