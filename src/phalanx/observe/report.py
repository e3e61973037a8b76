"""A report in words for a terminal: the result and the first failure on top, what to do next at the end."""

from __future__ import annotations

from collections.abc import Iterator

from phalanx.decide.exits import telling_line
from phalanx.noise import telling
from phalanx.observe.ink import Ink
from phalanx.observe.progress import loss_words, rate_words, share_words, sparkline
from phalanx.observe.table import columns
from phalanx.observe.words import COLOURS, NAMED, clock, duration, resumed_words, size, standbys, visible
from phalanx.records.lone import WARNING
from phalanx.records.produced import OutputReport
from phalanx.records.report import Report, TaskReport
from phalanx.states import RunPhase
from phalanx.taskstate import TaskPhase

#: How many tasks the table has; the ones that failed come first.
ROWS = 40
#: How many of the culprit's last lines are shown, and how many of each victim's.
CULPRIT_LINES, VICTIM_LINES = 12, 2

_HEADINGS = ("task", "host", "state", "start", "end", "ran", "step/s", "comm", "exit", "last line")
#: The columns that are left out where no task has anything in them, and how long a curve is at most.
_SOME, _CURVE = (6, 7), 40
#: Fewer points are no curve: of a run of seconds the end would be most of it.
_DRAWN = 5
_BAD = (TaskPhase.FAILED.value, TaskPhase.LOST.value, TaskPhase.VICTIM.value)


def render(report: Report, *, width: int = 100, ink: Ink | None = None, brief: bool = False) -> str:
    """The whole report, ending in a newline. `brief` leaves the table and the notes out."""
    ink = ink or Ink()
    parts = [_headline(report, ink), *_warnings(report, ink), *_past(report), *_cause(report, ink), *_kept(report)]
    if not brief:
        table = [*_table(report, width, ink), *_training(report, width)]
        parts += [*_slow(report, ink), "", *table, *_left(report, ink)]
    return "\n".join([*parts, *_next(report, ink)]) + "\n"


def _headline(report: Report, ink: Ink) -> str:
    colour = COLOURS.get(report.result, "cyan")
    took = f" after {duration(report.duration)}" if report.duration is not None else ""
    code = f" (exit code {report.exit_code})" if report.exit_code else ""
    generation = f", generation {report.generation}" if report.generation > 1 else ""
    step = f", at step {report.step}" if report.step is not None and report.exit_code is None else ""
    word = report.result if report.exit_code is not None or report.result == "lost" else f"is {report.result}"
    return f"{ink(report.run, 'bold')} {ink(word, 'bold', colour)}{took}{code}{generation}{step}"


def _warnings(report: Report, ink: Ink) -> Iterator[str]:
    """What qualifies the result stands beside it."""
    yield from (f"  {ink(note, 'yellow')}" for note in report.notes if note.startswith(WARNING))


def _past(report: Report) -> Iterator[str]:
    """Where it went on from; each failure on the way, in one line, and where the training went on after it."""
    if report.began is not None:
        yield f"  {resumed_words(report.began.path, report.began.step, report.began.lost)}"
    for past in report.past:
        who = f"{_names(past.tasks)} started again" if past.tasks else f"generation {past.number} ended"
        proof = past.resumed
        resumed = f"; then {resumed_words(proof.path, proof.step, proof.lost)}" if proof else ""
        why = f"{past.cause} ({past.restart})" if past.cause else past.restart
        yield f"  {who} after {duration(past.ended - past.bound)}: {why}{resumed}"


def _cause(report: Report, ink: Ink) -> Iterator[str]:
    """Who and why, with the last words of the culprit, else of whoever fell."""
    if report.result == RunPhase.SUCCEEDED.value:
        return
    if report.cause:
        yield f"  {ink(report.cause, 'red') if report.result == RunPhase.FAILED.value else report.cause}"
    if report.kind:
        yield f"  kind: {report.kind}"
    if report.victims:
        yield f"  victims: {_names(report.victims)}"
    culprit = next((task for task in report.tasks if task.task == report.culprit), None)
    if culprit is not None:
        yield from _words(culprit, CULPRIT_LINES, ink)
        return
    fallen = [task for task in report.tasks if task.state in _BAD or task.part]
    for task in fallen[:NAMED]:
        yield from _words(task, VICTIM_LINES, ink)


def _kept(report: Report) -> Iterator[str]:
    """What is left of a run that did not succeed."""
    left = report.kept
    if left is None:
        return
    if not left.path:
        yield f"  no checkpoint was seen: {_lost(left.lost or 0)}, unless the program has saved in a way of its own"
        return
    at = "" if left.step is None else f" at step {left.step}"
    lost = f"; {_lost(left.lost, ' after it')}" if left.lost else ""
    yield f"  last checkpoint: {left.path}{at}{lost}"


def _slow(report: Report, ink: Ink) -> Iterator[str]:
    """What held the training up, and for how long; the newest of those that came again and again."""
    if not report.slow:
        return
    yield "  slow:"
    newest = {(one.cause, one.task, one.peer, one.host): one for one in report.slow}
    for about, one in [*newest.items()][:NAMED]:
        lasted = f"for {duration(one.ended - one.found)}" if one.ended is not None else f"since {clock(one.found)}"
        times = sum((each.cause, each.task, each.peer, each.host) == about for each in report.slow)
        again = f", {times} times" if times > 1 else ""
        yield f"    {ink(one.says, 'yellow')} ({lasted}{again})"
        if one.advice:
            yield f"      {one.advice}"


def _lost(count: int, where: str = "") -> str:
    return f"1 step{where} is lost" if count == 1 else f"{count} steps{where} are lost"


def _words(task: TaskReport, count: int, ink: Ink) -> Iterator[str]:
    lines = [visible(line) for line in task.last_lines]
    while lines and not lines[-1].strip():
        lines.pop()
    if not lines:
        return
    yield ""
    yield f"  the last lines of {task.task}:"
    for line in lines[-count:]:
        yield f"    {ink('|', 'dim')} {line}".rstrip()
    if task.raised:
        at = f", at {visible(task.raised_at)}" if task.raised_at else ""
        yield f"    the exception{at}: {visible(task.error_file)}" if task.error_file else f"    the exception{at}"
    if task.logs:
        yield "    " + ink(", ".join(f"{log.path} ({size(log.bytes)})" for log in task.logs if log.bytes), "dim")


def _table(report: Report, width: int, ink: Ink) -> Iterator[str]:
    tasks = sorted(report.tasks, key=lambda task: (task.part != "culprit", task.state not in _BAD))
    if len(tasks) <= ROWS:
        tasks = list(report.tasks)
    rows = [_row(task) for task in tasks[:ROWS]]
    empty = [column for column in _SOME if not any(row[column] for row in rows)]
    rows = [tuple(cell for n, cell in enumerate(row) if n not in empty) for row in (_HEADINGS, *rows)]
    head, *lines = columns(rows, width=width - 2)
    yield f"  {ink(head, 'dim')}"
    for task, line in zip(tasks, lines, strict=False):
        yield f"  {ink(line, *_colour(task))}"
    if len(tasks) > ROWS:
        yield f"  … and {len(tasks) - ROWS} more: phalanx report {report.run} --json"


def _row(task: TaskReport) -> tuple[str, ...]:
    return (
        task.task,
        task.host or "-",
        f"{task.state}, first" if task.part == "culprit" else task.state,
        clock(task.started) if task.started else "-",
        clock(task.ended) if task.ended else "-",
        duration(task.duration) if task.duration is not None else "-",
        rate_words(task.training.steps_per_second) if task.training else "",
        share_words(task.training.collective_share) if task.training else "",
        task.signal or ("-" if task.exit_code is None else str(task.exit_code)),
        _said(task),
    )


def _said(task: TaskReport) -> str:
    """A task that did well prints its result on stdout; one that did not explains itself on stderr."""
    if task.refused:
        return task.refused
    if task.state in _BAD and (said := telling_line([visible(line) for line in task.explained])):
        return said
    lines = [visible(line).strip() for line in (task.last_output, *reversed(task.last_lines))]
    return next((line for line in telling(line for line in lines if line)), "")


def _colour(task: TaskReport) -> tuple[str, ...]:
    if task.part == "culprit" or task.state in (TaskPhase.FAILED.value, TaskPhase.LOST.value):
        return ("red",)
    return ("yellow",) if task.part == "victim" else ()


def _training(report: Report, width: int) -> Iterator[str]:
    """The loss and the speed over time, of the first task that tells of them, in its newest attempt."""
    task = next((task for task in report.tasks if task.training is not None), None)
    if task is None or task.training is None:
        return
    about = (task.task, task.generation, task.attempt)
    curve = next((one for one in report.curves if (one.task, one.generation, one.attempt) == about), None)
    room, told = max(min(width - 40, _CURVE), 0), task.training
    drawn = curve is not None and len(curve.at) >= _DRAWN
    lines = []
    if told.epoch is not None:
        left = f", {duration(told.left)} left" if told.left is not None else ""
        lines.append(f"  epoch   {told.epoch}/{told.epochs}{left}" if told.epochs else f"  epoch   {told.epoch}{left}")
    if told.last_loss is not None:
        span = " → ".join(dict.fromkeys((loss_words(told.first_loss), loss_words(told.last_loss))))
        losses = [None if loss is None else float(loss) for loss in curve.loss] if curve and drawn else []
        lines.append(f"  loss    {span}  {sparkline(losses, room)}".rstrip())
    if told.steps_per_second is not None:
        rates = curve.steps_per_second if curve and drawn else ()
        lines.append(f"  step/s  {rate_words(told.steps_per_second)}  {sparkline(rates, room)}".rstrip())
    if lines:
        yield ""
        yield f"  training, as {task.task} tells it:"
        yield from (f"  {line}" for line in lines)


def _left(report: Report, ink: Ink) -> Iterator[str]:
    """What else there is: lost hosts, outputs, notes, the folder."""
    lost = [host for host in report.hosts if host.lost and host.name not in report.cause]
    lines = [f"host {host.name} was lost: {host.lost}" for host in lost]
    if report.exit_code is None and (count := sum(host.standbys for host in report.hosts)):
        lines.append(f"{standbys(count, sum(host.standby_bytes for host in report.hosts))} for the next generation")
    lines += [_output(out, ink) for out in report.outputs if out.there is not None or report.exit_code is not None]
    lines += [f"note: {note}" for note in report.notes if not note.startswith(WARNING)]
    if lines:
        yield ""
        yield from (f"  {line}" for line in lines)
    yield ""
    yield f"  logs and records: {report.folder}"


def _output(output: OutputReport, ink: Ink) -> str:
    if output.there is None:
        return f"output {output.path} was not looked for: {output.why}"
    if not output.there or output.newest is None:
        return f"output {output.path} is {ink('missing', 'yellow')}"
    many = f"{output.count} of them, " if output.count > 1 else ""
    when = f"written {clock(output.newest)}" if output.fresh else ink("older than this run", "yellow")
    return f"output {output.path}: {many}{size(output.bytes)}, {when}"


def _next(report: Report, ink: Ink) -> Iterator[str]:
    for number, step in enumerate(report.next_steps):
        yield f"  {'next: ' if number == 0 else '      '}{ink(step, 'cyan') if step.startswith('phalanx ') else step}"


def _names(names: tuple[str, ...]) -> str:
    if len(names) > NAMED:
        return f"{len(names)} tasks ({names[0]} … {names[-1]})"
    return ", ".join(names)
