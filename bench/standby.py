"""go → the first line after a script's imports: a cold start against a standby, in interleaved pairs.

    .venv/bin/python bench/standby.py [pairs, default 7]

Also what our sitecustomize costs a start, against plain Python: with and without its .pyc.
"""

from __future__ import annotations

import os
import select
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from runtime import BOOT, placed

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "src"))

from phalanx.agent.standby import Standby, boot_env  # noqa: E402 - the path above is what makes it this tree's
from phalanx.script.imports import imports_of  # noqa: E402 - as above

SCRIPT = "import os\nimport numpy\nimport tensorflow as tf\nimport keras\nos.write(1, b'here')\nos._exit(0)\n"
ENV = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"}
IDENTITY = {"TF_CONFIG": '{"cluster": {"worker": ["127.0.0.1:22100"]}, "task": {"type": "worker", "index": 0}}'}


def cold(argv: list[str], folder: Path) -> float:
    start = time.perf_counter()
    process = subprocess.Popen(
        argv, cwd=folder, env={**ENV, **IDENTITY}, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    return until_here(process, start)


def standby(argv: list[str], folder: Path) -> float:
    one = Standby(boot=BOOT, imports=imports_of(argv, folder))
    with placed(one.fds):
        process = subprocess.Popen(
            argv,
            cwd=folder,
            env={**ENV, **one.env(ENV)},
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            pass_fds=tuple(one.fds),
        )
    one.started()
    select.select([one._ready], [], [])  # noqa: SLF001 - `wait_ready` needs a loop
    assert one.ready, "the interpreter has ended"  # noqa: S101 - a bench that measures nothing is worse than none
    start = time.perf_counter()
    one.go(IDENTITY)
    return until_here(process, start)


def until_here(process: subprocess.Popen[bytes], start: float) -> float:
    assert process.stdout is not None  # noqa: S101 - asked for
    word = process.stdout.read(4)
    took = time.perf_counter() - start
    process.communicate()
    assert word == b"here", "the script did not get to its first line"  # noqa: S101 - as above
    return took


def whole(argv: list[str], env: dict[str, str]) -> float:
    start = time.perf_counter()
    subprocess.run(argv, env=env, check=True)
    return time.perf_counter() - start


def spread(name: str, values: list[float]) -> str:
    return f"{name:28} {1e3 * statistics.median(values):8.1f} ms  ({1e3 * min(values):.1f} to {1e3 * max(values):.1f})"


def main() -> None:
    pairs = int(sys.argv[1]) if len(sys.argv) > 1 else 7
    argv = [sys.executable, "train.py"]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "train.py").write_text(SCRIPT)
        cold(argv, folder)  # the page cache
        times = [(cold(argv, folder), standby(argv, folder)) for _ in range(pairs)]
        print(f"go → first line after `import numpy, tensorflow, keras`, {pairs} interleaved pairs")
        print(spread("  cold", [pair[0] for pair in times]))
        print(spread("  standby", [pair[1] for pair in times]))
        print(f"  median of the pairs' ratios  {statistics.median(early / late for late, early in times):.4f}")
        with_pyc = {**os.environ, "PYTHONPYCACHEPREFIX": name}
        with_pyc.pop("PYTHONDONTWRITEBYTECODE", None)
        print(f"what sitecustomize adds to `python -c pass`, {20 * pairs} interleaved pairs")
        for what, env in (
            ("  with its .pyc", with_pyc),
            ("  compiled each time", {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}),
        ):
            nothing = [sys.executable, "-c", "pass"]
            whole(nothing, {**env, **boot_env(env, BOOT)})
            added = [whole(nothing, {**env, **boot_env(env, BOOT)}) - whole(nothing, env) for _ in range(20 * pairs)]
            print(spread(what, added))


if __name__ == "__main__":
    main()
