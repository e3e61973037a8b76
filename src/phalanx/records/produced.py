"""What the job should have left behind, as its report tells it."""

from __future__ import annotations

import dataclasses

from phalanx.events import OutputsFound
from phalanx.plan.outputs import Output, outputs_of
from phalanx.plan.plan import Plan
from phalanx.states import RunPhase, RunState


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class OutputReport:
    """One declared output, as the host of the leader has found it at the end of the run."""

    path: str
    #: Whether something is there; None where nobody has looked, or could.
    there: bool | None
    #: Whether anything of it was written in this run; None where nothing is there, or nobody has looked.
    fresh: bool | None = None
    #: What fits the pattern: how many files and folders, and their bytes in all.
    count: int = 0
    bytes: int = 0
    #: When the newest of it was written, in Unix seconds.
    newest: float | None = None
    #: Why nobody has looked, or could; empty where somebody has.
    why: str = ""


def produced(state: RunState, plan: Plan | None) -> tuple[OutputReport, ...]:
    """In the order of the declaration."""
    found = state.outputs
    if isinstance(found, OutputsFound):
        return tuple(_seen(output, state.started) for output in found.outputs)
    if state.end is None:
        why = "it is looked for when the run ends"
    elif found is not None:
        why = "its host has not answered in time"
    else:
        why = "its host was gone" if state.leading is not None and state.leading.started else "nothing was started"
    return tuple(OutputReport(path=path, there=None, why=why) for path in outputs_of(plan))


def _seen(output: Output, since: float) -> OutputReport:
    if output.wrong:
        return OutputReport(path=output.path, there=None, why=output.wrong)
    return OutputReport(
        path=output.path,
        there=output.count > 0,
        fresh=None if output.newest is None else output.newest >= since,
        count=output.count,
        bytes=output.bytes,
        newest=output.newest,
    )


def shortcomings(state: RunState, outputs: tuple[OutputReport, ...]) -> list[str]:
    """What a success has not left behind. It stays one: the leader's word counts, and the pattern may be wrong."""
    if state.phase is not RunPhase.SUCCEEDED:
        return []
    host = state.hosts.get(state.outputs.host) if state.outputs is not None else None
    where = f" on {host.joined.name}" if host is not None and len(state.hosts) > 1 else ""
    missing = [out.path for out in outputs if out.there is False]
    old = [out.path for out in outputs if out.fresh is False]
    found = []
    if missing:
        found.append(f"{state.leader} has ended well and left no {', no '.join(missing)}{where}")
    if old:
        found.append(f"{', '.join(old)}{where} {'is' if len(old) == 1 else 'are'} older than this run")
    return found


def remedies(state: RunState, run: str, short: list[str]) -> tuple[str, ...]:
    """What to do about them."""
    if not short:
        return ()
    return f"phalanx logs {run} {state.leader}", "see where it saves, and what `outputs` of the job names"
