"""The agent's start in a pod: what its mounts and variables say becomes the configuration of any agent.

It runs twice: out of the zip, to unpack it, to read and to look for the lead; then, as what it has unpacked, it is the
agent. The container's environment is the tasks'; the agent itself keeps what could not change its Python.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import zipfile
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn

from phalanx.agent.carrier import bound
from phalanx.agent.log import say
from phalanx.agent.podfacts import Pod, read_pod
from phalanx.agent.seek import seek
from phalanx.decide.quorum import lease_for, step_apart
from phalanx.errors import PhalanxError, PlaceError
from phalanx.names import join_host_port
from phalanx.patient import last_word_to, patient_stderr
from phalanx.plan.bind import bind
from phalanx.plan.early import early
from phalanx.plan.pods import pod_hosts, room
from phalanx.plan.wire import to_wire

#: What reaches the agent and its lead: nothing that could load foreign code into them. The lead asks the API.
_KEPT = ("PATH", "HOME", "LANG", "LC_ALL", "TZ", "TMPDIR", "KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT")

#: Seconds that a lead of a successor takes to answer, and that a pod waits for a lead beyond the job's own deadline.
_STARTS, _BEYOND = 5.0, 60.0

#: Seconds for which a pod alone looks whether the one before it still leads: that may be ending.
_ALONE = 2.0

_BACKLOG = 2048


def main(words: list[str]) -> int:
    """`pod [ROOT [ADDRESS]]`: becomes this pod's agent; returns only where it cannot, with the exit code.

    `ROOT` holds what is mounted under /phalanx; with `ADDRESS` it listens there alone. Both are for pods that are
    processes of one machine.
    """
    root = Path(words[0] if words else "/phalanx")
    word = root / "termination-log" if words else Path("/dev/termination-log")
    patient_stderr()
    last_word_to(str(word))
    signal.signal(signal.SIGTERM, _leave)  # the first process of a container is not ended by it otherwise
    try:
        home = _unpacked(root / "work")
        pod = read_pod(root, os.environ)
        config = _config(pod, home, cwd=str(Path.cwd()), word=word, address=words[1] if words[1:] else "")
        return _become(home, config)
    except PhalanxError as wrong:
        say(f"{wrong}{f'; {wrong.hint}' if wrong.hint else ''}")
        return wrong.exit_code
    except OSError as wrong:
        say(f"the agent cannot start in this pod: {wrong}")
        return PlaceError.exit_code


def _leave(number: int, frame: FrameType | None) -> None:
    del number, frame
    say("the pod is told to end (TERM) before its agent has started")
    sys.exit(PlaceError.exit_code)


def _unpacked(work: Path) -> Path:
    """The folder of the agent, unpacked where this is still the zip. Raises PlaceError."""
    here = Path(sys.argv[0])
    if here.is_file() and not zipfile.is_zipfile(here):
        return here.parent
    home = work / "agent"
    if (home / "__main__.py").is_file():
        return home
    scratch = work / f".agent-{os.getpid()}"
    try:
        with zipfile.ZipFile(here) as bundle:
            bundle.extractall(scratch)
        scratch.rename(home)
    except (OSError, zipfile.BadZipFile) as wrong:
        raise PlaceError(f"the agent cannot be unpacked into {work}: {wrong}") from wrong
    return home


def _config(pod: Pod, home: Path, *, cwd: str, word: Path, address: str) -> dict[str, Any]:
    """As other engines send it down a pipe. Looks who leads, where there may be somebody already."""
    outline, folder = pod.outline, str(pod.folder)
    pod.folder.joinpath("agents").mkdir(parents=True, exist_ok=True)
    lead = _lead(pod)
    carry = {
        "listen": _listening(address, pod.port) if lead is None else None,
        "address": address or _any(),
        "port": pod.port,
        "reached": pod.reached if pod.may_lead else "",
        "lead": {
            "run": pod.run,
            "key": pod.key,
            "outline": to_wire(outline),
            "folder": folder,
            "shared": pod.shared,
            "reached": pod.reached,
            "epoch": pod.epoch if lead is None else 1,
        },
    }
    plan = bind(outline, pod_hosts(outline, pod.named, folder=folder), run=pod.run, generation=1)
    return {
        "run": pod.run,
        "key": pod.key,
        "host": {
            "id": pod.host,
            "name": pod.name,
            "address": pod.ip,
            "folder": folder,
            "part": (0, 1),
            "role": pod.role,
        },
        "pin": outline.sharing.pin,
        "lead": lead or pod.reached,
        "attached": False,
        "environ": dict(pod.environ),
        "secrets": list(pod.secrets),
        "cwd": str(Path(cwd, outline.cwd)),
        "ports": outline.ports,
        "serving": room(outline, pod.role),
        "boot": str(home / "phalanx" / "runtime" / "boot") if outline.runtime else "",
        "standby": early(outline, [task for task in plan.tasks if task.host == pod.host]),
        "standbys": outline.policies.restart.standby_limit if outline.runtime else 0,
        "imports": {kind: list(lines) for kind, lines in pod.imports.items()},
        "memory": {role.type: role.memory or 0 for role in outline.roles},
        "carry": carry,
        "pod": {
            "grace": pod.grace,
            "word": str(word),
            "echo": pod.echo,
            "line": [join_host_port(name, pod.port) for name in (pod.lead, *pod.line)],
            "joins": outline.policies.health.start + _BEYOND,
        },
    }


def _lead(pod: Pod) -> str | None:
    """Where the run's lead answers, `host:port`; None where this pod is to start one.

    A pod that replaces the lead's must not begin the run anew while somebody else leads it, or is about to: it waits
    for a lease and the turns of all heirs.
    """
    if not pod.is_first:
        expected = join_host_port(pod.lead, pod.port)
        if not pod.replaces:  # with it all others come up, and its name too early asked for is long unknown
            return expected
        return seek((pod.lead, *pod.line), pod.port, patience=0.0).lead or expected
    others = [name for name in pod.line if name != pod.address]
    if not pod.replaces:
        return None
    lease = lease_for(pod.outline.hosts)
    patience = lease + step_apart(lease) * len(others) + _STARTS if others else _ALONE
    whom = ", ".join(others) or "the pod before it alone"
    say(f"this pod replaces the lead's: for up to {patience:.0f} s it looks who leads now ({whom})")
    found = seek(others, pod.port, patience=patience, nobody=lease, former=pod.address)
    say(f"{found.lead} leads the run" if found.lead else f"nobody leads the run, so that it begins anew; {found.says}")
    return found.lead


def _listening(address: str, port: int) -> int:
    """The number of a socket that listens, for the lead. Raises PlaceError where somebody else has the port."""
    try:
        made = bound(address or _any(), port)
        made.listen(_BACKLOG)
    except OSError as wrong:
        hint = f"no other container of the pod may listen on {port}"
        raise PlaceError(f"the lead cannot listen on port {port}: {wrong.strerror}", hint=hint) from wrong
    os.set_inheritable(made.fileno(), True)  # noqa: FBT003 - it takes no name
    return made.detach()


def _any() -> str:
    """All addresses: of both families where this pod has IPv6."""
    try:
        bound("::").close()
    except OSError:
        return "0.0.0.0"  # noqa: S104 - a pod's address is its own, and a NetworkPolicy guards it
    return "::"


def _become(home: Path, config: dict[str, Any]) -> NoReturn:
    """The agent, with its configuration as standard input. Raises OSError."""
    told = os.memfd_create("config", 0)
    with os.fdopen(os.dup(told), "wb") as file:
        file.write(json.dumps(config, separators=(",", ":")).encode() + b"\n")
    os.lseek(told, 0, os.SEEK_SET)
    os.dup2(told, 0)
    environ = {name: os.environ[name] for name in _KEPT if name in os.environ}
    argv = [sys.executable, "-S", "-E", str(home / "__main__.py"), "agent"]
    os.execve(sys.executable, argv, environ)  # noqa: S606 - no shell is wanted
