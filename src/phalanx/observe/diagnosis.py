"""Where the time of a run goes, in words for a terminal: tasks, links, parameter servers, and what is slow."""

from __future__ import annotations

from collections.abc import Iterator

from phalanx.decide.pace import STRETCHES, LinkPace, Paces, Places, Samples, TaskPace, paces, weighty
from phalanx.decide.slowness import Look, look
from phalanx.names import TaskId, many, some
from phalanx.observe.ink import Ink
from phalanx.observe.table import columns
from phalanx.rates import milliseconds, per_second
from phalanx.records.folder import RunFolder
from phalanx.records.samples import read_samples
from phalanx.sample import LinkSample, LoadSample, TaskSample
from phalanx.states import RunState

#: How many tasks and links are shown: those with the longest own time, and the slowest.
ROWS = 20

_TASKS = ("task", "host", "a step", "computes", "collectives", "other", "cores", "sends", "receives")
_LINKS = ("link", "sends", "carries", "busy", "round trip")


def looked_back(state: RunState, folder: RunFolder) -> Look:
    """At a run that has ended, or that nobody leads: its newest generation, from beginning to end."""
    since = state.bound or state.started
    steps: dict[TaskId, list[TaskSample]] = {}
    loads: dict[TaskId, list[LoadSample]] = {}
    links: dict[tuple[TaskId, TaskId], list[LinkSample]] = {}
    for step in read_samples(folder.task_samples, TaskSample):
        if step.generation == state.generation:
            steps.setdefault(step.task, []).append(step)
    for load in read_samples(folder.load_samples, LoadSample):
        if load.generation == state.generation:
            loads.setdefault(load.task, []).append(load)
    for link in read_samples(folder.link_samples, LinkSample):
        if link.at >= since:
            links.setdefault(link.about, []).append(link)
    samples = Samples(steps=steps, loads=loads, links=links)
    return look(paces(samples, state.ended or 0.0), Places.of(state.tasks.values(), state.hosts.values()))


def render(seen: Look, *, width: int = 100, ink: Ink | None = None) -> str:
    """All of it, the verdicts last, where the eye is; empty where nothing was measured."""
    ink = ink or Ink()
    if not seen.paces.tasks:
        return ""
    lines = [*_tasks(seen.paces.tasks, seen.places, width, ink), *_links(seen.paces, width, ink), *_servers(seen.paces)]
    return "\n".join([*lines, *_verdicts(seen, ink)]) + "\n"


def _tasks(tasks: tuple[TaskPace, ...], places: Places, width: int, ink: Ink) -> Iterator[str]:
    shown = tasks if len(tasks) <= ROWS else sorted(tasks, key=lambda one: -(one.own or 0.0))[:ROWS]
    head, *lines = columns([_TASKS, *(_task(one, places) for one in shown)], width=width - 2)
    yield f"  {ink(head, 'dim')}"
    yield from (f"  {line}" for line in lines)
    if len(shown) < len(tasks):
        yield f"  … and {len(tasks) - len(shown)} more, which take less of their own: --json has them"


def _task(one: TaskPace, places: Places) -> tuple[str, ...]:
    host = places.hosts.get(one.task)
    other = None if host in places.gpus else one.waits
    computes = None if one.own is None else one.own - (other or 0.0)
    return (
        str(one.task),
        "-" if host is None else places.name(host),
        "-" if one.step is None else milliseconds(one.step),
        _part(computes, one.step),
        _part(one.collective, one.step),
        _part(other, one.step),
        "-" if one.cores is None else f"{one.cores:.2f}",
        "-" if one.sent is None else per_second(one.sent),
        "-" if one.received is None else per_second(one.received),
    )


def _part(seconds: float | None, step: float | None) -> str:
    if seconds is None or not step:
        return "-"
    return f"{milliseconds(seconds)} {seconds / step:.0%}"


def _links(paces: Paces, width: int, ink: Ink) -> Iterator[str]:
    links = sorted(weighty(paces.links), key=lambda one: one.carries or 0.0)
    if not links:
        return
    yield ""
    head, *lines = columns([_LINKS, *(_link(one) for one in links[:ROWS])], width=width - 2)
    yield f"  {ink(head, 'dim')}"
    yield from (f"  {line}" for line in lines)
    if len(links) > ROWS:
        yield f"  … and {len(links) - ROWS} that carry more"


def _link(one: LinkPace) -> tuple[str, ...]:
    return (
        f"{one.source} → {one.target}",
        per_second(one.rate),
        "-" if one.carries is None else per_second(one.carries),
        "-" if one.load is None else f"{one.load:.0%}",
        "-" if one.rtt is None else milliseconds(one.rtt),
    )


def _servers(paces: Paces) -> Iterator[str]:
    served = {one.task: (one.sent or 0.0) + (one.received or 0.0) for one in paces.tasks if one.task.type == "ps"}
    total = sum(served.values())
    if len(served) > 1 and total > 0:
        yield ""
        parts = ", ".join(f"{task} {bytes_ / total:.0%}" for task, bytes_ in [*served.items()][:ROWS])
        yield f"  parameter servers, by bytes: {parts} (even: {1 / len(served):.0%})"


def _verdicts(seen: Look, ink: Ink) -> Iterator[str]:
    yield ""
    if not seen.verdicts:
        yield f"  {_all_well(seen)}"
    for one in seen.verdicts:
        yield f"  {ink(one.says, 'yellow')}"
        yield f"    {one.advice}"


def _all_well(seen: Look) -> str:
    """What can be said when nothing is slow, no more."""
    owns = [one.own for one in seen.paces.tasks if one.own is not None]
    shares = [one.share for one in seen.paces.tasks if one.share is not None]
    if len(owns) > 1 and min(owns) > 0:
        spread = f"no task takes more than {max(owns) / min(owns):.1f}× what another does"  # noqa: RUF001 - a factor
        return f"nothing is slow: {spread}, and {min(shares):.0%} of a step is communication"
    missing = _missing([one for one in seen.paces.tasks if one.task.type not in ("ps", "evaluator")])
    if missing:
        return f"too little was measured to compare: {missing}"
    return "nothing is seen to be slow; no task tells how long it is in collectives, so none is compared"


def _missing(trains: list[TaskPace]) -> str:
    """Who counts no steps, and for how much longer the others must train; empty where nothing is missing."""
    mute = [str(one.task) for one in trains if one.step is None]
    words = []
    if mute:
        words.append(
            f"no step was counted of {some(mute, ROWS)} "
            "(some 10 s of training show it; without phalanx's runtime, never)"
        )
    for one in [one for one in trains if 0 < one.stretches < STRETCHES][:ROWS]:
        more = (STRETCHES - one.stretches) * one.seconds / one.stretches
        done = f"{many(one.steps, 'step')} in {one.seconds:.0f} s"
        words.append(f"of {one.task} {done}, and some {more:.0f} s more are needed")
    return "; ".join(words)
