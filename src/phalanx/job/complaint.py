"""One mistake of a declaration and where it stands; several of them as one error."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from phalanx.errors import InputError
from phalanx.tfconfig.quote import printable

#: The path of a value inside the job: `("roles", "worker", "count")`, `("command", 3)`.
Loc = tuple[str | int, ...]

#: Characters of one message, and mistakes of one file, that are printed.
_LONGEST = 600
_MOST = 100


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Complaint:
    """One mistake in plain words.

    `source` is the file, the flag that said it, or empty for the command itself; line and column count from 1.
    """

    message: str
    source: str
    line: int | None = None
    column: int | None = None

    def __str__(self) -> str:
        place = f":{self.line}:{self.column}" if self.line is not None else ""
        said = printable(self.message)
        said = said if len(said) <= _LONGEST else said[: _LONGEST - 1] + "…"
        return f"{printable(self.source)}{place}: {said}" if self.source else said


class JobFileError(InputError):
    """The declaration cannot be used: the file, or the flags over it. Carries every mistake, in the file's order."""

    def __init__(
        self, complaints: Sequence[Complaint], *, hint: str | None = None, of: str = "the declaration"
    ) -> None:
        """At least one complaint; several are printed a line each under their number, the first hundred."""
        self.complaints = tuple(sorted(complaints, key=lambda one: (one.line or 0, one.column or 0)))
        count = len(self.complaints)
        lines = [f"{count} mistakes in {of}"] if count > 1 else []
        lines += [str(complaint) for complaint in self.complaints[:_MOST]]
        if count > _MOST:
            lines.append(f"and {count - _MOST:,} more")
        super().__init__("\n".join(lines), hint=hint)


def dotted(loc: Loc) -> str:
    """`roles.worker.count`, `command[3]`."""
    text = ""
    for part in loc:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
    return text
