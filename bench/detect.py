"""From a fault to the decision that names the culprit, for each kind of fault.

    python bench/detect.py [--rounds 5]

Plain programs without TensorFlow, since what is measured is phalanx: exit, stop (state T), silence and hang. For the
last two the figure is the time beyond their limit.
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

#: Limits for silence and hang, in seconds.
LIMIT = 6.0

#: Listens at its address; worker 0 and 1 exchange bytes as a collective would, until worker 1 does what it was told.
PROGRAM = """
import json, os, socket, sys, threading, time
what = sys.argv[1]
config = json.loads(os.environ["TF_CONFIG"])
me, places = config["task"]["index"], config["cluster"]["worker"]
host, _, port = places[me].rpartition(":")
server = socket.socket()
server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
server.bind((host, int(port)))
server.listen()
if me:
    peer = server.accept()[0]
else:
    time.sleep(0.5)
    while True:
        try:
            peer = socket.create_connection((host, int(places[1].rpartition(":")[2])))
            break
        except OSError:
            time.sleep(0.1)
peer.settimeout(0.002)
begin, done = threading.Semaphore(0), threading.Semaphore(0)
def exchange():
    while begin.acquire():
        peer.sendall(b"x" * 2000)
        left = 2000
        while left:
            try:
                left -= len(peer.recv(left))
            except TimeoutError:
                continue
        done.release()
threading.Thread(target=exchange, daemon=True).start()
began = time.time()
while True:
    begin.release()
    done.acquire()
    time.sleep(0.05)
    if me and time.time() - began > 14:
        print("fault", time.time(), flush=True)
        if what == "exit":
            sys.exit(1)
        if what == "silence":
            time.sleep(600)
        while what == "hang":
            pass
        began = float("inf")
"""


def once(what: str, home: Path) -> float:
    """Seconds from the fault to CulpritNamed; beyond the limit, where there is one."""
    script = home / "train.py"
    script.write_text(PROGRAM)
    limits = ["--silence", f"{LIMIT if what == 'silence' else 60}s", "--hang", f"{LIMIT if what == 'hang' else 60}s"]
    words = [sys.executable, "-m", "phalanx", "run", "--runs", str(home / what), "--workers", "2", *limits]
    words += ["--start-timeout", "10s", "--max-restarts", "0", str(script), what]
    with subprocess.Popen(words, cwd=home, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as launcher:
        log = wait(lambda: next((home / what).glob("*/logs/worker_1/g1.a1.out"), None))
        fault = float(wait(lambda: log.read_text().partition("fault ")[2].strip()))  # noqa: PLW0108 - read anew each time
        records = log.parents[2] / "events.jsonl"
        if what == "stop":
            pid = next(e["pid"] for e in events(records) if e["event"] == "task-started" and e["task"] == "worker:1")
            os.kill(pid, signal.SIGSTOP)
            fault = time.time()
        named = wait(lambda: next((e for e in events(records) if e["event"] == "culprit-named"), None))
        launcher.wait(timeout=60)
    if named["task"] != "worker:1":
        sys.stderr.write(f"{what}: {named['cause']}\n")
    return float(named["time"]) - fault - (LIMIT if what in ("silence", "hang") else 0.0)


def events(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines() if line.endswith("}")]


def wait(ready: Callable[[], Any]) -> Any:
    deadline = time.monotonic() + 90
    while time.monotonic() < deadline:
        if found := ready():
            return found
        time.sleep(0.02)
    raise TimeoutError


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    asked.add_argument("--rounds", type=int, default=5)
    rounds = asked.parse_args().rounds
    print("| fault | median | worst |\n| --- | --- | --- |")
    for what in ("exit", "stop", "silence", "hang"):
        with tempfile.TemporaryDirectory() as folder:
            took = [once(what, Path(folder)) for _ in range(rounds)]
        beyond = f" (beyond its limit of {LIMIT:g} s)" if what in ("silence", "hang") else ""
        print(f"| {what}{beyond} | {statistics.median(took):.2f} s | {max(took):.2f} s |", flush=True)


if __name__ == "__main__":
    main()
