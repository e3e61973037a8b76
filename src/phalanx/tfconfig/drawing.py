"""The cluster as a drawing for the terminal: a box per host, the chief marked, ps and evaluator apart. Pure text."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from phalanx.names import KNOWN_TYPES, TaskId
from phalanx.tfconfig.quote import printable

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from phalanx.tfconfig.explain import Explanation, Host

#: A role of more tasks than this shows its first and its last and says how many stand between.
SHOWN = 8


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class _Pen:
    """The characters to draw with: corners, edges, marks, arrows."""

    corners: tuple[str, str, str, str]
    across: str
    down: str
    chief: str
    here: str
    both_ways: str
    more: str


_UNICODE = _Pen(
    corners=("┌", "┐", "└", "┘"), across="─", down="│", chief="★", here="◀ this task", both_ways="⇅", more="…"
)
_ASCII = _Pen(
    corners=("+", "+", "+", "+"), across="-", down="|", chief="*", here="<- this task", both_ways="|", more="..."
)


def draw(explanation: Explanation, *, width: int = 80, ascii_only: bool = False) -> str:
    """The cluster in at most `width` columns (boxes of one host may be wider when its name is), lines end in newline.

    Who trains stands on top, then the parameter servers, the evaluator and extra roles. `ascii_only` is for terminals
    that cannot show box characters. An empty cluster gives one box.
    """
    pen = _ASCII if ascii_only else _UNICODE
    if not explanation.hosts:
        return "\n".join(_box("this process", [f"{pen.chief} trains alone"], pen)) + "\n"
    lines: list[str] = []
    for title, kinds in _groups(explanation):
        if lines:
            lines.append("")
        lines.append(title)
        lines += _group(explanation, kinds, width=width, pen=pen)
        lines += [f"  {pen.both_ways} {text}" for text in _between(explanation, kinds)]
    return "".join(f"{line}\n" for line in lines)


def _groups(explanation: Explanation) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Titles and the task types that stand under them; only those that are there."""
    others = tuple(kind for kind in explanation.counts if kind not in KNOWN_TYPES)
    titles = {
        "training": ("chief", "worker"),
        "parameter servers": ("ps",),
        "evaluator": ("evaluator",),
        "other types": others,
    }
    for title, kinds in titles.items():
        if any(explanation.counts.get(kind) for kind in kinds):
            yield title, kinds


def _between(explanation: Explanation, kinds: tuple[str, ...]) -> Iterator[str]:
    """What passes between the tasks of a group at each step."""
    if "worker" not in kinds:
        return
    if explanation.strategy == "ps" or (explanation.strategy == "estimator" and explanation.counts.get("ps")):
        if explanation.counts.get("ps"):
            yield "each worker reads the variables and sends its gradients"
    elif len(explanation.replicas) > 1 and not explanation.counts.get("ps"):
        yield f"all-reduce among {len(explanation.replicas):,} replicas at each step: each waits for the slowest"


def _group(explanation: Explanation, kinds: tuple[str, ...], *, width: int, pen: _Pen) -> Iterator[str]:
    """The boxes of the hosts that carry these types, in rows; then a line for each type that was shortened."""
    shown: set[TaskId] = set()
    hidden: list[str] = []
    for kind in kinds:
        tasks = [m.task for host in explanation.hosts for m in host.members if m.task.type == kind]
        tasks.sort()
        cut = tasks[SHOWN - 2 : -1] if len(tasks) > SHOWN else []
        cut = [task for task in cut if task != explanation.config.task]
        shown.update(set(tasks) - set(cut))
        if cut:
            hidden.append(f"  {pen.more} and {len(cut):,} more between {cut[0]} and {cut[-1]}")
    ranks = {task: rank for rank, task in enumerate(explanation.replicas)}
    boxes = [
        _box(host.name, texts, pen)
        for host in explanation.hosts
        if (texts := _texts(explanation, host, shown, ranks, pen))
    ]
    yield from _rows(boxes, width)
    yield from hidden


def _texts(explanation: Explanation, host: Host, shown: set[TaskId], ranks: dict[TaskId, int], pen: _Pen) -> list[str]:
    members = [member for member in host.members if member.task in shown]
    names = max((len(str(member.task)) for member in members), default=0)
    texts = []
    for member in members:
        leads = member.task == explanation.chief and (explanation.strategy != "ps" or member.task.type == "chief")
        mark = pen.chief if leads else " "
        rank = f"  rank {ranks[member.task]}" if member.task in ranks and explanation.strategy != "ps" else ""
        port = "no port" if member.port is None else f":{member.port}"
        here = f"  {pen.here}" if member.task == explanation.config.task else ""
        texts.append(f"{mark} {member.task!s:<{names}}  {port}{rank}{here}")
    return texts


def _box(title: str, texts: Sequence[str], pen: _Pen) -> list[str]:
    title = printable(title)
    inner = max(len(title) + 2, *(len(text) + 1 for text in texts))
    top_left, top_right, low_left, low_right = pen.corners
    return [
        f"{top_left}{pen.across}{f' {title} ':{pen.across}<{inner}}{top_right}",
        *(f"{pen.down} {text:<{inner}}{pen.down}" for text in texts),
        f"{low_left}{pen.across * (inner + 1)}{low_right}",
    ]


def _rows(boxes: Sequence[list[str]], width: int) -> Iterator[str]:
    """Boxes side by side while they fit, topped alike."""
    row: list[list[str]] = []
    for box in boxes:
        if row and sum(len(b[0]) + 2 for b in row) + len(box[0]) > width:
            yield from _beside(row)
            row = []
        row.append(box)
    if row:
        yield from _beside(row)


def _beside(row: Sequence[list[str]]) -> Iterator[str]:
    for i in range(max(len(box) for box in row)):
        yield "  ".join(box[i] if i < len(box) else " " * len(box[0]) for box in row).rstrip()
