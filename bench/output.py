"""What it costs the agent to keep the output of a task that floods: lines a second, bytes lost, share of a core.

    python bench/output.py [--rate 200000] [--seconds 5] [--line 80] [--writer lines|blocks] [--secrets 0]

`lines` writes one line a call, as python does with PYTHONUNBUFFERED=1; `blocks` writes 64 lines a call.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from phalanx.agent.disk import Disk
from phalanx.agent.output import Capture
from phalanx.redact import Masker

# The flood keeps to its rate by looking at the clock every 64 lines.
FLOOD = """
import os, sys, time
rate, seconds, size, block = float(sys.argv[1]), float(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
start, number, write = time.monotonic(), 0, os.write
while (now := time.monotonic() - start) < seconds:
    while number < rate * now:
        for _ in range(64 // block):
            data = b"".join(b"%0*d\\n" % (size - 1, n) for n in range(number, number + block))
            while data:
                data = data[write(1, data):]
            number += block
    time.sleep(0.0002)
sys.stderr.write(str(number))
"""


async def measure(arguments: argparse.Namespace, path: Path) -> None:
    block = 1 if arguments.writer == "lines" else 64
    command = [sys.executable, "-c", FLOOD, *map(str, (arguments.rate, arguments.seconds, arguments.line, block))]
    read, write = os.pipe()
    masker = Masker([os.urandom(16).hex().encode() for _ in range(arguments.secrets)])
    disk = Disk(print)
    capture = Capture(read, path, disk, masker=masker)
    process = subprocess.Popen(command, stdout=write, stderr=subprocess.PIPE, text=True)  # noqa: ASYNC220 - the bench
    os.close(write)
    wall, cpu = time.monotonic(), time.process_time()
    await capture.done.wait()
    wall, cpu = time.monotonic() - wall, time.process_time() - cpu
    disk.close()
    written = int(process.communicate()[1])
    with path.open("rb") as file:
        kept = [int(line) for line in file]
    index = path.with_name(path.name + ".idx").stat().st_size // 16
    print(
        f"{arguments.writer}: {written / wall:,.0f} lines/s, {written * arguments.line / wall / 1e6:.1f} MB/s, "
        f"lost {written - len(kept)}, in order {kept == list(range(written))}, "
        f"agent {100 * cpu / wall:.1f} % of a core, {index / wall:.0f} index records/s"
    )


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rate", type=float, default=210_000)
    parser.add_argument("--seconds", type=float, default=5)
    parser.add_argument("--line", type=int, default=80)
    parser.add_argument("--writer", choices=("lines", "blocks"), action="append")
    parser.add_argument("--secrets", type=int, default=0)
    arguments = parser.parse_args()
    for writer in arguments.writer or ("lines", "blocks"):
        arguments.writer = writer
        with tempfile.TemporaryDirectory() as folder:
            asyncio.run(measure(arguments, Path(folder) / "g1.a1.out"))


if __name__ == "__main__":
    main()
