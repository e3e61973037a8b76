"""One thing a rule has to say about a TF_CONFIG or a script: where, what follows, what to do."""

from __future__ import annotations

import dataclasses
import enum


class Severity(enum.Enum):
    """How much it matters: an error stops or cripples the job, a warning may, an info explains."""

    ERROR = "error"
    WARNING = "warning"
    INFO = "info"

    @property
    def weight(self) -> int:
        """3 for error, 2 for warning, 1 for info, so that severities compare."""
        return {"error": 3, "warning": 2, "info": 1}[self.value]


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Place:
    """Where in the text, counted from 1 as editors do; `length` in characters, for the underline."""

    line: int = 1
    column: int = 1
    length: int = 1


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Finding:
    """What one rule found once.

    `path` is the file (or `$TF_CONFIG`, or `-` for standard input), `pointer` the JSON pointer inside it.
    `consequence` says what TensorFlow would do, `fix` what to write instead, `source` where the knowledge is from.
    """

    id: str
    severity: Severity
    message: str
    consequence: str = ""
    fix: str = ""
    source: str = ""
    path: str = ""
    pointer: str = ""
    place: Place = Place()
