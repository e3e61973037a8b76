"""Healthy runs that look stuck for a while, under strict limits: nobody may be blamed, and nothing started again.

    python bench/healthy.py [--runs 30] [--at-once 2] [--only KIND]

Two workers each, real TensorFlow; --silence 20s, --hang 15s, --start-timeout 120s. An alarm is a culprit or a restart.
The words of agents (quiet, stalled) that the lead has judged to be nothing are counted beside it. Exits 1 on any alarm.
"""

from __future__ import annotations

import argparse
import collections
import concurrent.futures
import dataclasses
import itertools
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]
SCRIPT = ROOT / "bench" / "healthy_train.py"
LIMITS = ("--silence", "20s", "--hang", "15s", "--start-timeout", "120s", "--standbys", "0")

#: Kind → seconds that the long thing takes, and what else `run` is told.
KINDS: dict[str, tuple[float, tuple[str, ...]]] = {
    "slow start": (35, ()),
    "pause before the first step": (60, ()),
    "validation in fit": (30, ()),
    "validation in a loop": (30, ()),
    "checkpoint": (35, ()),
    "uneven finish": (8, ()),
    "tracing": (35, ()),
    "idle ps worker": (45, ("--ps", "1")),
}


@dataclasses.dataclass(frozen=True, kw_only=True)
class Outcome:
    """How one run went."""

    seconds: float
    words: collections.Counter[str]
    alarms: tuple[str, ...]


def once(kind: str, number: int, home: Path) -> Outcome:
    long, more = KINDS[kind]
    runs = Path(tempfile.mkdtemp(dir=home))
    environ = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "XDG_STATE_HOME": str(home), "SCRATCH": str(runs)}
    environ |= {"TF_CPP_MIN_LOG_LEVEL": "2", "LATER": f"worker:{number % 2}"}
    words = ("run", "--quiet", "--runs", runs, "--workers", 2, *more, *LIMITS, SCRIPT, kind, long)
    began = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-m", "phalanx", *map(str, words)], env=environ, capture_output=True, text=True, check=False
    )
    seconds = time.monotonic() - began
    [records] = runs.glob("*/events.jsonl")
    events = [json.loads(line) for line in records.read_text().splitlines()]
    said = collections.Counter(e["event"] for e in events if e["event"] in ("task-quiet", "task-stalled", "task-froze"))
    alarms = [e["cause"] for e in events if e["event"] == "culprit-named"]
    alarms += [e["why"] for e in events if e["event"] == "restart-ordered"]
    if done.returncode and not alarms:
        alarms.append(f"exit code {done.returncode}: {done.stdout[-300:]}{done.stderr[-300:]}")
    sys.stderr.write(f"{kind}: {seconds:.0f} s, {dict(said)}, {alarms}\n")
    return Outcome(seconds=seconds, words=said, alarms=tuple(alarms))


def main() -> None:
    words = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    words.add_argument("--runs", type=int, default=30)
    words.add_argument("--at-once", type=int, default=2)
    words.add_argument("--only", choices=KINDS)
    asked = words.parse_args()
    kinds = list(itertools.islice(itertools.cycle([asked.only] if asked.only else KINDS), asked.runs))
    found: dict[str, list[Outcome]] = {kind: [] for kind in dict.fromkeys(kinds)}
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(asked.at_once) as pool:
        runs = [(kind, pool.submit(once, kind, n // len(KINDS), Path(folder))) for n, kind in enumerate(kinds)]
        for kind, run in runs:
            found[kind].append(run.result())
    print("| kind | runs | seconds, median | quiet or stalled said | alarms |")
    print("| --- | --- | --- | --- | --- |")
    for kind, outcomes in found.items():
        seconds = sorted(one.seconds for one in outcomes)[len(outcomes) // 2]
        said = sum(one.words.total() for one in outcomes)
        alarms = [alarm for one in outcomes for alarm in one.alarms]
        print(f"| {kind} | {len(outcomes)} | {seconds:.0f} | {said} | {len(alarms)} |")
    wrong = [(kind, alarm) for kind, outcomes in found.items() for one in outcomes for alarm in one.alarms]
    for kind, alarm in wrong:
        print(f"  {kind}: {alarm}")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
