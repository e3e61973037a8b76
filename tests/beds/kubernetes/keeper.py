"""Holds a cluster for as long as its owner lives: `keeper.py DIR OWNER RECORD -- cluster.sh's arguments of start`.

Says `ready`, or why not, on standard output. Ends the cluster and removes DIR when standard input closes or the process
OWNER is gone, however it went. RECORD is a file that it holds locked meanwhile: unlocked, its cluster is an orphan.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import select
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Final

SCRIPT: Final = Path(__file__).with_name("cluster.sh")


def main(folder: str, owner: str, record: str, arguments: list[str]) -> int:
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    with Path(record).open("w", encoding="utf-8") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        print(folder, file=held, flush=True)
        watched = [sys.stdin.fileno()]
        with contextlib.suppress(ProcessLookupError):
            watched.append(os.pidfd_open(int(owner)))
        if len(watched) == 2:
            _hold(folder, watched, arguments)
        Path(record).unlink(missing_ok=True)
    return 0


def _hold(folder: str, watched: list[int], arguments: list[str]) -> None:
    said = Path(folder, "start.log")
    with said.open("wb") as log:
        start = subprocess.Popen(
            [SCRIPT, "start", folder, *arguments], stdin=subprocess.DEVNULL, stdout=log, stderr=log, process_group=0
        )
    begun = os.pidfd_open(start.pid)
    if begun in select.select([*watched, begun], [], [])[0]:
        good = start.wait() == 0
        os.write(1, b"ready\n" if good else said.read_bytes()[-2000:] or b"it says nothing\n")
        os.close(1)
        select.select(watched, [], [])
    else:
        os.killpg(start.pid, signal.SIGKILL)
        start.wait()
    end(folder)


def end(folder: str) -> None:
    """End the cluster in a folder, and remove the folder."""
    subprocess.run([SCRIPT, "stop", folder], check=False, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2], sys.argv[3], sys.argv[5:]))
