"""The preflight as a table: a line for each check, and what to do about those that found something."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from phalanx.decide.preflight import ROWS, judge
from phalanx.names import many
from phalanx.observe.table import columns
from phalanx.observe.words import host_name
from phalanx.states import RunState

_HEADINGS = ("check", "result", "what was found")


def results(state: RunState, ignored: Iterable[str]) -> list[dict[str, Any]]:
    """One a row of the table: `check`, `result` (ok, failed, warning, ignored, not needed), `hosts`, `words`, `fix`."""
    wrong = {one.row.id: one for one in judge(state, ignore=ignored)}
    looked = {check for host in state.checked.values() for check in host.looked}
    skipped = frozenset(ignored)
    found = []
    for row in ROWS:
        one = wrong.get(row.id)
        if row.id in skipped:
            result = "ignored"
        elif one is not None:
            result = "failed" if row.fatal else "warning"
        else:
            result = "ok" if row.id in looked else "not needed"
        found.append(
            {
                "check": row.id,
                "result": result,
                "hosts": [host_name(state, host) for host in one.hosts] if one else [],
                "words": one.words if one else "",
                "fix": row.fix if one else "",
            }
        )
    return found


def as_json(state: RunState, ignored: Iterable[str]) -> dict[str, Any]:
    """Everything a script may want to know."""
    return {
        "passed": state.end is not None and state.end.exit_code == 0,
        "exit_code": state.end.exit_code if state.end else None,
        "cause": state.end.cause if state.end else "",
        "hosts": [
            {
                "host": host_name(state, host),
                "seconds": said.seconds,
                "facts": [[f.name, f.of, f.value] for f in said.facts],
            }
            for host, said in sorted(state.checked.items())
        ],
        "checks": results(state, ignored),
    }


def render(state: RunState, ignored: Iterable[str], *, width: int = 1000) -> str:
    """Ends in a newline. Checks that did not apply are named in one line."""
    rows = results(state, ignored)
    told = [row for row in rows if row["result"] not in ("not needed", "ignored")]
    lines = columns([_HEADINGS, *((row["check"], row["result"], row["words"]) for row in told)], width=width)
    for result, words in (("ignored", "ignored"), ("not needed", "not needed here")):
        names = [row["check"] for row in rows if row["result"] == result]
        if names and told:
            lines.append(f"{words}: {', '.join(names)}")
    lines += [f"{row['check']}: {row['fix']}" for row in told if row["fix"]]
    if state.end is not None:
        lines.append(state.end.cause if not told else _summary(state, told))
    return "\n".join(line.rstrip() for line in lines) + "\n"


def _summary(state: RunState, told: list[dict[str, Any]]) -> str:
    hosts = len(state.checked)
    where = f"on {many(hosts, 'host')}"
    failed = [row["check"] for row in told if row["result"] == "failed"]
    if failed:
        return f"{len(told)} checks {where}: {', '.join(failed)} would end a run; --ignore-check ID lets it start"
    took = max((said.seconds for said in state.checked.values()), default=0.0)
    return f"{len(told)} checks {where} in {took:.1f} s: nothing would end a run"
