"""What every engine is asked, and what it gives back."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

from phalanx.plan.outline import Outline
from phalanx.protocol.signing import RunKey


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Submission:
    """A run to be started: what, under which name, with whose environment."""

    run: str
    folder: Path
    key: RunKey
    outline: Outline
    #: The environment the tasks start from: the user's own.
    environ: Mapping[str, str]
    #: Values by the variable they are delivered in; they go down a pipe and into no record.
    secrets: Mapping[str, str]
    #: By role: the imports its script begins with, which a standby may do before it knows which task it is.
    imports: Mapping[str, tuple[str, ...]] = dataclasses.field(default_factory=dict)
    #: Whether the run ends when the launcher does.
    attached: bool = True
    #: Whether all hosts see `folder`. Where they do not, each has one of its own of that name, and a lead that takes
    #: over learns the run from the copy that its host has kept.
    shared: bool = True


class Started(Protocol):
    """A submission that an engine has taken."""

    @property
    def lead(self) -> str:
        """Where the lead answers: `host:port`."""
        ...

    def broken(self) -> str | None:
        """Why the place cannot go on (every process of ours is gone), or None. Cheap, may be asked often."""
        ...

    def news(self) -> Sequence[str]:
        """What the place has to say to whoever waits, each word once. Cheap, may be asked often."""
        ...

    def stop(self, by: str) -> bool:
        """End it by the place's own means, since its lead cannot be asked; whether there are such means."""
        ...

    def lost(self) -> dict[int, str]:
        """Hosts whose agents are known to have ended, each with the reason. Cheap, may be asked often."""
        ...

    def finish(self, patience: float) -> None:
        """The run has ended: wait up to `patience` seconds for what is ours to leave, then end it."""
        ...

    def kill(self) -> None:
        """End everything of the run at once. Idempotent."""
        ...

    def let_go(self) -> None:
        """Forget the run without ending it: what `--detach` and a closing launcher do. Idempotent."""
        ...


class Engine(Protocol):
    """Starts one agent a host and says where the lead will be. Never sees TF_CONFIG."""

    name: str

    def start(self, submission: Submission) -> Started:
        """Returns once the agents are on their way. Raises PlaceError where one cannot be started."""
        ...
