"""What a check is given, and where it puts what it finds."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path

from phalanx.agent.preflight.programs import Program
from phalanx.plan.checklist import Checklist, Fact, Fault


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Asked:
    """One host's circumstances: the lead's list, and what the agent knows of itself."""

    host: int
    list: Checklist
    #: The tasks that differ in what they run, one Program each.
    programs: tuple[Program, ...]
    #: What every task of this host inherits.
    environ: Mapping[str, str]
    #: The run's folder.
    folder: Path
    #: The name of the token file, and what stands in it.
    token: tuple[str, str]
    #: Seconds by which this clock is ahead of the lead's.
    ahead: float = 0.0

    @property
    def tasks(self) -> int:
        """How many tasks of the cluster run here."""
        return sum(program.serving for program in self.programs)


class Answer:
    """Collects what one check has to say. Checks write into one of their own each, from a thread of their own."""

    def __init__(self) -> None:
        """Nothing yet."""
        self.looked: list[str] = []
        self.facts: list[Fact] = []
        self.faults: list[Fault] = []

    def look(self, *checks: str) -> None:
        """These checks apply here."""
        self.looked += checks

    def fact(self, name: str, value: str, of: str = "") -> None:
        """Something to be compared with other hosts."""
        self.facts.append(Fact(name=name, value=value, of=of))

    def fault(self, check: str, words: str, *, peer: int | None = None) -> None:
        """Something is wrong."""
        self.faults.append(Fault(check=check, words=words, peer=peer))
