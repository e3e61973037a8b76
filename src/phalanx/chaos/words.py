"""A story as people read it."""

from __future__ import annotations

from collections.abc import Sequence

from phalanx.chaos.story import Story
from phalanx.chaos.watch import Outcome, Told
from phalanx.names import many

_GAP = "  "


def render(story: Story) -> str:
    """A table of faults, how the run ended, and whether it came to the same as undisturbed."""
    head = ("at", "fault", "detected", "recovered", "outcome")
    rows = [head, *(_row(told) for told in story.told)]
    lines = [f"chaos on {story.run}: {many(len(story.told), 'fault')}, seed {story.seed}", *_table(rows), ""]
    # Why the run has ended stands at its end.
    lines += [f"  {told.fault}: {told.why}" for told in story.told if told.why and told.outcome is not Outcome.ENDED]
    cause = f", {story.cause}" if story.cause else ""
    again = f" after {many(story.restarts, 'restart')}" if story.restarts else ""
    calm = f" (undisturbed {story.reference_took:.1f} s)" if story.reference_took is not None else ""
    lines.append(f"{story.run} {story.result}{again} in {story.took:.1f} s{calm}{cause}")
    if story.comparison is not None:
        lines.append(_compared(story))
    bad = f"not as it should be; phalanx report {story.run}"
    lines.append("every fault was taken as it should be" if story.good else bad)
    return "\n".join(lines) + "\n"


def _compared(story: Story) -> str:
    comparison = story.comparison
    if comparison is None:
        return ""
    if comparison.equal:
        return f"same result as {story.reference}: {many(comparison.lines, 'line')}, the last `{comparison.last}`"
    return f"another result than {story.reference}: {comparison.difference}"


def _row(told: Told) -> tuple[str, ...]:
    blamed = f" ({told.blamed} blamed)" if told.outcome.value == "misblamed" else ""
    sign = f" {told.sign}" if told.sign else ""
    return (
        _seconds(told.struck, 1),
        str(told.fault),
        _seconds(told.detected, 2) + sign,
        _seconds(told.recovered, 2),
        told.outcome.value + blamed,
    )


def _table(rows: Sequence[tuple[str, ...]]) -> list[str]:
    wide = [max(len(row[n]) for row in rows) for n in range(len(rows[0]))]
    return ["  " + _GAP.join(cell.ljust(wide[n]) for n, cell in enumerate(row)).rstrip() for row in rows]


def _seconds(value: float | None, digits: int) -> str:
    return "-" if value is None else f"{value:.{digits}f} s"
