"""A task that floods: the agent's memory stays small, and nobody else's log suffers."""

from __future__ import annotations

import asyncio
import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from phalanx.agent.disk import Disk
from phalanx.agent.output import Capture

#: As fast as the pipe takes it: some hundred MB a second where the machine is idle.
STORM = "import os\nblock = b'%063d\\n' % 7 * 4096\nfor _ in range({blocks}): os.write(1, block)\n"
BLOCK = 64 * 4096
QUIET = "import os, time\nfor number in range(50):\n    os.write(1, b'line %d\\n' % number)\n    time.sleep(0.01)\n"


def start(program: str, log: Path, disk: Disk) -> tuple[Capture, subprocess.Popen[bytes]]:
    read, write = os.pipe()
    task = subprocess.Popen([sys.executable, "-c", program], stdout=write)
    os.close(write)
    return Capture(read, log, disk), task


@pytest.mark.real
async def test_a_log_storm_costs_no_memory_and_no_line_of_another_task(tmp_path: Path, disk: Disk):
    blocks = 800  # 210 MB
    flood, storm = start(STORM.format(blocks=blocks), tmp_path / "storm.out", disk)
    other, quiet = start(QUIET, tmp_path / "quiet.out", disk)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    async with asyncio.timeout(60):
        await other.done.wait()
        await flood.done.wait()
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert (storm.wait(), quiet.wait()) == (0, 0)
    assert grown < 16_000  # KB
    assert (flood.size, flood.dropped) == (blocks * BLOCK, 0)
    assert (tmp_path / "quiet.out").read_text() == "".join(f"line {number}\n" for number in range(50))
    with (tmp_path / "storm.out").open("rb") as log:
        assert all(line == b"%063d\n" % 7 for line in log)
    (tmp_path / "storm.out").unlink()
