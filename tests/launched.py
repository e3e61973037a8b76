"""A real `phalanx` in a home of its own, watched from outside: by its exit code, its records and the process list."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

#: How long any one step of a test may take on a busy machine.
PATIENCE = 60.0


def wait_for(true: Callable[[], Any], what: str, *, within: float = PATIENCE) -> Any:
    """Ask again until the answer is true; fails by name."""
    deadline = time.monotonic() + within
    while time.monotonic() < deadline:
        if found := true():
            return found
        time.sleep(0.02)
    raise AssertionError(f"not within {within:g} s: {what}")


def processes_with(marker: str) -> dict[int, str]:
    """pid → command line of every living process whose environment or command line has the text."""
    found = {}
    for path in Path("/proc").iterdir():
        if not path.name.isdigit():
            continue
        with contextlib.suppress(OSError):
            command = (path / "cmdline").read_bytes()
            state = (path / "stat").read_text().rpartition(")")[2].split()[0]
            if state != "Z" and (marker.encode() in (path / "environ").read_bytes() or marker.encode() in command):
                found[int(path.name)] = command.replace(b"\0", b" ").decode(errors="replace")
    return found


class Place:
    """A folder to run in: scripts, runs, and this test's own home."""

    def __init__(self, folder: Path, environ: dict[str, str]) -> None:
        self.folder, self.environ = folder, environ
        self.launchers: list[subprocess.Popen[str]] = []

    @property
    def runs(self) -> Path:
        return self.folder / "runs"

    def script(self, text: str, name: str = "train.py") -> Path:
        path = self.folder / name
        path.write_text(text)
        return path

    def start(
        self,
        *words: object,
        ignoring: signal.Signals | None = None,
        before: Sequence[str] = (),
        **environ: str,
    ) -> subprocess.Popen[str]:
        """`phalanx words…`, on its way; started by somebody who ignores that signal, as nohup does, or by `before`."""
        ignore = ["bash", "-c", f'trap "" {ignoring.value}; exec "$@"', "bash"] if ignoring else []
        launcher = subprocess.Popen(
            [*before, *ignore, sys.executable, "-m", "phalanx", *map(str, words)],
            cwd=self.folder,
            env=self.environ | environ,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.launchers.append(launcher)
        return launcher

    def call(self, *words: object, **environ: str) -> subprocess.CompletedProcess[str]:
        """`phalanx words…`, to its end."""
        launcher = self.start(*words, **environ)
        out, err = launcher.communicate(timeout=180)
        return subprocess.CompletedProcess(launcher.args, launcher.returncode, out, err)

    def run_folder(self) -> Path:
        """The newest run's folder, once there is one."""
        found = wait_for(
            lambda: sorted(self.runs.glob("*/events.jsonl"), key=lambda p: p.stat().st_mtime), "a run's records"
        )
        return found[-1].parent

    def events(self, kind: str | None = None) -> list[dict[str, Any]]:
        lines = (self.run_folder() / "events.jsonl").read_text().splitlines()
        events = [json.loads(line) for line in lines if line.endswith("}")]
        return [event for event in events if kind in (None, event["event"])]

    def event(self, kind: str, number: int = 1, **fields: object) -> dict[str, Any]:
        """Wait until there are `number` events of that kind with those fields; the last of them."""

        def enough() -> list[dict[str, Any]]:
            found = [e for e in self.events(kind) if all(e.get(name) == value for name, value in fields.items())]
            return found if len(found) >= number else []

        return wait_for(enough, f"{number} of {kind} {fields}")[number - 1]

    def report(self) -> dict[str, Any]:
        path = self.run_folder() / "report.json"
        wait_for(path.exists, "report.json")
        return json.loads(path.read_text())

    def said(self, task: str, stream: str = "out") -> str:
        """What a task's first attempt has written so far."""
        kind, _, index = task.partition(":")
        path = self.run_folder() / "logs" / f"{kind}_{index}" / f"g1.a1.{stream}"
        return path.read_text(errors="replace") if path.exists() else ""

    def processes(self) -> dict[int, str]:
        """Every process of this place's runs that is alive: tasks, reapers, agents, leads."""
        return processes_with(str(self.folder.parent))

    def gone(self, *, within: float = 1.0) -> None:
        wait_for(lambda: not self.processes(), "an empty process list", within=within)

    def clean(self) -> None:
        """End what a failed test has left, by the pids of this place only."""
        for launcher in self.launchers:
            if launcher.poll() is None:
                launcher.kill()
            launcher.communicate()
        for pid in self.processes():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


def place(folder: Path) -> Iterator[Place]:
    """A Place below `folder`, cleaned afterwards."""
    work = folder / "work"
    work.mkdir()
    environ = {name: value for name, value in os.environ.items() if not name.startswith(("PHALANX_", "XDG_"))}
    for name, below in {"HOME": "home", "XDG_STATE_HOME": "state", "XDG_CACHE_HOME": "cache"}.items():
        (folder / below).mkdir()
        environ[name] = str(folder / below)
    # The cache holds the unpacked agent: one for the whole test session, as one user has.
    environ["XDG_CACHE_HOME"] = str(folder.parent / "cache")
    Path(environ["XDG_CACHE_HOME"]).mkdir(exist_ok=True)
    environ["PYTHONPATH"] = str(Path(__file__).parent.parent / "src")
    environ["PHALANX_TEST_PLACE"] = str(folder)
    made = Place(work, environ)
    try:
        yield made
    finally:
        made.clean()
