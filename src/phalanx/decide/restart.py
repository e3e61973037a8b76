"""Whether a failed group is started again: by the kind of its failure, its budget, and what has happened before."""

from __future__ import annotations

import dataclasses
import re
import zlib

from phalanx.decide import alone
from phalanx.decide.exits import Kind, evidence, gist, says_victim, words_of
from phalanx.decide.together import answered
from phalanx.decide.unit import failing_unit, purse
from phalanx.events import TaskExited
from phalanx.plan.policies import Restart
from phalanx.spans import span
from phalanx.states import PastFailure, RunState
from phalanx.taskstate import TaskState, total_steps

#: No second try mends a program that cannot even be read or imported.
_PERMANENT = re.compile(r"^\s*(?:ModuleNotFoundError|ImportError|SyntaxError|IndentationError|TabError)\b")

#: A shell's words for a command that may not, or cannot, be run; and a program's for a wrong command line (R82).
_NEVER_RAN, _USAGE = (126, 127), 2

#: How often in a row a task may be preempted in its first seconds.
_IN_A_CIRCLE = 5

#: When every task says the same within this many seconds of its start, it is the program's doing, not a host's.
_FIRST_SECONDS = 10.0

#: What is no chance where it was noticed twice in a row by the same sign.
_TWICE = {"start": "it did not start the time before either", alone.SIGN: "one waited so the time before as well"}

#: Seconds before the second restart in a row, doubled for each further one; the first comes at once.
_BACK_OFF, _LONGEST = 1.0, 60.0


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Verdict:
    """`again` with the time of the next start, or not; `why` in words for the report.

    `along`: it is part of what the restart before it answers, and so not counted.
    """

    again: bool
    why: str
    at: float = 0.0
    counted: bool = True
    along: bool = False


def judge(state: RunState, restart: Restart, now: float) -> Verdict:  # noqa: PLR0911 - one return a rule
    """Asked once the culprit is named and every process is gone.

    A preempted group comes back for free. A permanent error, the same words twice at one step, or the same words from
    every task in its first seconds is the program's: no restart. Everything else may use the budget of its kind: `max`
    within `within`, and whole again once a newer checkpoint is complete. Tasks that fall at once are one failure, also
    where the first of them is back before the others are down.
    """
    culprit = state.culprit
    if culprit is None:
        return Verdict(again=False, why="nobody knows what failed")
    preempted = culprit.kind == Kind.PREEMPTION.value
    if not preempted and restart.max == 0:
        return Verdict(again=False, why="")
    if not preempted and (why := _past_help(state)):
        return Verdict(again=False, why=why)
    if (same := answered(state)) is not None and same.culprit is not None:
        why = f"it fell with {same.culprit.task}: {same.restart.why}"
        return Verdict(again=True, why=why, at=max(now, same.restart.at), counted=False, along=True)
    if preempted:
        return _preempted(state, now)
    if why := _seen_before(state):
        return Verdict(again=False, why=why)
    payer = purse(state, failing_unit(state))
    since = max(now - restart.within, 0.0 if payer else state.progress or 0.0)
    alike = [p for p in state.past if p.restart.counted and _kind(p) == culprit.kind and p.ended > since]
    spent = [p for p in alike if purse(state, frozenset(p.restart.tasks)) == payer]  # none pays for another
    if len(spent) >= restart.max:
        times = "once" if len(spent) == 1 else f"{len(spent)} times"
        return Verdict(again=False, why=f"its budget is spent: restarted {times} within {span(restart.within)}")
    why = f"restart {len(spent) + 1} of {restart.max}"
    return Verdict(again=True, why=why, at=now + back_off(state.run, len(spent)))


def _preempted(state: RunState, now: float) -> Verdict:
    """For free, but not in a circle: who always leaves in its first seconds is no guest of a place that needs room."""
    since = state.progress or 0.0
    before = [p for p in state.past if _kind(p) == Kind.PREEMPTION.value and p.ended > since and not p.restart.along]
    task = state.blamed
    ran = (task.ended or now) - (task.started or now) if task is not None else _FIRST_SECONDS
    if ran < _FIRST_SECONDS and len(before) >= _IN_A_CIRCLE:
        return Verdict(again=False, why=f"it has left in its first seconds {len(before) + 1} times in a row")
    return Verdict(
        again=True, why="preempted: restarted for free", at=now + back_off(state.run, len(before)), counted=False
    )


def back_off(run: str, before: int) -> float:
    """Seconds to wait after `before` restarts: 0, 1, 2, 4 … 60, each up to a tenth longer, by the run's name."""
    if before == 0:
        return 0.0
    jitter = zlib.crc32(f"{run}/{before}".encode()) / 2**32
    return min(_LONGEST, _BACK_OFF * 2.0 ** (before - 1)) * (1 + jitter / 10)


def _kind(past: PastFailure) -> str:
    return past.culprit.kind if past.culprit else ""


def _past_help(state: RunState) -> str:
    """Why no restart would help, by what the culprit itself shows; empty where one may."""
    task = state.blamed
    if task is None:
        return ""
    if task.refused:
        return "it could not be started"
    if state.culprit is not None and state.culprit.sign == alone.SIGN and alone.certain(state):
        return "the program would come to the same place again"
    if task.exit is None or task.exit.signal is not None:
        return ""
    words = words_of(task.exit)
    if _PERMANENT.match(words) or task.exit.code in _NEVER_RAN or (task.exit.code == _USAGE and _at_once(task, words)):
        return "no restart mends that"
    return ""


def _seen_before(state: RunState) -> str:
    """Why no restart would help, since the same came before, or came to every task; empty where one may."""
    culprit, task = state.culprit, state.blamed
    if culprit is None or task is None:
        return ""
    before = state.past[-1].culprit if state.past else None
    if before is not None and before.sign == culprit.sign and culprit.sign in _TWICE:
        return _TWICE[culprit.sign]
    if task.exit is None or task.exit.signal is not None:
        return ""
    words = words_of(task.exit)
    if state.past and (why := _as_before(state.past[-1], task, task.exit)):
        return why
    failed = [other for other in state.tasks.values() if other.exit is not None and other.exit.code not in (0, None)]
    if len(failed) == len(state.tasks) and all(_at_once(other, words) for other in failed):
        return f"every task failed {'with the same words' if words else 'alike'} in its first seconds"
    return ""


def _as_before(past: PastFailure, task: TaskState, exit_: TaskExited) -> str:
    """In which way it fell as it did before, at the same step; empty where it did not.

    Where steps are not known the words alone tell. One without a word must have come to the same step with the same
    code; where steps are not known, to the same last line.
    """
    if past.exit is None or past.exit.signal is not None:
        return ""
    steps = total_steps(task, task.step) if task.first_step is not None else None
    known = steps is not None and past.step is not None
    if known and steps != past.step:
        return ""
    words, before = gist(words_of(exit_)), gist(words_of(past.exit))
    if words or before:
        return "it failed with the same words as before" if words == before else ""
    if exit_.code != past.exit.code:
        return ""
    if known:
        return f"it failed with the same code at the same step as before ({steps})"
    last = gist(exit_.last_output)
    return "it failed after the same last line as before" if last and last == gist(past.exit.last_output) else ""


def _at_once(task: TaskState, words: str) -> bool:
    if task.exit is None or task.started is None or says_victim(evidence(task.exit)):
        return False
    same = gist(words_of(task.exit)) == gist(words)
    return same and task.exit.time - task.started <= _FIRST_SECONDS
