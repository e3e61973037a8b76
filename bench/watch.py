"""What the agent costs a host while its tasks train: CPU seconds a second, by the number of tasks it looks at.

    .venv/bin/python bench/watch.py [seconds of a window, default 60] [windows, default 3]

A real run of stand-ins for TensorFlow's workers: each listens, keeps a connection to the next one, sends 64 KiB ten
times a second, prints a line a second, and has threads that sleep. No restarts, so that no standby comes up meanwhile.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "src"))

from phalanx.process import children  # noqa: E402 - the path above is what makes it importable

TASKS = (2, 16)
HERTZ = os.sysconf("SC_CLK_TCK")
#: Seconds until all have started and the agent has come to rest.
SETTLE = 8.0

WORKER = """
import json, os, socket, threading, time
conf = json.loads(os.environ["TF_CONFIG"])
workers, me = conf["cluster"]["worker"], conf["task"]["index"]
def place(index):
    host, _, port = workers[index % len(workers)].rpartition(":")
    return host, int(port)
listener = socket.socket()
listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
listener.bind(place(me))
listener.listen()
def read():
    peer, _ = listener.accept()
    while peer.recv(1 << 20):
        pass
threading.Thread(target=read, daemon=True).start()
for _ in range(20):
    threading.Thread(target=time.sleep, args=(1e6,), daemon=True).start()
while True:
    try:
        after = socket.create_connection(place(me + 1))
        break
    except OSError:
        time.sleep(0.1)
for turn in range(1 << 30):
    after.sendall(bytes(65536))
    time.sleep(0.1)
    if turn % 10 == 0:
        print("step", turn, flush=True)
"""


def cpu(pid: int) -> float:
    """Seconds of CPU that the process and its threads have used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / HERTZ


def exact(pid: int) -> float:
    """The same to the nanosecond, from the scheduler; the ticks where it does not say."""
    try:
        threads = list(Path(f"/proc/{pid}/task").iterdir())
        return sum(int((thread / "schedstat").read_text().split()[0]) for thread in threads) / 1e9
    except (OSError, ValueError, IndexError):
        return cpu(pid)


def agent_of(folder: Path) -> int:
    events = (json.loads(line) for line in (folder / "events.jsonl").read_text().splitlines())
    return int(next(event["agent_pid"] for event in events if event.get("agent_pid")))


def measured(tasks: int, *, seconds: float, windows: int, scratch: Path) -> tuple[list[float], list[float]]:
    """Milliseconds of CPU a second, one for each window: of the agent, and of the lead."""
    script = scratch / "worker.py"
    script.write_text(WORKER)
    environ = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "XDG_STATE_HOME": str(scratch)}
    words = ("run", "--runs", scratch / f"runs{tasks}", "--workers", tasks, "--max-restarts", 0, "--quiet", script)
    command = [sys.executable, "-m", "phalanx", *map(str, words)]
    with subprocess.Popen(command, env=environ, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as launcher:
        try:
            time.sleep(SETTLE)
            [folder] = (scratch / f"runs{tasks}").iterdir()
            agent = agent_of(folder)
            lead = next(child.pid for child in children(agent) if "lead" in " ".join(child.words()))
            found: tuple[list[float], list[float]] = ([], [])
            for _ in range(windows):
                before, began = [exact(pid) for pid in (agent, lead)], time.monotonic()
                time.sleep(seconds)
                spent = time.monotonic() - began
                for place, pid in enumerate((agent, lead)):
                    found[place].append(1000 * (exact(pid) - before[place]) / spent)
            return found
        finally:
            launcher.terminate()
            launcher.wait(60)


def main() -> None:
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 60.0
    windows = int(sys.argv[2]) if len(sys.argv) > 2 else 3
    print(f"load {os.getloadavg()[0]:.1f} before")
    print("| tasks | the agent, of a core | the lead, of a core |\n| --- | --- | --- |")
    with tempfile.TemporaryDirectory() as scratch:
        for tasks in TASKS:
            agent, lead = measured(tasks, seconds=seconds, windows=windows, scratch=Path(scratch))
            row = (
                f"{statistics.median(one) / 10:.2f} % ({min(one) / 10:.2f} to {max(one) / 10:.2f})"
                for one in (agent, lead)
            )
            print(f"| {tasks} | {' | '.join(row)} |", flush=True)
    print(f"load {os.getloadavg()[0]:.1f} after")


if __name__ == "__main__":
    main()
