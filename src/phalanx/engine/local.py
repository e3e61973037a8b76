"""This machine: each host is an agent in a session of its own, and the lead rides with the first."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from phalanx.agent.facts import this_machine
from phalanx.engine import bundle
from phalanx.engine.base import Submission
from phalanx.errors import PlaceError
from phalanx.plan.bind import bind
from phalanx.plan.early import early
from phalanx.plan.plan import PlannedTask
from phalanx.plan.preview import held_ports, preview_hosts, room_anywhere
from phalanx.plan.wire import to_wire
from phalanx.process import children, process

_LOOPBACK = "127.0.0.1"

#: Seconds that a killed agent's reaper has to end its tasks.
_REAPING = 2.0

#: Seconds that the threads of a process which has ended have to end with it.
_PARTING = 0.2


class LocalEngine:
    """See Engine. `--hosts 3` starts three agents that differ in all but the machine."""

    name = "local"

    def __init__(self, home: Path | None = None) -> None:
        """Takes the agent from `home`, else unpacks it where this version has not been used yet. Raises PlaceError."""
        self._home = bundle.unpacked() if home is None else home

    def start(self, submission: Submission) -> LocalRun:
        """Starts the agents; the lead's socket listens before any of them runs, so nobody has to try twice."""
        listener = socket.create_server((_LOOPBACK, 0), backlog=2048)
        agents: list[subprocess.Popen[bytes]] = []
        with listener:
            lead = f"{_LOOPBACK}:{listener.getsockname()[1]}"
            # But for the ports, the hosts as they will join: which task starts where, and with which argv.
            outline = submission.outline
            machine = this_machine(submission.environ)
            folder = str(submission.folder)
            hosts = preview_hosts(outline, name=_machine(), address=_LOOPBACK, folder=folder, machine=machine)
            preview = bind(outline, hosts, run=submission.run, generation=1)
            serving = held_ports(outline)
            words: list[int] = []
            run = LocalRun(lead=lead, folder=submission.folder, agents=agents, words=words)
            try:
                for host in range(submission.outline.hosts):
                    carried = listener if host == 0 else None
                    read, write = os.pipe()
                    words.append(read)
                    agents.append(
                        _start_agent(
                            self._home,
                            submission,
                            host=host,
                            name=hosts[host].name,
                            part=(host, outline.hosts),
                            tasks=[task for task in preview.tasks if task.host == host],
                            serving=serving[host],
                            lead=lead,
                            listener=carried,
                            words=write,
                        )
                    )
            except PlaceError:
                run.kill()
                raise
        return run

    def join(self, submission: Submission, *, host: int, lead: str) -> subprocess.Popen[bytes]:
        """One more agent for a run that goes on. It leaves when the run has ended. Raises PlaceError."""
        return _start_agent(
            self._home,
            submission,
            host=host,
            name=f"{_machine()}-{host}",
            part=(0, 1),
            tasks=[],
            serving=room_anywhere(submission.outline),
            lead=lead,
            listener=None,
        )


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class LocalRun:
    """See Started."""

    lead: str
    folder: Path
    agents: list[subprocess.Popen[bytes]]
    #: By host, where its agent's last word comes: its log may lie on a disk that takes nothing.
    words: list[int]
    _said: dict[int, str] = dataclasses.field(default_factory=dict)

    def news(self) -> Sequence[str]:
        """See Started: what is to be said is in the records."""
        return ()

    def stop(self, by: str) -> bool:
        """See Started: agents whose lead is gone end by themselves."""
        del by
        return False

    def lost(self) -> dict[int, str]:
        """The hosts whose agents have ended, each with its exit code and its last word."""
        return {
            host: f"its agent {how}{self._last_word(host)}"
            for host, agent in enumerate(self.agents)
            if (how := _end(agent))
        }

    def broken(self) -> str | None:
        """The agents have all ended, each with its last word."""
        lost = self.lost()
        if len(lost) < len(self.agents):
            return None
        return "; ".join(f"host {host}: {why}" for host, why in lost.items())

    def let_go(self) -> None:
        """Closes the pipes; attached agents take that as a graceful stop, detached ones never had any."""
        for agent in self.agents:
            if agent.stdin is not None and not agent.stdin.closed:
                agent.stdin.close()

    def finish(self, patience: float) -> None:
        """The run has ended: its agents leave by themselves. Those still there after `patience` seconds are killed."""
        deadline = time.monotonic() + patience
        while not all(map(_end, self.agents)) and time.monotonic() < deadline:
            time.sleep(0.01)
        self.kill()

    def kill(self) -> None:
        """End every agent that still lives, and with it its tasks, its reaper and the lead it carries."""
        living = [agent for agent in self.agents if agent.poll() is None]
        left = [child for agent in living for child in children(agent.pid)]
        for agent in living:
            agent.kill()
        # A reaper ends its tasks and itself; one that is frozen cannot, and its tasks go with it.
        deadline = time.monotonic() + _REAPING
        for agent in living:
            with contextlib.suppress(subprocess.TimeoutExpired):  # the kernel waits for a disk that hangs
                agent.wait(max(deadline - time.monotonic(), 0))
        while any(child.alive for child in left) and time.monotonic() < deadline:
            time.sleep(0.01)
        for child in left:
            child.signal(signal.SIGKILL)
        for host in range(len(self.words)):
            self._last_word(host)
        while self.words:
            os.close(self.words.pop())

    def _last_word(self, host: int) -> str:
        """What it said as it left; else, where it was killed, the last line of its log. Looked for once."""
        if host not in self._said:
            os.set_blocking(self.words[host], False)  # its lead may hold the other end
            try:
                said = os.read(self.words[host], 1 << 16).decode(errors="replace").strip()
            except OSError:
                said = ""
            self._said[host] = said or _last_line(self.folder / "agents" / f"{host}.log")
        return f": {self._said[host]}" if self._said[host] else ""


def _last_line(log: Path) -> str:
    try:
        lines = log.read_text(errors="replace").splitlines()
    except OSError:
        return ""
    return next((line.strip() for line in reversed(lines) if line.strip()), "")


def _folder(submission: Submission, host: int) -> Path:
    """The run's folder as that host sees it: hosts that share none have theirs side by side on this machine."""
    folder = submission.folder
    return folder if submission.shared or host == 0 else folder.with_name(f"{folder.name}.host{host}")


def _end(agent: subprocess.Popen[bytes]) -> str:
    """How it has ended; empty while it runs. One whose thread hangs in a disk cannot be reaped, and has ended."""
    if agent.poll() is None:
        if process(agent.pid) is not None:
            return ""
        with contextlib.suppress(subprocess.TimeoutExpired):
            agent.wait(_PARTING)
    if agent.returncode is not None:
        return f"has ended with {_code(agent.returncode)}"
    return "has ended, but for a thread that waits for a disk which takes nothing"


def _code(number: int) -> str:
    return f"exit code {number}" if number >= 0 else f"signal {-number}"


def _machine() -> str:
    """This machine's name, without its domain."""
    return socket.gethostname().partition(".")[0] or "localhost"


def _start_agent(
    home: Path,
    submission: Submission,
    *,
    host: int,
    name: str,
    part: tuple[int, int],
    tasks: Sequence[PlannedTask],
    serving: int,
    lead: str,
    listener: socket.socket | None,
    words: int | None = None,
) -> subprocess.Popen[bytes]:
    folder = _folder(submission, host)
    log = folder / "agents" / f"{host}.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    attached = submission.attached
    config: dict[str, Any] = {
        "run": submission.run,
        "key": submission.key.hex(),
        "host": {
            "id": host,
            "name": name,
            "address": _LOOPBACK,
            "folder": str(folder),
            # Which part of this machine it is, and of how many.
            "part": part,
        },
        "pin": submission.outline.sharing.pin,
        "lead": lead,
        "attached": attached,
        "environ": dict(submission.environ) | dict(submission.secrets),
        "secrets": list(submission.secrets.values()),
        "cwd": submission.outline.cwd,
        "ports": submission.outline.ports,
        "serving": serving,
        "boot": str(home / "phalanx" / "runtime" / "boot") if submission.outline.runtime else "",
        "standby": early(submission.outline, tasks),
        # What standbys of the generations after the first are started with, and how many there may be.
        "standbys": submission.outline.policies.restart.standby_limit if submission.outline.runtime else 0,
        "imports": {kind: list(imports) for kind, imports in submission.imports.items()},
        "memory": {role.type: role.memory or 0 for role in submission.outline.roles},
    }
    config["carry"] = {
        "listen": listener.fileno() if listener is not None else None,
        "address": _LOOPBACK,
        "lead": {
            "run": submission.run,
            "key": submission.key.hex(),
            "outline": to_wire(submission.outline),
            "folder": str(folder),
            "shared": submission.shared,
        },
    }
    argv = [sys.executable, "-S", "-E", str(home / "__main__.py"), "agent"]
    try:
        with log.open("ab") as out:
            agent = subprocess.Popen(
                argv,
                stdin=subprocess.PIPE,
                stdout=words if words is not None else out,
                stderr=out,
                cwd="/",
                env=_clean(os.environ),
                start_new_session=True,
                pass_fds=(listener.fileno(),) if listener is not None else (),
            )
    except OSError as wrong:
        raise PlaceError(f"the agent cannot be started: {argv[0]}: {wrong.strerror}") from wrong
    finally:
        if words is not None:
            os.close(words)
    _tell(agent, config, attached=attached)
    return agent


def _tell(agent: subprocess.Popen[bytes], config: Mapping[str, Any], *, attached: bool) -> None:
    assert agent.stdin is not None  # noqa: S101 - it was asked for
    try:
        agent.stdin.write(json.dumps(config, separators=(",", ":")).encode() + b"\n")
        agent.stdin.flush()
        if not attached:
            agent.stdin.close()
    except BrokenPipeError:
        return  # it has ended already; `broken` and its log say why


def _clean(environ: Mapping[str, str]) -> dict[str, str]:
    """What reaches the agent itself: nothing that could load foreign code into it or change its Python."""
    kept = ("PATH", "HOME", "LANG", "LC_ALL", "TZ", "TMPDIR", "XDG_CACHE_HOME", "XDG_STATE_HOME", "USER", "LOGNAME")
    return {name: environ[name] for name in kept if name in environ}
