"""What a lead says of the run it takes up, of a host that has come or may not, and of a plan that cannot be made."""

from __future__ import annotations

from phalanx.decide.culprit import nobody_to_blame
from phalanx.decide.exits import Kind
from phalanx.decide.waiting import why_not_here
from phalanx.errors import PhalanxError
from phalanx.events import CulpritNamed, Event, HostJoined, Noted, RunEnded, RunStarted, TaskExited
from phalanx.plan.outline import Outline
from phalanx.plan.size import elastic_of
from phalanx.protocol.messages import Join
from phalanx.protocol.signing import RefusedError, TakenError
from phalanx.states import RunState
from phalanx.taskstate import TaskState


def admit(state: RunState, message: Join, *, same: bool) -> None:
    """Raises RefusedError for an agent that may not join. `same`: it has joined already, an earlier lead."""
    host = message.host.id
    before = state.hosts.get(host)
    if state.phase.terminal and not same:
        raise RefusedError("the run has ended")
    if before is not None and before.living and not same:
        raise TakenError(f"host {host} has an agent already, which has not been given up")
    if before is not None and not before.living and same:
        raise RefusedError(f"host {host} was given up: {before.lost}")
    if message.prepared > state.generation:
        raise RefusedError(f"host {host} has made ready a generation that the records do not know")


def opening_events(outline: Outline, run: str, now: float, *, dropped: int) -> list[Event]:
    """The first events of an epoch. `dropped`: bytes of a record that the lead before was killed in."""
    started = RunStarted(
        time=now,
        run=run,
        name=outline.name,
        tasks=outline.tasks(),
        strategy=outline.strategy.value,
        hosts=outline.hosts,
        leader=outline.leader,
        elastic=elastic_of(outline),
        must_listen=outline.must_listen,
        outside={role.type: role.failure.value for role in outline.roles if not role.in_cluster},
    )
    cut = f"half a record, {dropped} bytes, was cut off with the lead that wrote it"
    return [started, *([Noted(time=now, message=cut)] if dropped else [])]


def joined_event(message: Join, now: float) -> HostJoined:
    """An agent's introduction, as the records keep it."""
    host = message.host
    return HostJoined(
        time=now,
        host=host.id,
        name=host.name,
        address=host.address,
        cpus=host.cpus,
        gpus=host.gpus,
        memory=host.memory,
        agent_pid=message.pid,
        instance=message.instance,
        role=host.role,
    )


def never_ran(task: TaskState, host: int, now: float) -> TaskExited:
    """It was told to end before its agent had heard of it."""
    return TaskExited(
        time=now,
        task=task.id,
        host=host,
        generation=task.generation,
        attempt=task.attempt,
        pid=0,
        stopped=True,
    )


def unbound_events(wrong: PhalanxError, state: RunState, now: float) -> tuple[CulpritNamed, RunEnded]:
    """The end of a run whose next generation cannot be placed."""
    kind = Kind.USER if wrong.exit_code == 2 else Kind.INFRASTRUCTURE  # noqa: PLR2004 - the exit code of wrong input
    cause = f"{wrong}{why_not_here(state)}"
    return nobody_to_blame(state.generation, now, kind=kind, cause=cause, code=wrong.exit_code, hint=wrong.hint or "")
