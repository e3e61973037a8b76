"""The whole of one `phalanx chaos`: what was done, what became of it, and whether the result is the same."""

from __future__ import annotations

import dataclasses
from typing import Any

from phalanx.chaos.compare import Comparison
from phalanx.chaos.watch import Told

#: Raised when a reader of `chaos.json` could misread it.
VERSION = 1


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Story:
    """Everything in it is plain data. Seconds everywhere."""

    run: str
    folder: str
    seed: int
    #: How the run ended; `running` where it goes on.
    result: str
    cause: str
    told: tuple[Told, ...]
    #: Of the group, or of some tasks of it.
    restarts: int
    took: float
    #: The undisturbed run: its id, how it ended, how long it took; None where there was none.
    reference: str | None = None
    reference_result: str = ""
    reference_took: float | None = None
    comparison: Comparison | None = None

    @property
    def good(self) -> bool:
        """Every fault ended in success or in the one expected root cause, and the result is the same."""
        faults = all(told.outcome.good for told in self.told)
        same = self.comparison is None or self.comparison.equal
        ended = any(told.outcome.value == "ended" for told in self.told)
        return faults and same and (ended or self.result in ("succeeded", "running"))

    def to_json(self) -> dict[str, Any]:
        """`chaos.json`: every field, `version` first, faults as they are written."""
        plain = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        plain["told"] = [
            {
                "kind": told.fault.kind,
                "target": told.fault.target,
                "value": told.fault.value,
                "outcome": told.outcome.value,
                "good": told.outcome.good,
                **{name: getattr(told, name) for name in ("struck", "detected", "sign", "recovered", "blamed", "why")},
            }
            for told in self.told
        ]
        plain["faults"] = plain.pop("told")
        comparison = self.comparison
        plain["comparison"] = (
            None if comparison is None else {**dataclasses.asdict(comparison), "equal": comparison.equal}
        )
        return {"version": VERSION, "good": self.good, **plain}
