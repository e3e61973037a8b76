"""Each example by hand and by `phalanx run`: how good it gets, whether the losses are the same, and steps a second.

    .venv/bin/python bench/examples.py [a word of the example's name]

The table of docs/examples.md. Steps a second are those between the first and the last line of an epoch, so that neither
starts nor the tracing of graphs count, but the evaluation after each epoch does. `--pairs 3`: the median of three.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "tests")]

from byhand import MOVIELENS, environ, figures, start, start_all  # noqa: E402 - the path above makes it this tree's
from phalanx.agent.ports import PortHolder  # noqa: E402 - as above

MOST = 600.0  # seconds for one run
_TOGETHER = 0.1  # seconds within which lines are printed at once


@dataclasses.dataclass(frozen=True, kw_only=True)
class Row:
    script: str
    roles: dict[str, int]
    epochs: int
    steps: int  # an epoch
    hand: bool = True  # whether it works by hand, too
    checkpoint: bool = False  # whether it is told where to save
    evaluator: bool = False  # whether one scores what it saves
    job: str = ""  # the job.yaml that starts its readers, and by hand a dispatcher and two of them


ROWS = (
    Row(script="custom_loop/train.py", roles={"worker": 2}, epochs=10, steps=30),
    Row(script="legacy_keras/train.py", roles={"worker": 2}, epochs=10, steps=30),
    Row(script="keras_fit/train.py", roles={"worker": 1}, epochs=10, steps=30),
    Row(script="keras_fit/train.py", roles={"worker": 2}, epochs=10, steps=30, hand=False),
    Row(script="sidecar_evaluator/train.py", roles={"worker": 2}, epochs=10, steps=30, checkpoint=True, evaluator=True),
    Row(script="preemption/train.py", roles={"worker": 2}, epochs=10, steps=30, checkpoint=True),
    Row(script="tf_data_service/train.py", roles={"worker": 2}, epochs=5, steps=30, job="job.yaml"),
    Row(script="recommender/loop.py", roles={"chief": 1, "worker": 1, "ps": 2}, epochs=12, steps=90),
    Row(script="recommender/loop.py", roles={"chief": 1, "worker": 2, "ps": 2}, epochs=12, steps=90),
    Row(script="recommender/fit.py", roles={"chief": 1, "worker": 1, "ps": 2}, epochs=6, steps=90),
    Row(script="recommender/fit.py", roles={"chief": 1, "worker": 2, "ps": 2}, epochs=6, steps=90),
)


def by_hand(row: Row, home: Path) -> list[tuple[float, str]]:
    """The leader's lines with the moment of each."""
    script, words = ROOT / "examples" / row.script, ["--epochs", row.epochs]
    if row.checkpoint:
        words += ["--checkpoint", tempfile.mkdtemp(dir=home)]
    with others(row, script, words, home) as more:
        tasks = start_all(row.roles, script, *words, *more)
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


@contextlib.contextmanager
def others(row: Row, script: Path, words: list[object], home: Path) -> Iterator[list[object]]:
    """Who stands beside the training while it lasts, and what the training is told of them."""
    servers, more = [], []
    if row.evaluator:
        alone = {"cluster": {"worker": ["127.0.0.1:1"]}, "task": {"type": "evaluator", "index": 0}}
        servers.append(start(script, *words, tf_config=alone))
    if row.job:
        holder = PortHolder()
        dispatcher, *readers = (f"127.0.0.1:{port}" for port in holder.hold(3))
        holder.release_all()
        journal = tempfile.mkdtemp(dir=home)
        serve = script.with_name("dispatcher.py")
        servers.append(start(serve, "--port", dispatcher.rpartition(":")[2], "--journal", journal))
        read = script.with_name("data_worker.py")
        servers += [start(read, "--dispatcher", dispatcher, "--address", reader) for reader in readers]
        more = ["--service", dispatcher]
    try:
        yield more
    finally:
        for server in servers:
            server.kill()
            server.communicate()


def by_phalanx(row: Row, home: Path) -> list[tuple[float, str]]:
    env = environ(PYTHONPATH=os.pathsep.join([str(ROOT / "src"), str(MOVIELENS)]))
    env |= {name: str(home / name) for name in ("XDG_STATE_HOME", "XDG_CACHE_HOME")}
    phalanx = [sys.executable, "-m", "phalanx"]
    sizes = [
        f"--{role}s={count}" if role == "worker" else f"--{role}={count}"
        for role, count in row.roles.items()
        if role != "chief"
    ]
    script = ROOT / "examples" / row.script
    if row.job:
        job = script.with_name(row.job).read_text().replace("[train.py,", f"[train.py, --epochs, '{row.epochs}',")
        made = home / row.job
        made.write_text(f"folder: {script.parent}\n{job}")
        sizes, last = [], [made]
    else:
        last = [script, f"--epochs={row.epochs}"]
    if row.checkpoint:
        sizes.append(f"--checkpoint={tempfile.mkdtemp(dir=home)}")
        last.append("--checkpoint={checkpoint}")
    if row.evaluator:
        sizes.append("--evaluator")
    done = subprocess.run(
        [*phalanx, "run", "--quiet", "--max-restarts=0", f"--runs={home}", *sizes, *last],
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
    """Steps a second between the first epoch's line and the last's; infinite where all are printed at the end."""
    moments = [when for when, line in said if line.startswith("epoch ")]
    took = moments[-1] - moments[0]
    return (len(moments) - 1) * row.steps / took if took > _TOGETHER else math.inf


def losses(said: list[tuple[float, str]]) -> list[float]:
    return figures([line for _, line in said], "loss")


def best(said: list[tuple[float, str]]) -> str:
    """The last epoch's figure on data that were never trained on."""
    lines = [line for _, line in said]
    if found := [line for line in lines if line.startswith("accuracy ")]:
        return found[-1]
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
            pairs = [
                (by_hand(row, Path(home)) if row.hand else None, by_phalanx(row, Path(home)))
                for _ in range(chosen.pairs)
            ]
            hand, ours = pairs[-1]
            tasks = ", ".join(f"{count} {role}" for role, count in row.roles.items())
            tasks += ", 1 evaluator" if row.evaluator else ", 1 dispatcher, 2 readers" if row.job else ""
            same, slow = compared(hand, ours) if hand else "-", "-"
            if row.hand:
                slow = f"{statistics.median(pace(row, hand) for hand, _ in pairs if hand):.0f}"
            fast = statistics.median(pace(row, ours) for _, ours in pairs)
            print(
                f"| `{row.script}` | {tasks} | {row.epochs} | {best(ours)} | {same} | {slow} | {fast:.0f} |".replace(
                    "inf", "-"
                ),
                flush=True,
            )
    print(f"load {os.getloadavg()[0]:.1f} after")


if __name__ == "__main__":
    main()
