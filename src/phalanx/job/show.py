"""A declaration and its plan as people read them, and as scripts do."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterable, Iterator
from typing import Any, Protocol

from phalanx.job import keras
from phalanx.job.advise import looks_secret
from phalanx.job.units import in_words
from phalanx.names import some
from phalanx.plan.cpulist import text_of
from phalanx.plan.lent import VARIABLE
from phalanx.plan.outline import Outline
from phalanx.plan.plan import Plan, PlannedTask
from phalanx.plan.size import elastic_of
from phalanx.plan.wire import VERSION, to_wire
from phalanx.script.check import IDS
from phalanx.tfconfig.finding import Finding

_HELD = "<held at start>"
#: Tasks shown one by one; the rest are counted.
_MOST = 16
#: Characters of one variable that text shows: a TF_CONFIG of a thousand workers fills a screen otherwise.
_WIDE = 2000

_STRATEGIES = {
    "mwms": "MultiWorkerMirroredStrategy",
    "ps": "ParameterServerStrategy",
    "estimator": "Estimator",
    "none": "none: tasks do not know of each other",
}


class Said(Protocol):
    """What a declaration has become, for whatever place."""

    @property
    def outline(self) -> Outline:
        """All but addresses."""
        ...

    @property
    def notes(self) -> tuple[Finding, ...]:
        """What deserves a second thought."""
        ...


def as_json(declared: Said, bound: Plan) -> dict[str, Any]:
    """Everything, each task's environment and TF_CONFIG included. Ports are the examples of the plan's hosts."""
    outline = declared.outline
    health, grace = outline.policies.health, outline.policies.grace
    return {
        "version": VERSION,
        "name": outline.name,
        "strategy": outline.strategy.value,
        "strategy_declared": outline.strategy_declared,
        "cwd": outline.cwd,
        "interpreter": to_wire(outline.interpreter),
        "keras": outline.keras,
        "ports": "examples",
        "hosts": to_wire(bound.hosts),
        "cluster": to_wire(bound.cluster),
        "tasks": [
            {
                "task": str(task.id),
                "host": task.host,
                "address": task.address,
                "rank": task.rank,
                "cpus": list(task.cpus),
                "argv": list(task.argv),
                "env": _environment(outline, bound, task),
            }
            for task in bound.tasks
        ],
        "unpinned": {str(host): why for host, why in bound.unpinned.items()},
        "policies": {
            "health": {"start": health.start, "finish": health.finish, "evaluator": health.evaluator},
            "grace": {"stop": grace.stop, "failure": grace.failure},
        },
        "checkpoint": outline.checkpoint,
        "outputs": list(outline.outputs),
        "notes": [
            {
                "id": note.id,
                "severity": note.severity.value,
                "path": note.path,
                "message": note.message,
                "fix": note.fix,
            }
            for note in declared.notes
        ],
    }


def as_lines(
    declared: Said, bound: Plan, *, place: str = "this machine", more: Iterable[tuple[str, str]] = ()
) -> Iterator[str]:
    """A page: the job, its tasks, what each environment gains, and what deserves a second thought.

    `place`: what its hosts are; `more`: further lines of its head, each with a title.
    """
    outline = declared.outline
    yield from (f"{title:<11}  {_printable(said)}" for title, said in (*_head(outline, bound, place), *more))
    yield ""
    yield from _tasks(bound)
    yield ""
    yield from _environments(outline, bound)
    if declared.notes:
        yield ""
    yield from map(note_line, declared.notes)


def _head(outline: Outline, bound: Plan, place: str) -> Iterator[tuple[str, str]]:
    how = "declared" if outline.strategy_declared else "from the roles"
    yield "job", f"{outline.name}: " + ", ".join(_count(role.count, role.type) for role in outline.roles)
    yield "strategy", f"{_STRATEGIES[outline.strategy.value]} ({how})"
    if bound.cluster is not None:
        yield "cluster", f"{_count(len(list(bound.cluster.tasks())), 'task')}, the chief is {bound.cluster.chief}"
    else:
        yield "cluster", "none: no task gets a TF_CONFIG"
    yield "hosts", f"{some([host.name for host in bound.hosts], _MOST)} ({place})"
    if sharing := _cores(outline, bound):
        yield "cores", sharing
    ports = f"of {outline.ports[0]}-{outline.ports[1]}" if outline.ports else "of phalanx's own pool"
    yield "ports", f"{ports}, held at start"
    firsts = {role.command: next(task for task in bound.tasks if task.id.type == role.type) for role in outline.roles}
    for words, first in firsts.items():
        roles = ", ".join(role.type for role in outline.roles if role.command == words)
        yield (
            "command",
            shlex.join(_word(word, first, bound) for word in first.argv) + (f"   ({roles})" if len(firsts) > 1 else ""),
        )
    yield "folder", f"{outline.cwd or 'that of the image'} (commands start and relative paths begin here)"
    if (found := outline.interpreter) is not None and not found.version:
        yield "interpreter", f"{found.path} (by {found.chosen_by})"
    elif found is not None:
        has = f"TensorFlow {found.tensorflow}" if found.tensorflow else "no TensorFlow found"
        also = f", Keras {found.keras}" if found.keras else ""
        yield "interpreter", f"{found.path}: Python {found.version}, {has}{also} (by {found.chosen_by})"
    else:
        yield "interpreter", "none: the command runs as written"
    if said := keras.in_words(outline):
        yield "keras", said
    if outline.checkpoint:
        yield "checkpoint", outline.checkpoint
    health, grace = outline.policies.health, outline.policies.grace
    yield (
        "patience",
        f"{in_words(health.start)} to start, {in_words(health.finish)} to finish, {in_words(grace.stop)} to stop",
    )
    elastic = elastic_of(outline)
    if elastic is not None and elastic.fewest < elastic.most:
        yield "workers", f"{elastic.fewest} to {elastic.most}, {elastic.count} to begin with"
    restart = outline.policies.restart
    if restart.max:
        yield "restarts", f"{restart.max} after failures of one kind within {in_words(restart.within)}"


def _cores(outline: Outline, bound: Plan) -> str:
    """How a host's tasks share its cores; nothing to say where each has a host for itself."""
    if not outline.sharing.pin:
        return "shared by all tasks of a host (pin: off)"
    whys = list(dict.fromkeys(bound.unpinned.values()))
    if whys:
        return f"shared by all tasks of a host: {whys[0]}" + ("; other hosts differ" if len(whys) > 1 else "")
    if any(task.cpus for task in bound.tasks):
        return "each task is pinned to its own, as below (--no-pin: to none)"
    crowded = len({task.host for task in bound.tasks}) < len(bound.tasks)
    return "each task is pinned to its own, where its host has them" if crowded else ""


def _tasks(bound: Plan) -> Iterator[str]:
    names = {host.id: host.name for host in bound.hosts}
    pinned = any(task.cpus for task in bound.tasks)
    rows = [("task", "rank", "host", *(("CPUs",) if pinned else ()), "address")]
    for task in bound.tasks[:_MOST]:
        rank = "-" if task.rank is None else str(task.rank)
        address = f"{task.address.rpartition(':')[0]}:{_HELD}" if task.address else "-"
        cpus = (text_of(task.cpus) or "all",) if pinned else ()
        rows.append((str(task.id), rank, names[task.host], *cpus, address))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)][:-1]
    for row in rows:
        yield "  ".join([*map(str.ljust, row, widths), row[-1]])
    if len(bound.tasks) > _MOST:
        yield f"and {len(bound.tasks) - _MOST} more (--json shows them all)"


def _environments(outline: Outline, bound: Plan) -> Iterator[str]:
    """What all have in common once, then the first task of each role: its fellows differ in their own numbers only."""
    firsts = {task.id.type: task for task in reversed(bound.tasks)}
    shown = {
        task.id: _without_ports(_environment(outline, bound, task), bound)
        for task in bound.tasks
        if task in firsts.values()
    }
    common = set.intersection(*(set(env.items()) for env in shown.values()))
    if len(bound.tasks) > 1:
        common = {(name, value) for name, value in common if name not in _OWN}
    yield "added to the environment of every task:"
    yield from _variables(common)
    for task, env in shown.items():
        if own := set(env.items()) - common:
            fellows = outline.role(task.type).count > 1
            yield f"of {task}" + (f" (each {task.type} has its own):" if fellows else ":")
            yield from _variables(own)


#: What names the task itself, and so is never the same for two.
_OWN = ("PHALANX_TASK", "PHALANX_TASK_DIR", "TF_CONFIG")


def _variables(items: set[tuple[str, str]]) -> Iterator[str]:
    for name, value in sorted(items):
        cut = f"… ({len(value)} characters; --json shows them)" if len(value) > _WIDE else ""
        yield f"  {name}={_printable(value[:_WIDE])}{cut}"


def _environment(outline: Outline, bound: Plan, task: PlannedTask) -> dict[str, str]:
    """Everything added to the user's own environment; what is secret or looks so is named and not shown."""
    env = {name: "***" if looks_secret(name, value) else value for name, value in task.env.items()}
    env |= {secret.env: f"<secret {secret.name}>" for secret in outline.secrets}
    config = bound.tf_config(task)
    return env | ({"TF_CONFIG": config} if config is not None else {})


def _without_ports(env: dict[str, str], bound: Plan) -> dict[str, str]:
    """The ports of a preview are examples; a reader would take them for real."""
    for name in ("TF_CONFIG", VARIABLE):
        if name in env:
            env = env | {name: _hidden(env[name], bound)}
    return env


def _hidden(text: str, bound: Plan) -> str:
    for task in bound.tasks:
        if task.address and task.address in text:
            text = re.sub(re.escape(task.address) + r"(?!\d)", f"{task.address.rpartition(':')[0]}:<port>", text)
    return text


def _word(word: str, task: PlannedTask, bound: Plan) -> str:
    """A word of a command without the ports of the preview."""
    if VARIABLE not in task.env:
        return word
    return "<port>" if word == str(task.port) else _hidden(word, bound)


def note_line(note: Finding) -> str:
    """What the user should know, with its place where it has one."""
    place = f"{note.path}:{note.place.line}:{note.place.column}: " if "." in note.path else ""
    rule = f" [{note.id}]" if note.id in IDS else ""  # what a comment or a flag can silence
    return f"{note.severity.value}: {place}{note.message}{rule}" + (f"; {note.fix}" if note.fix else "")


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 or noun == "ps" else f"{number} {noun}s"


def _printable(text: str) -> str:
    """A line feed or an escape in a value must not reach the terminal as one."""
    return text if text.isprintable() else json.dumps(text)
