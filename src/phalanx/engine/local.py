"""This machine: each host is an agent in a session of its own, and the lead rides with the first."""

from __future__ import annotations

import dataclasses
import json
import os
import socket
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from phalanx.engine import bundle
from phalanx.engine.base import Submission
from phalanx.errors import PlaceError
from phalanx.plan.bind import bind
from phalanx.plan.host import Host
from phalanx.plan.plan import Plan, PlannedTask
from phalanx.plan.wire import to_wire

_LOOPBACK = "127.0.0.1"


class LocalEngine:
    """See Engine. `--hosts 3` starts three agents that differ in all but the machine."""

    name = "local"

    def start(self, submission: Submission) -> LocalRun:
        """Starts the agents; the lead's socket listens before any of them runs, so nobody has to try twice."""
        home = bundle.unpacked()
        listener = socket.create_server((_LOOPBACK, 0), backlog=2048)
        with listener:
            lead = f"{_LOOPBACK}:{listener.getsockname()[1]}"
            preview = bind(submission.outline, _preview_hosts(submission), run=submission.run, generation=1)
            agents = [
                _start_agent(home, submission, preview, host=host, lead=lead, listener=listener if host == 0 else None)
                for host in range(submission.outline.hosts)
            ]
        return LocalRun(lead=lead, agents=agents)


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class LocalRun:
    """See Started."""

    lead: str
    agents: list[subprocess.Popen[bytes]]

    def broken(self) -> str | None:
        """The agents have all ended, and say why in `agents/*.log`."""
        codes = [agent.poll() for agent in self.agents]
        if any(code is None for code in codes):
            return None
        return f"every agent has ended (exit codes {', '.join(map(str, codes))})"

    def let_go(self) -> None:
        """Closes the pipe; an attached agent 0 takes that as a graceful stop, a detached one never had it."""
        for agent in self.agents:
            if agent.stdin is not None and not agent.stdin.closed:
                agent.stdin.close()


def _preview_hosts(submission: Submission) -> list[Host]:
    """The hosts as they will join, but for the ports: enough to know which task starts where, and with which argv."""
    serving = len(submission.outline.tasks())
    return [
        Host(
            id=number,
            name=_host_name(number, submission.outline.hosts),
            address=_LOOPBACK,
            ports=tuple(range(1, serving + 1)),
            gpus=1 << 16,
            folder=str(submission.folder),
        )
        for number in range(submission.outline.hosts)
    ]


def _host_name(number: int, hosts: int) -> str:
    """This machine's name; simulated hosts are numbered after it."""
    name = socket.gethostname().partition(".")[0] or "localhost"
    return name if hosts == 1 else f"{name}-{number}"


def _start_agent(
    home: Path, submission: Submission, preview: Plan, *, host: int, lead: str, listener: socket.socket | None
) -> subprocess.Popen[bytes]:
    log = submission.folder / "agents" / f"{host}.log"
    log.parent.mkdir(exist_ok=True)
    attached = submission.attached and host == 0
    mine = [task for task in preview.tasks if task.host == host]
    config: dict[str, Any] = {
        "run": submission.run,
        "key": submission.key.hex(),
        "host": {
            "id": host,
            "name": _host_name(host, submission.outline.hosts),
            "address": _LOOPBACK,
            "folder": str(submission.folder),
        },
        "lead": lead,
        "attached": attached,
        "environ": dict(submission.environ) | dict(submission.secrets),
        "secrets": list(submission.secrets.values()),
        "cwd": submission.outline.cwd,
        "ports": submission.outline.ports,
        "serving": sum(task.address is not None for task in mine),
        "boot": str(home / "phalanx" / "runtime" / "boot") if submission.outline.runtime else "",
        "standby": [_standby(submission, task) for task in mine] if submission.outline.runtime else [],
    }
    if listener is not None:
        config["carry"] = {
            "listen": listener.fileno(),
            "lead": {
                "run": submission.run,
                "key": submission.key.hex(),
                "outline": to_wire(submission.outline),
                "folder": str(submission.folder),
            },
        }
    argv = [sys.executable, "-S", "-E", str(home / "__main__.py"), "agent"]
    try:
        with log.open("ab") as out:
            agent = subprocess.Popen(
                argv,
                stdin=subprocess.PIPE,
                stdout=out,
                stderr=out,
                cwd="/",
                env=_clean(os.environ),
                start_new_session=True,
                pass_fds=(listener.fileno(),) if listener is not None else (),
            )
    except OSError as wrong:
        raise PlaceError(f"the agent cannot be started: {argv[0]}: {wrong.strerror}") from wrong
    _tell(agent, config, attached=attached)
    return agent


def _standby(submission: Submission, task: PlannedTask) -> dict[str, Any]:
    return {
        "id": str(task.id),
        "argv": list(task.argv),
        "env": dict(task.env),
        "imports": list(submission.imports.get(task.id.type, ())),
    }


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
