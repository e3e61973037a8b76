"""Faults that are one signal: kill, stop, and the deaths of agent, lead and launcher."""

from __future__ import annotations

import signal
from collections.abc import Callable

from phalanx.chaos.fault import Fault
from phalanx.chaos.whereabouts import CannotError, Whereabouts
from phalanx.process import Process


def kill(fault: Fault, where: Whereabouts) -> None:
    """SIGKILL to a task."""
    _send(where.task(fault.tasks[0]), signal.SIGKILL)


def stop(fault: Fault, where: Whereabouts) -> Callable[[], None]:
    """SIGSTOP to a task; the lift is SIGCONT."""
    target = where.task(fault.tasks[0])
    _send(target, signal.SIGSTOP)
    return lambda: _send(target, signal.SIGCONT, gone=True)


def kill_agent(fault: Fault, where: Whereabouts) -> Callable[[], None] | None:
    """SIGKILL to an agent: its reaper ends the tasks of its host. The lift lets another one join in its place."""
    host = int(fault.target)
    join = where.join
    if fault.value is not None and join is None:
        raise CannotError("nobody here can bring a host back")
    _send(where.agent(host), signal.SIGKILL)
    return None if fault.value is None or join is None else lambda: join(host)


def kill_lead(fault: Fault, where: Whereabouts) -> None:
    """SIGKILL to the lead."""
    del fault
    _send(where.lead(), signal.SIGKILL)


def kill_launcher(fault: Fault, where: Whereabouts) -> None:
    """SIGKILL to the launcher."""
    del fault
    _send(where.launcher(), signal.SIGKILL)


def _send(target: Process, number: int, *, gone: bool = False) -> None:
    try:
        if not target.signal(number) and not gone:
            raise CannotError(f"process {target.pid} has ended in this moment")
    except PermissionError as wrong:
        raise CannotError(f"process {target.pid} belongs to another user") from wrong
