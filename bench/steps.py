"""Steps a second: `phalanx run` beside the same tasks started by hand, or beside itself without pinning.

    python bench/steps.py [--pairs 5] [--seconds 6] [--workers 2,4] [--kinds comm,compute] [--beside hand|no-pin]

Pairs are interleaved (other, phalanx, other, …); the median of the pairs' ratios is the figure, since machines drift. A
pair counts as quiet where nobody else had more than a tenth of the cores during either run; those are told apart.
`ps` (a chief, workers and one parameter server) can be compared with `--beside no-pin` only: nobody ends its servers.
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from launch import environ, run_by_hand

QUIET = 0.1
SCRIPT = Path(__file__).parent / "steps_train.py"


def others_since(start: tuple[float, float, float]) -> float:
    """The part of all cores' time that neither was idle nor went to our children."""
    now, busy, ours = clock()
    return max((busy - start[1]) - (ours - start[2]), 0.0) / ((now - start[0]) * (os.cpu_count() or 1))


def clock() -> tuple[float, float, float]:
    """Now, the seconds that processes have run on this machine, and those of our children that have ended."""
    ticks = [int(field) for field in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:4]]
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.time(), sum(ticks) / os.sysconf("SC_CLK_TCK"), used.ru_utime + used.ru_stime


def rate(folder: str) -> float:
    return float((Path(folder) / "rate").read_text().split()[0])


def by_hand(workers: int, kind: str, seconds: float, home: Path) -> float:
    with tempfile.TemporaryDirectory() as folder:
        run_by_hand(workers, SCRIPT, folder, kind, str(seconds), home=home, timeout=300)
        return rate(folder)


def by_phalanx(workers: int, kind: str, seconds: float, home: Path, *more: str) -> float:
    with tempfile.TemporaryDirectory() as folder:
        run = subprocess.run(
            [
                *(sys.executable, "-m", "phalanx", "run", "--quiet", "--runs", str(home / "runs"), *more),
                *("--workers", str(workers), *(("--ps", "1") if kind == "ps" else ())),
                *(str(SCRIPT), folder, kind, str(seconds)),
            ],
            env=environ(home),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
        if run.returncode:
            raise SystemExit(run.stderr)
        return rate(folder)


def told(ratios: list[float], quiet: list[bool]) -> str:
    alone = [ratio for ratio, was in zip(ratios, quiet, strict=True) if was]
    return f"quiet pairs {len(alone)}" + (f", ratio {statistics.median(alone):.2f}" if alone else "")


def main() -> None:
    words = argparse.ArgumentParser(description=__doc__)
    words.add_argument("--pairs", type=int, default=5)
    words.add_argument("--seconds", type=float, default=6)
    words.add_argument("--workers", default="2,4")
    words.add_argument("--kinds", default="comm,compute")
    words.add_argument("--beside", choices=("hand", "no-pin"), default="hand")
    chosen = words.parse_args()
    print(f"{os.cpu_count()} cores; load before: {os.getloadavg()[0]:.1f}")
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        for kind in chosen.kinds.split(","):
            for workers in map(int, chosen.workers.split(",")):
                others, ours, quiet = [], [], []
                for _ in range(chosen.pairs):
                    start = clock()
                    if chosen.beside == "hand":
                        others.append(by_hand(workers, kind, chosen.seconds, home))
                    else:
                        others.append(by_phalanx(workers, kind, chosen.seconds, home, "--no-pin"))
                    alone = others_since(start)
                    start = clock()
                    ours.append(by_phalanx(workers, kind, chosen.seconds, home))
                    quiet.append(max(alone, others_since(start)) < QUIET)
                ratios = [mine / other for mine, other in zip(ours, others, strict=True)]
                print(
                    f"{kind}, {workers} workers: {chosen.beside} {statistics.median(others):.1f} steps/s, phalanx "
                    f"{statistics.median(ours):.1f}, ratio {statistics.median(ratios):.2f} (median of {chosen.pairs} "
                    f"pairs, {min(ratios):.2f} to {max(ratios):.2f}); {told(ratios, quiet)}; "
                    f"load {os.getloadavg()[0]:.1f}",
                    flush=True,
                )


if __name__ == "__main__":
    main()
