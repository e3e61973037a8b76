"""Which process a name means: a task, an agent, the lead, the launcher; and what `phalanx chaos` left in the run."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path

from phalanx.errors import InputError
from phalanx.names import TaskId
from phalanx.process import Process, children, process
from phalanx.records.index import Entry
from phalanx.states import RunState


class CannotError(InputError):
    """This fault cannot be done to this run."""


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Whereabouts:
    """One run's processes on this machine. `prepared`: the folder that `phalanx chaos` shares with them, if it does."""

    entry: Entry
    state: RunState
    prepared: Path | None = None
    #: Brings a host back, as `phalanx join` does; nothing where the run has ended.
    join: Callable[[int], None] | None = None

    def task(self, task: TaskId) -> Process:
        """The process of its newest attempt. Raises CannotError where it does not run here."""
        known = self.state.tasks.get(task)
        found = process(known.pid) if known is not None and known.pid and not known.phase.over else None
        if found is None:
            raise CannotError(f"{task} does not run on this machine now")
        return found

    def agent(self, host: int) -> Process:
        """The agent of that host. Raises CannotError."""
        known = self.state.hosts.get(host)
        found = process(known.joined.agent_pid) if known is not None and known.living else None
        if found is None or "agent" not in found.words():
            raise CannotError(f"the agent of host {host} does not run on this machine")
        return found

    def agents(self) -> tuple[Process, ...]:
        """Every agent that lives."""
        found = (process(host.joined.agent_pid) for host in self.state.hosts.values() if host.living)
        return tuple(agent for agent in found if agent is not None and "agent" in agent.words())

    def lead(self) -> Process:
        """The lead, a child of an agent. Raises CannotError."""
        for agent in self.agents():
            for child in children(agent.pid):
                if "lead" in child.words():
                    return child
        raise CannotError("the lead does not run on this machine")

    def launcher(self) -> Process:
        """Who has started the run, and follows it. Raises CannotError."""
        found = process(self.entry.launcher)
        if found is None or self.entry.detached:
            raise CannotError(f"{self.entry.run} has no launcher any more")
        return found

    def ours(self, target: str) -> tuple[Process, ...]:
        """`agent:N`, `lead`, or all of them. Raises CannotError."""
        if target == "lead":
            return (self.lead(),)
        if target:
            return (self.agent(int(target.partition(":")[2])),)
        return (*self.agents(), self.lead())

    def shared(self, what: str) -> Path:
        """The folder shared with the run. Raises CannotError where `phalanx chaos` has not started it."""
        if self.prepared is None:
            raise CannotError(f"{what} works only in a run that `phalanx chaos` has started itself", hint=_START_IT)
        return self.prepared


_START_IT = "phalanx chaos --fault … train.py starts one"
