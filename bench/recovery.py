"""kill -9 one of the workers → the group's first new step: cold, warm, and what TensorFlow alone does.

    python bench/recovery.py [--pairs 7] [--workers 2] [--alone]

Pairs are interleaved (cold, warm, cold, …): `--standbys 0` beside the default. The figures are the medians and the
median of the pairs' ratios, since machines drift. `--alone` shows, without a supervisor, how long the survivor takes to
notice a killed and a stopped peer, and that nothing starts it again.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
from launch import environ, free_port

SCRIPT = Path(__file__).parent / "recovery_train.py"
PATIENCE = 180.0
#: Steps of the first generation before the kill, so that there is a checkpoint.
BEFORE = 12


def wait_for(true: Callable[[], Any], what: str, within: float = PATIENCE) -> Any:
    deadline = time.monotonic() + within
    while time.monotonic() < deadline:
        if found := true():
            return found
        time.sleep(0.02)
    raise SystemExit(f"not within {within:g} s: {what}")


def steps(log: Path) -> list[float]:
    """When each step was done, in Unix seconds."""
    lines = log.read_text().splitlines() if log.exists() else []
    return [float(line.split()[2]) for line in lines if line.startswith("step ") and len(line.split()) == 4]


class Run:
    """One run of phalanx, to be hurt."""

    def __init__(self, home: Path, workers: int, *more: str) -> None:
        self.runs, self.workers = Path(tempfile.mkdtemp(dir=home)), workers
        self.launcher = subprocess.Popen(
            [
                *(sys.executable, "-m", "phalanx", "run", "--quiet", "--runs", str(self.runs)),
                *("--workers", str(workers), "--max-restarts", "3", *more),
                *(str(SCRIPT), str(self.runs / "checkpoint")),
            ],
            env=environ(home),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

    def events(self, kind: str) -> list[dict[str, Any]]:
        found = next(iter(self.runs.glob("*/events.jsonl")), None)
        lines = found.read_text().splitlines() if found else []
        return [event for event in map(json.loads, lines) if event["event"] == kind]

    def steps(self, task: int, generation: int) -> list[float]:
        return next(
            (steps(log) for log in self.runs.glob(f"*/logs/worker_{task}/g{generation}.a1.out")),
            [],
        )

    def recover(self, *, warm: bool) -> float:
        """Seconds from the kill to the last worker's first new step."""
        wait_for(lambda: len(self.steps(0, 1)) >= BEFORE, "the first steps")
        if warm:
            wait_for(lambda: [e for e in self.events("standbys-ready") if e["count"] == self.workers], "standbys")
        time.sleep(1)
        victim = next(e for e in self.events("task-started") if e["task"] == f"worker:{self.workers - 1}")
        began = time.time()
        os.kill(victim["pid"], signal.SIGKILL)
        first = wait_for(self._resumed, "new steps")
        used = [e.get("standby", False) for e in self.events("task-started") if e["generation"] == 2]
        if used != [warm] * self.workers:
            raise SystemExit(f"standbys used: {used}")
        return first - began

    def _resumed(self) -> float:
        found = [self.steps(task, 2)[:1] for task in range(self.workers)]
        return max(first[0] for first in found) if all(found) else 0.0

    def end(self) -> None:
        self.launcher.terminate()
        self.launcher.wait(timeout=60)


def recovery(home: Path, workers: int, *, warm: bool) -> float:
    run = Run(home, workers, *(() if warm else ("--standbys", "0")))
    try:
        return run.recover(warm=warm)
    finally:
        run.end()


def alone(home: Path, number: signal.Signals) -> str:
    """Two workers by hand; one is hurt. When the other ends, and whether training ever goes on."""
    folder = Path(tempfile.mkdtemp(dir=home))
    addresses = [f"127.0.0.1:{free_port()}" for _ in range(2)]
    tasks, logs = [], []
    for index in range(2):
        config = {"cluster": {"worker": addresses}, "task": {"type": "worker", "index": index}}
        logs.append(folder / f"{index}.out")
        with logs[-1].open("wb") as out:
            tasks.append(
                subprocess.Popen(
                    [sys.executable, str(SCRIPT), str(folder / "checkpoint")],
                    env=environ(home) | {"TF_CONFIG": json.dumps(config)},
                    stdout=out,
                    stderr=subprocess.DEVNULL,
                )
            )
    try:
        wait_for(lambda: len(steps(logs[0])) >= BEFORE, "the first steps")
        began = time.time()
        tasks[1].send_signal(number)
        wait_for(lambda: tasks[0].poll() is not None, "the survivor's end")
        noticed = time.time() - began
        last = steps(logs[0])[-1] - began
        return f"the survivor ends after {noticed:.1f} s (last step at {last:+.1f} s); first new step: never"
    finally:
        for task in tasks:
            task.kill()
            task.wait()


def main() -> None:
    words = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    words.add_argument("--pairs", type=int, default=7)
    words.add_argument("--workers", type=int, default=2)
    words.add_argument("--alone", action="store_true")
    chosen = words.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        pairs = []
        for number in range(chosen.pairs):
            pair = [recovery(home, chosen.workers, warm=warm) for warm in (False, True)]
            pairs.append(pair)
            print(f"pair {number + 1}: cold {pair[0]:.2f} s, warm {pair[1]:.2f} s", flush=True)
        if pairs:
            cold, warm = (statistics.median(column) for column in zip(*pairs, strict=True))
            ratio = statistics.median(one[1] / one[0] for one in pairs)
            print(
                f"{chosen.workers} workers, {len(pairs)} pairs: cold {cold:.2f} s, warm {warm:.2f} s, ratio {ratio:.2f}"
            )
        if chosen.alone:
            print(f"TensorFlow alone, peer killed: {alone(home, signal.SIGKILL)}")
            print(f"TensorFlow alone, peer stopped: {alone(home, signal.SIGSTOP)}")


if __name__ == "__main__":
    main()
