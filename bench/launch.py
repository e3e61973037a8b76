"""From the command to every worker's first step: `phalanx run` beside the same workers started by hand.

    python bench/launch.py [--pairs 7] [--workers 2,4]

Pairs are interleaved (hand, phalanx, hand, …) and the median of the pairs' ratios is the figure, since machines drift.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).parent
SCRIPT = HERE / "first_step_train.py"


def environ(home: Path) -> dict[str, str]:
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("PHALANX_", "TF_CONFIG"))}
    return clean | {"XDG_STATE_HOME": str(home / "state"), "XDG_CACHE_HOME": str(home / "cache")}


def free_port() -> int:
    """By bind and close in 20000-32000, as a careful user would."""
    while True:
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", random.randrange(20000, 32000)))  # noqa: S311 - any free port will do
            return probe.getsockname()[1]


def last_first_step(out: Path, workers: int) -> float:
    return max(float(path.read_text()) for path in sorted(out.iterdir())[:workers])


def run_by_hand(workers: int, script: Path, *words: str, home: Path, timeout: float) -> None:
    """N background processes with TF_CONFIG, as a shell script would start them; until all have ended well."""
    cluster = {"worker": [f"127.0.0.1:{free_port()}" for _ in range(workers)]}
    tasks = [
        subprocess.Popen(
            [sys.executable, str(script), *words],
            env=environ(home)
            | {"TF_CONFIG": json.dumps({"cluster": cluster, "task": {"type": "worker", "index": index}})},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        for index in range(workers)
    ]
    codes = [task.wait(timeout=timeout) for task in tasks]
    if any(codes):
        raise SystemExit(f"by hand: exit codes {codes}")


def by_hand(workers: int, home: Path) -> float:
    """Seconds to the last first step."""
    with tempfile.TemporaryDirectory() as folder:
        began = time.time()
        run_by_hand(workers, SCRIPT, folder, home=home, timeout=120)
        return last_first_step(Path(folder), workers) - began


def by_phalanx(workers: int, home: Path) -> tuple[float, int]:
    """`phalanx run`, from exec to the last first step; and the agent's peak RSS in bytes."""
    with tempfile.TemporaryDirectory() as folder:
        began = time.time()
        launcher = subprocess.Popen(
            [
                *(sys.executable, "-m", "phalanx", "run", "--quiet", "--runs", str(home / "runs")),
                *("--workers", str(workers), str(SCRIPT), folder),
            ],
            env=environ(home),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        rss = 0
        while launcher.poll() is None:
            rss = max(rss, agent_rss(str(home)))
            time.sleep(0.25)
        if launcher.returncode:
            raise SystemExit(launcher.stderr.read())
        return last_first_step(Path(folder), workers) - began, rss


def agent_rss(home: str) -> int:
    """The largest resident set among this home's agents, in bytes."""
    largest = 0
    for path in Path("/proc").iterdir():
        with contextlib.suppress(OSError, ValueError):
            words = (path / "cmdline").read_bytes().split(b"\0")
            if path.name.isdigit() and words[-2:-1] == [b"agent"] and home.encode() in b" ".join(words):
                largest = max(largest, int((path / "statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE"))
    return largest


def help_seconds() -> float:
    times = []
    for _ in range(7):
        began = time.perf_counter()
        subprocess.run([sys.executable, "-m", "phalanx", "--help"], stdout=subprocess.DEVNULL, check=True)
        times.append(time.perf_counter() - began)
    return statistics.median(times)


def main() -> None:
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    words = argparse.ArgumentParser(description=__doc__)
    words.add_argument("--pairs", type=int, default=7)
    words.add_argument("--workers", default="2,4")
    chosen = words.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        print(f"phalanx --help: {help_seconds():.3f} s (median of 7)")
        for workers in map(int, chosen.workers.split(",")):
            first, _ = by_phalanx(workers, home)  # fills the caches, as a first run does
            print(f"{workers} workers: the very first phalanx run {first:.2f} s")
            ratios, hands, ours, peak = [], [], [], 0
            for _ in range(chosen.pairs):
                hand = by_hand(workers, home)
                mine, rss = by_phalanx(workers, home)
                hands.append(hand)
                ours.append(mine)
                ratios.append(mine / hand)
                peak = max(peak, rss)
            print(
                f"{workers} workers: by hand {statistics.median(hands):.2f} s, phalanx {statistics.median(ours):.2f} s,"
                f" ratio {statistics.median(ratios):.3f} (median of {chosen.pairs} pairs, "
                f"{min(ratios):.2f} to {max(ratios):.2f}); agent {peak / 1e6:.0f} MB"
            )


if __name__ == "__main__":
    main()
