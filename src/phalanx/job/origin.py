"""Where each value of a job came from, so that a complaint points at the file's line or at the flag."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from phalanx.job.complaint import Complaint, Loc
from phalanx.job.tree import Tree
from phalanx.tfconfig.finding import Finding, Place, Severity


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Origin:
    """The file, if there is one, and the flags laid over it."""

    tree: Tree | None
    flags: Mapping[Loc, str]

    def complaint(self, loc: Loc, message: str) -> Complaint:
        """The message with its place: a flag, else a line of the file, else none."""
        if flag := self._flag(loc):
            return Complaint(message=message, source=flag)
        return self.tree.complaint(loc, message) if self.tree is not None else Complaint(message=message, source="")

    def finding(self, loc: Loc, rule: str, severity: Severity, message: str, fix: str = "") -> Finding:
        """The same for what is no mistake."""
        at = self.complaint(loc, message)
        place = Place(line=at.line or 1, column=at.column or 1)
        return Finding(id=rule, severity=severity, message=message, fix=fix, path=at.source, place=place)

    def _flag(self, loc: Loc) -> str | None:
        while loc:
            if loc in self.flags:
                return self.flags[loc]
            loc = loc[:-1]
        return None
