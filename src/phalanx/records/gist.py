"""A report in a few whole sentences, where there is room for no more: the most telling first."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from phalanx.spans import span


def gist(report: Mapping[str, Any], room: int) -> str:
    """The report (as in `report.json`) in at most `room` bytes: as many lines as fit, none of them cut in the middle
    but the first; empty where there is no report.
    """
    text = b""
    for line in _lines(report):
        data = line.encode()
        if not text:
            text = data if len(data) < room else data[: room - 4].decode(errors="ignore").encode() + "…".encode()
        elif len(text) + len(data) < room:
            text += b"\n" + data
        else:
            break
    return text.decode()


def _lines(report: Mapping[str, Any]) -> Iterator[str]:
    if not report:
        return
    after = f" after {span(report['duration'])}" if report.get("duration") is not None else ""
    cause = f": {report['cause']}" if report.get("cause") else ""
    yield f"{report['run']} {report['result']}{after}{cause}"
    if report.get("culprit"):
        host = f" on {report['culprit_host']}" if report.get("culprit_host") else ""
        kind = f" ({report['kind']})" if report.get("kind") else ""
        yield f"first to fail: {report['culprit']}{host}{kind}"
    if report.get("step") is not None:
        yield f"training steps: {report['step']}"
    if (kept := report.get("kept")) and kept.get("path"):
        yield f"kept: {kept['path']}"
    yield from (f"next: {step}" for step in report.get("next_steps", ()))
    for task in report.get("tasks", ()):
        if task["task"] == report.get("culprit"):
            yield from (f"{task['task']} | {line}" for line in task.get("last_lines", ())[-8:])
    for past in report.get("past", ()):
        yield f"before, in generation {past['number']}: {past['cause']}; {past['restart']}"
    for task in report.get("tasks", ()):
        if task["task"] != report.get("culprit"):
            last = f": {task['last_output']}" if task.get("last_output") else ""
            yield f"{task['task']} {task['state']}{last}"
    yield from report.get("notes", ())
