"""What a job should leave behind: the declared patterns with their placeholders filled, and what a look has found."""

from __future__ import annotations

import dataclasses

from phalanx.plan.bind import fill
from phalanx.plan.plan import Plan


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Output:
    """What lies at one of them, on the host that has looked."""

    path: str
    #: Files and folders that fit the pattern, and their bytes in all, with everything in the folders.
    count: int = 0
    bytes: int = 0
    #: When the newest of them was written, in Unix seconds; None where there is none.
    newest: float | None = None
    #: Why it could not be looked for; empty: it was.
    wrong: str = ""


def outputs_of(plan: Plan | None) -> tuple[str, ...]:
    """The patterns as the leader's host has to look for them, relative to the job's folder where they are."""
    if plan is None or plan.outline.leader is None:
        return ()
    leader = plan.task(plan.outline.leader)
    words = {
        "run": plan.run,
        "generation": str(plan.generation),
        "checkpoint": plan.outline.checkpoint or "",
        "task_dir": leader.env["PHALANX_TASK_DIR"],
    }
    return tuple(fill(pattern, words) for pattern in plan.outline.outputs)
