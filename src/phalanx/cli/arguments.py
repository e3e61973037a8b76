"""What each verb takes besides its flags: how `--help` names it, and what a shell completes there."""

from __future__ import annotations

import dataclasses
from typing import Literal

#: A script with words of its own, files, runs of this user, or nothing that a shell could know.
Completes = Literal["script", "files", "runs", "nothing"]


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Arguments:
    """The positional words of a verb."""

    #: As in its usage line; the table below that line explains the same names.
    shown: str
    completes: Completes


_INPUTS = Arguments(shown="[INPUT...]", completes="files")
_RUN = Arguments(shown="[RUN]", completes="runs")

ARGUMENTS = {
    "run": Arguments(shown="COMMAND...", completes="script"),
    "chaos": Arguments(shown="RUN|COMMAND...", completes="script"),
    "plan": Arguments(shown="COMMAND...", completes="script"),
    "preflight": Arguments(shown="COMMAND...", completes="script"),
    "advise": Arguments(shown="[COMMAND...]", completes="script"),
    "bench": Arguments(shown="COMMAND...", completes="script"),
    "init": Arguments(shown="SCRIPT [ARGS...]", completes="files"),
    "import": Arguments(shown="FILE [-- ENTRYPOINT...]", completes="files"),
    "schema": Arguments(shown="", completes="nothing"),
    "ps": _RUN,
    "logs": Arguments(shown="[RUN] [TASK...]", completes="runs"),
    "events": _RUN,
    "report": _RUN,
    "attach": _RUN,
    "stacks": Arguments(shown="[RUN] [TASK...]", completes="runs"),
    "diagnose": _RUN,
    "stop": _RUN,
    "scale": Arguments(shown="RUN WORKERS", completes="runs"),
    "join": _RUN,
    "render": Arguments(shown="COMMAND...", completes="script"),
    "kubernetes": Arguments(shown="WHAT", completes="nothing"),
    "check": _INPUTS,
    "explain": _INPUTS,
    "fix": _INPUTS,
    "agree": Arguments(shown="INPUT...", completes="files"),
    "generate": Arguments(shown="[CLUSTER]", completes="files"),
    "completion": Arguments(shown="SHELL", completes="nothing"),
}


def usage(verb: str) -> str:
    """The line that `phalanx VERB --help` begins with."""
    options = "" if verb in ("schema", "completion", "scale") else "[OPTIONS]"
    return " ".join(filter(None, ("Usage: phalanx", verb, options, ARGUMENTS[verb].shown))) + "\n"
