"""A hundred seeded faults on the digits example, and how it took them: the table of docs/benchmarks.md.

    .venv/bin/python bench/soak.py [faults, default 100] [first seed, default 1]

Each run is two workers that save at epoch ends and are hurt several times. Its loss is compared with that of an
undisturbed run: to the last digit where its size stayed, within 1e-3 where it did not. Two rounds end on purpose: one
whose restarts are spent, and one whose launcher is killed. A process that outlives its run is a failure. Exits 1 where
anything was not as it should be.
"""

from __future__ import annotations

import collections
import contextlib
import dataclasses
import itertools
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "src"))

from phalanx.chaos.compare import compare  # noqa: E402 - the path above is what makes it this tree's
from phalanx.chaos.output import leader_of, printed  # noqa: E402 - as above
from phalanx.records.folder import RunFolder  # noqa: E402 - as above
from phalanx.records.reader import read_state  # noqa: E402 - as above

DIGITS = ROOT / "examples" / "custom_loop" / "train.py"
EPOCHS = 45
TRAIN = [DIGITS, "--epochs", EPOCHS, "--steps-delay", 0.01, "--checkpoint", "{run}/ckpt"]
THREADS = {"TF_NUM_INTRAOP_THREADS": "1", "TF_NUM_INTEROP_THREADS": "1", "TF_CPP_MIN_LOG_LEVEL": "2"}
#: The line of the last epoch.
LAST = f"^epoch {EPOCHS}/"
#: How far the final loss of a run whose size has changed may be from that of one whose size has not. On the way the
#: order in which workers are summed up shows: one epoch's loss differed by 0.004, the last one's not at all.
RESIZED = 1e-3
#: Seconds in which a run's last process must have gone once `phalanx chaos` has.
GONE = 5.0


@dataclasses.dataclass(frozen=True, kw_only=True)
class Round:
    """One shape of run: how it is started, and what is done to it."""

    #: Drawn from the seed, `count` of them; or, without a count, these faults as they are written.
    kinds: tuple[str, ...]
    count: int = 0
    flags: tuple[object, ...] = ()
    restarts: int = 50
    #: How it ends: the exit code, and whom its end has to name.
    code: int = 0
    blamed: str = ""
    #: Whether its size changes on the way.
    resized: bool = False

    def words(self, seed: int) -> tuple[object, ...]:
        if self.count:
            return "--seed", seed, "--count", self.count, "--kinds", ",".join(self.kinds), "--every", "1s"
        return tuple(itertools.chain.from_iterable(("--fault", fault) for fault in self.kinds))


TASKS = ("kill", "stop", "stall", "refuse")
HARMLESS = ("half-open", "slow", "clock", "disk", "lead")
HOSTS = ("--hosts", 2)
ELASTIC = ("--min-workers", 1)

ROUNDS = (
    Round(kinds=TASKS + HARMLESS, count=9),
    Round(kinds=("agent:1=2s", "kill:worker:0", "stop:worker:1", "agent:1=1s", "kill:worker:1"), flags=HOSTS),
    Round(kinds=("agent:1", "kill:worker:0", "stop:worker:0=1s", "lead"), flags=HOSTS + ELASTIC, resized=True),
    Round(kinds=TASKS + HARMLESS, count=9),
    Round(kinds=("scale", "kill", "lead"), count=6, flags=ELASTIC, resized=True),
    Round(kinds=("kill:worker:0", "kill:worker:1"), restarts=1, code=1, blamed="worker:1"),
    Round(kinds=TASKS + HARMLESS, count=9),
    Round(kinds=("agent:0=2s", "stall:worker:1", "kill:worker:0"), flags=HOSTS),
    Round(kinds=("launcher",), count=1, code=4),
)


def phalanx(*words: object, state: Path) -> dict[str, Any]:
    environ = {**os.environ, **THREADS, "XDG_STATE_HOME": str(state), "PYTHONPATH": str(ROOT / "src")}
    done = subprocess.run(
        [sys.executable, "-m", "phalanx", *map(str, words)],
        cwd=state,
        env=environ,
        capture_output=True,
        text=True,
        check=False,
    )
    if not done.stdout.startswith("{"):
        sys.exit(f"phalanx {words} ended with {done.returncode}: {done.stderr}")
    story: dict[str, Any] = json.loads(done.stdout)
    return story


def said(folder: str) -> str:
    files = RunFolder(Path(folder))
    return printed(files, leader_of(read_state(files)))


def losses(text: str) -> str:
    """The loss of each epoch alone: one picture of 357 that flips is more than a thousandth of the accuracy."""
    return "\n".join(re.findall(r"^epoch \S+ loss \S+", text, re.MULTILINE))


def left(scratch: Path) -> list[str]:
    """Processes of these runs that live on: their command line or environment names the folder."""
    marker, deadline = os.fsencode(scratch), time.monotonic() + GONE
    while True:
        found = []
        for path in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                words, state = (path / "cmdline").read_bytes(), (path / "stat").read_text().rpartition(")")[2].split()
                if state[0] != "Z" and (marker in words or marker in (path / "environ").read_bytes()):
                    found.append(f"{path.name} {words.replace(bytes(1), b' ').decode(errors='replace')[:80]}")
        if not found or time.monotonic() > deadline:
            return found
        time.sleep(0.1)


def start(scratch: Path, *, workers: int = 2, restarts: int = 50) -> tuple[object, ...]:
    return (
        *("chaos", "--json", "--no-reference", "--runs", scratch / "runs", "--name", "soak"),
        *("--workers", workers, "--max-restarts", restarts),
    )


def runs(wanted: int, seed: int, scratch: Path) -> Iterator[tuple[Round, dict[str, Any], list[str]]]:
    done = 0
    for number, round_ in enumerate(itertools.cycle(ROUNDS)):
        if done >= wanted:
            return
        first = start(scratch, restarts=round_.restarts)
        words = ("--hang", "6s", *round_.flags, *round_.words(seed + number))
        story = phalanx(*first, *words, *TRAIN, state=scratch)
        done += sum(fault["outcome"] != "not reached" for fault in story["faults"])
        yield round_, story, left(scratch)


def compared(calm: str, round_: Round, story: dict[str, Any]) -> str:
    """Where its result parts from the undisturbed one; empty where it does not."""
    hit = said(story["folder"])
    if round_.resized:
        return compare(losses(calm), losses(hit), pattern=LAST, tolerance=RESIZED).difference
    # A full disk costs lines of the log, as it should, but not the last epoch's.
    lossy = any(fault["kind"] == "disk" for fault in story["faults"])
    return compare(calm, hit, pattern=LAST if lossy else "^epoch").difference


def end_of(round_: Round, story: dict[str, Any]) -> str:
    """What is wrong with how it ended; empty where nothing is."""
    end = read_state(RunFolder(Path(story["folder"]))).end
    code = end.exit_code if end is not None else None
    if code != round_.code:
        return f"exit code {code} instead of {round_.code}: {story['cause']}"
    return "" if round_.blamed in story["cause"] else f"{round_.blamed} is not to blame: {story['cause']}"


def spread(values: list[float]) -> str:
    return f"{statistics.median(values):.2f} / {max(values):.2f} s" if values else "-"


def main() -> None:
    wanted = int(sys.argv[1]) if len(sys.argv) > 1 else 100
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else 1
    faults: dict[str, list[tuple[dict[str, Any], str]]] = collections.defaultdict(list)
    wrong: list[str] = []
    began = time.monotonic()
    # What went wrong is worth a look: then the folder stays.
    scratch = Path(tempfile.mkdtemp(prefix="phalanx-soak-"))
    calm = said(calm_folder(scratch, 2))
    smaller = losses(said(calm_folder(scratch, 1)))
    if difference := compare(losses(calm), smaller, pattern=LAST, tolerance=RESIZED).difference:
        wrong.append(f"one worker undisturbed against two: {difference}")
    for round_, story, leaked in runs(wanted, seed, scratch):
        bad = [f"left behind: {process}" for process in leaked]
        equal = ""
        if difference := end_of(round_, story):
            bad.append(difference)
        elif story["result"] == "succeeded":
            difference = compared(calm, round_, story)
            equal = "no" if difference else "yes"
            bad += [difference] if difference else []
        reached = [fault for fault in story["faults"] if fault["outcome"] != "not reached"]
        for fault in reached:
            faults[fault["kind"]].append((fault, equal))
            if not fault["good"]:
                bad.append(f"{fault['kind']} {fault['target']}: {fault['outcome']}: {fault['blamed']} {fault['why']}")
        wrong += [f"{story['run']}: {what}" for what in bad]
        ways = ", ".join(f"{fault['kind']} {fault['outcome']} {fault['recovered'] or ''}".rstrip() for fault in reached)
        sys.stderr.write(f"{story['run']}: {story['result']} in {story['took']:.0f} s: {ways}\n")
        sys.stderr.writelines(f"  {what}\n" for what in bad)
    print("| kind | faults | outcome | detected: median / most | recovered: median / most | same result |")
    print("| --- | --- | --- | --- | --- | --- |")
    for kind, found in sorted(faults.items()):
        outcomes = collections.Counter(fault["outcome"] for fault, _ in found)
        ways = ", ".join(f"{count} {outcome}" for outcome, count in outcomes.most_common())
        detected = spread([fault["detected"] for fault, _ in found if fault["detected"] is not None])
        recovered = spread([fault["recovered"] for fault, _ in found if fault["recovered"] is not None])
        results = [equal for _, equal in found if equal]
        same = f"{results.count('yes')} of {len(results)}" if results else "-"
        print(f"| `{kind}` | {len(found)} | {ways} | {detected} | {recovered} | {same} |")
    took = (time.monotonic() - began) / 60
    print(f"\n{sum(map(len, faults.values()))} faults, seed {seed}, {took:.0f} min; {len(wrong)} not as they should be")
    for line in wrong:
        print(f"  {line}")
    if wrong:
        sys.exit(f"the runs are in {scratch}")
    shutil.rmtree(scratch)


def calm_folder(scratch: Path, workers: int) -> str:
    """An undisturbed run, started as the others are: its one fault comes at a line that nobody prints."""
    never = ("--fault", "kill:worker:0@/^$never/")
    story = phalanx(*start(scratch, workers=workers), *never, *TRAIN, state=scratch)
    if story["result"] != "succeeded":
        sys.exit(f"the undisturbed run {story['result']}: {story['cause']}")
    return str(story["folder"])


if __name__ == "__main__":
    main()
