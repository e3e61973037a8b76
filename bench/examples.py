"""Each example by hand and by `phalanx run`: how good it gets, whether the losses are the same, and steps a second.

    .venv/bin/python bench/examples.py [a word of the example's name]

The table of docs/examples.md. Steps a second are those between the first and the last line of an epoch, so that neither
starts nor the tracing of graphs count, but the evaluation after each epoch does. `--pairs 3`: the median of three.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from datetime import datetime
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "tests")]

from byhand import MOVIELENS, environ, figures, start_all  # noqa: E402 - the path above is what makes it this tree's

MOST = 600.0  # seconds for one run


@dataclasses.dataclass(frozen=True, kw_only=True)
class Row:
    script: str
    roles: dict[str, int]
    epochs: int
    steps: int  # an epoch
    hand: bool = True  # whether it works by hand, too


ROWS = (
    Row(script="custom_loop/train.py", roles={"worker": 2}, epochs=10, steps=30),
    Row(script="legacy_keras/train.py", roles={"worker": 2}, epochs=10, steps=30),
    Row(script="keras_fit/train.py", roles={"worker": 1}, epochs=10, steps=30),
    Row(script="keras_fit/train.py", roles={"worker": 2}, epochs=10, steps=30, hand=False),
    Row(script="recommender/loop.py", roles={"chief": 1, "worker": 1, "ps": 2}, epochs=12, steps=90),
    Row(script="recommender/loop.py", roles={"chief": 1, "worker": 2, "ps": 2}, epochs=12, steps=90),
    Row(script="recommender/fit.py", roles={"chief": 1, "worker": 1, "ps": 2}, epochs=6, steps=90),
    Row(script="recommender/fit.py", roles={"chief": 1, "worker": 2, "ps": 2}, epochs=6, steps=90),
)


def by_hand(row: Row) -> list[tuple[float, str]]:
    """The leader's lines with the moment of each."""
    tasks = start_all(row.roles, ROOT / "examples" / row.script, "--epochs", row.epochs)
    leader = next(iter(tasks.values()))
    try:
        said = [(time.time(), line.rstrip("\n")) for line in leader.stdout]
        if leader.wait(timeout=MOST):
            raise SystemExit(f"{row.script} by hand: exit code {leader.returncode}")
        return said
    finally:
        if "ps" in row.roles:
            for task in tasks.values():
                task.kill()
        for task in tasks.values():
            task.communicate(timeout=MOST)


def by_phalanx(row: Row, home: Path) -> list[tuple[float, str]]:
    env = environ(PYTHONPATH=os.pathsep.join([str(ROOT / "src"), str(MOVIELENS)]))
    env |= {name: str(home / name) for name in ("XDG_STATE_HOME", "XDG_CACHE_HOME")}
    phalanx = [sys.executable, "-m", "phalanx"]
    sizes = [
        f"--{role}s={count}" if role == "worker" else f"--{role}={count}"
        for role, count in row.roles.items()
        if role != "chief"
    ]
    words = ["--quiet", "--max-restarts=0", f"--runs={home}", *sizes, ROOT / "examples" / row.script]
    done = subprocess.run(
        [*phalanx, "run", *words, f"--epochs={row.epochs}"],
        env=env,
        cwd=home,
        capture_output=True,
        text=True,
        timeout=MOST,
        check=False,
    )
    if done.returncode:
        raise SystemExit(done.stdout + done.stderr)
    leader = f"{next(iter(row.roles))}:0"
    logs = subprocess.run(
        [*phalanx, "logs", "last", leader, "--json", "--out"], env=env, capture_output=True, text=True, check=True
    )
    lines = [json.loads(line) for line in logs.stdout.splitlines()]
    return [(datetime.fromisoformat(line["time"]).timestamp(), line["line"]) for line in lines]


def pace(row: Row, said: list[tuple[float, str]]) -> float:
    """Steps a second between the first epoch's line and the last's."""
    moments = [when for when, line in said if line.startswith("epoch ")]
    return (len(moments) - 1) * row.steps / (moments[-1] - moments[0])


def losses(said: list[tuple[float, str]]) -> list[float]:
    return figures([line for _, line in said], "loss")


def best(said: list[tuple[float, str]]) -> str:
    """The last epoch's figure on data that were never trained on."""
    lines = [line for _, line in said]
    name = "accuracy" if figures(lines, "accuracy") else "rmse"
    return f"{name} {figures(lines, name)[-1]:.3f}"


def compared(hand: list[tuple[float, str]], ours: list[tuple[float, str]]) -> str:
    if losses(hand) == losses(ours):
        return "to the last digit"
    apart = max(abs(one - other) / one for one, other in zip(losses(hand), losses(ours), strict=True))
    return f"within {apart:.1%}"


def main() -> None:
    words = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    words.add_argument("name", nargs="?", default="")
    words.add_argument("--pairs", type=int, default=1)
    chosen = words.parse_args()
    print(f"load {os.getloadavg()[0]:.1f} before")
    print("| example | tasks | epochs | result | losses by hand and by phalanx | steps/s by hand | by phalanx |")
    print("| --- | --- | --- | --- | --- | --- | --- |", flush=True)
    with tempfile.TemporaryDirectory() as home:
        for row in (row for row in ROWS if chosen.name in row.script):
            pairs = [(by_hand(row) if row.hand else None, by_phalanx(row, Path(home))) for _ in range(chosen.pairs)]
            hand, ours = pairs[-1]
            tasks = ", ".join(f"{count} {role}" for role, count in row.roles.items())
            same, slow = compared(hand, ours) if hand else "-", "-"
            if row.hand:
                slow = f"{statistics.median(pace(row, hand) for hand, _ in pairs if hand):.0f}"
            fast = statistics.median(pace(row, ours) for _, ours in pairs)
            print(
                f"| `{row.script}` | {tasks} | {row.epochs} | {best(ours)} | {same} | {slow} | {fast:.0f} |", flush=True
            )
    print(f"load {os.getloadavg()[0]:.1f} after")


if __name__ == "__main__":
    main()
