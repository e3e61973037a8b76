"""Whether two runs came to the same: what their leaders printed, to the last digit or within a tolerance. Pure."""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Sequence

#: A number with a fraction or an exponent: a result. Whole numbers (epochs, steps) are labels.
_RESULT = re.compile(r"[-+]?(?:\d+\.\d*|\.\d+|\d+)(?:[eE][-+]?\d+)|[-+]?\d+\.\d*|[-+]?\.\d+|\b(?:nan|inf)\b")


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Comparison:
    """`lines` were compared; `difference` says where the two part first, empty where they do not."""

    lines: int
    last: str
    difference: str = ""

    @property
    def equal(self) -> bool:
        """Whether they came to the same."""
        return not self.difference


def compare(calm: str, hit: str, *, pattern: str = "", tolerance: float = 0.0) -> Comparison:
    """What an undisturbed leader printed against one that was hit: the last line, and each in which `pattern` is found.

    A line that comes again (an epoch that was done twice) has to say the same each time. `tolerance` is the largest
    difference of two results, absolute or relative to the larger; 0 wants the same digits.
    """
    theirs, ours = _lines(calm), _lines(hit)
    last = theirs[-1] if theirs else ""
    if not theirs or not ours:
        who = "the undisturbed run" if not theirs else "the run"
        return Comparison(lines=0, last=last, difference=f"{who} printed nothing")
    if pattern:
        found = re.compile(pattern)
        chosen = [line for line in theirs if found.search(line)]
        again = [line for line in ours if found.search(line)]
        if not chosen:
            return Comparison(lines=0, last=last, difference=f"no line of the undisturbed run matches {pattern}")
        difference = _part(chosen, again, tolerance)
        if difference:
            return Comparison(lines=len(chosen), last=last, difference=difference)
        count = len(dict.fromkeys(chosen))
    else:
        count = 0
    return Comparison(lines=count + 1, last=last, difference=_part([last], [ours[-1]], tolerance))


def _part(calm: Sequence[str], hit: Sequence[str], tolerance: float) -> str:
    """Where they part first; empty where they do not."""
    wanted = {_label(line): line for line in calm}
    seen = set()
    for line in hit:
        label = _label(line)
        if label not in wanted:
            near = f" instead of `{wanted[next(iter(wanted))]}`" if len(wanted) == 1 else ""
            return f"`{line}`{near}, which the undisturbed run did not print"
        seen.add(label)
        if not _same(wanted[label], line, tolerance):
            return f"`{line}` instead of `{wanted[label]}`"
    missing = next((line for label, line in wanted.items() if label not in seen), None)
    return f"`{missing}` is missing" if missing is not None else ""


def _same(calm: str, hit: str, tolerance: float) -> bool:
    if calm == hit:
        return True
    pairs = zip(map(float, _RESULT.findall(calm)), map(float, _RESULT.findall(hit)), strict=True)
    return tolerance > 0 and all(math.isclose(a, b, rel_tol=tolerance, abs_tol=tolerance) for a, b in pairs)


def _label(line: str) -> str:
    return _RESULT.sub("#", line)


def _lines(text: str) -> list[str]:
    return [line.rstrip() for line in text.splitlines() if line.strip()]
