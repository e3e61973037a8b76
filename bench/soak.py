"""A hundred seeded faults on the digits example, and how it took them: the table of docs/benchmarks.md.

    .venv/bin/python bench/soak.py [faults, default 100] [first seed, default 1]

Each run is two workers that save at epoch ends and are hurt a few times; its result is compared, to the last digit,
with one undisturbed run. Some runs are ended on purpose: the launcher is killed, or no restart is left. Exits 1
where anything was not as it should be.
"""

from __future__ import annotations

import collections
import dataclasses
import itertools
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "src"))

from phalanx.chaos.compare import compare  # noqa: E402 - the path above is what makes it this tree's
from phalanx.chaos.output import leader_of, printed  # noqa: E402 - as above
from phalanx.records.folder import RunFolder  # noqa: E402 - as above
from phalanx.records.reader import read_state  # noqa: E402 - as above

DIGITS = ROOT / "examples" / "digits" / "train.py"
EPOCHS = 24
TRAIN = [DIGITS, "--epochs", EPOCHS, "--steps-delay", 0.02, "--checkpoint", "{run}/ckpt"]
THREADS = {"TF_NUM_INTRAOP_THREADS": "1", "TF_NUM_INTEROP_THREADS": "1", "TF_CPP_MIN_LOG_LEVEL": "2"}


@dataclasses.dataclass(frozen=True, kw_only=True)
class Round:
    """One shape of run: how it is started, and what is done to it."""

    kinds: tuple[str, ...]
    flags: tuple[object, ...] = ("--max-restarts", 50)
    count: int = 5
    #: Whether it ends well, so that its result can be compared.
    succeeds: bool = True


#: What has landed. Kinds to be added as recovery learns them: `stop` and `stall` for ever (hang detection),
#: `agent` with --hosts 2 (hosts that come back), `lead` (election).
ROUNDS = (
    Round(kinds=("kill",)),
    Round(kinds=("kill", "disk", "clock", "half-open", "slow")),
    Round(kinds=("kill",), flags=("--max-restarts", 0), count=1, succeeds=False),
    Round(kinds=("disk", "clock", "kill")),
    Round(kinds=("launcher",), count=1, succeeds=False),
)


def phalanx(*words: object, state: Path) -> dict[str, Any]:
    environ = {**os.environ, **THREADS, "XDG_STATE_HOME": str(state), "PYTHONPATH": str(ROOT / "src")}
    done = subprocess.run(
        [sys.executable, "-m", "phalanx", *map(str, words)], env=environ, capture_output=True, text=True, check=False
    )
    if not done.stdout.startswith("{"):
        sys.exit(f"phalanx {words} ended with {done.returncode}: {done.stderr}")
    return json.loads(done.stdout)


def said(folder: str) -> str:
    files = RunFolder(Path(folder))
    return printed(files, leader_of(read_state(files)))


def runs(wanted: int, seed: int, scratch: Path) -> Iterator[tuple[Round, dict[str, Any]]]:
    done = 0
    for number, round_ in enumerate(itertools.cycle(ROUNDS)):
        if done >= wanted:
            return
        words = ("--seed", seed + number, "--count", round_.count, "--kinds", ",".join(round_.kinds), "--every", "1s")
        start = ("chaos", "--json", "--no-reference", "--runs", scratch / "runs", "--workers", 2)
        story = phalanx(*start, *round_.flags, *words, *TRAIN, state=scratch)
        done += sum(fault["outcome"] != "not reached" for fault in story["faults"])
        yield round_, story


def spread(values: list[float]) -> str:
    return f"{statistics.median(values):.2f} / {max(values):.2f} s" if values else "-"


def main() -> None:
    wanted = int(sys.argv[1]) if len(sys.argv) > 1 else 100
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else 1
    faults: dict[str, list[tuple[dict[str, Any], str]]] = collections.defaultdict(list)
    wrong: list[str] = []
    with tempfile.TemporaryDirectory() as name:
        scratch = Path(name)
        calm = said(calm_folder(scratch))
        for round_, story in runs(wanted, seed, scratch):
            equal = ""
            if story["result"] == "succeeded":
                # A full disk costs lines of the log, as it should, but not the last epoch's.
                lossy = any(fault["kind"] == "disk" for fault in story["faults"])
                pattern = f"^epoch {EPOCHS}/" if lossy else "^epoch"
                found = compare(calm, said(story["folder"]), pattern=pattern)
                equal = "yes" if found.equal else "no"
                wrong += [] if found.equal else [f"{story['run']}: {found.difference}"]
            elif round_.succeeds:
                wrong.append(f"{story['run']} {story['result']}: {story['cause']}")
            for fault in story["faults"]:
                if fault["outcome"] == "not reached":
                    continue
                faults[fault["kind"]].append((fault, equal))
                if not fault["good"]:
                    wrong.append(
                        f"{story['run']}: {fault['kind']} {fault['target']}: {fault['outcome']}: {fault['why']}"
                    )
            sys.stderr.write(f"{story['run']}: {story['result']}, {[fault['outcome'] for fault in story['faults']]}\n")
    print("| kind | faults | outcome | detected: median / most | recovered: median / most | same result |")
    print("| --- | --- | --- | --- | --- | --- |")
    for kind, found in sorted(faults.items()):
        outcomes = collections.Counter(fault["outcome"] for fault, _ in found)
        ways = ", ".join(f"{count} {outcome}" for outcome, count in outcomes.most_common())
        detected = spread([fault["detected"] for fault, _ in found if fault["detected"] is not None])
        recovered = spread([fault["recovered"] for fault, _ in found if fault["recovered"] is not None])
        compared = [equal for _, equal in found if equal]
        same = f"{compared.count('yes')} of {len(compared)}" if compared else "-"
        print(f"| `{kind}` | {len(found)} | {ways} | {detected} | {recovered} | {same} |")
    print(f"\n{sum(map(len, faults.values()))} faults, seed {seed}; {len(wrong)} not as they should be")
    for line in wrong:
        print(f"  {line}")
    sys.exit(1 if wrong else 0)


def calm_folder(scratch: Path) -> str:
    """The undisturbed run, started as the others are: its one fault comes at a line that nobody prints."""
    words = (
        "chaos",
        "--json",
        "--no-reference",
        "--runs",
        scratch / "runs",
        "--workers",
        2,
        "--fault",
        "kill:worker:0@/^$never/",
    )
    story = phalanx(*words, *TRAIN, state=scratch)
    if story["result"] != "succeeded":
        sys.exit(f"the undisturbed run {story['result']}: {story['cause']}")
    return str(story["folder"])


if __name__ == "__main__":
    main()
