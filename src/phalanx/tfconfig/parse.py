"""From text to a TfConfig, with line and column of whatever is wrong with it."""

from __future__ import annotations

import dataclasses
from typing import Any

from phalanx.tfconfig.finding import Finding, Place
from phalanx.tfconfig.jsontext import Document, Spans, read
from phalanx.tfconfig.meaning import understand
from phalanx.tfconfig.model import TfConfig
from phalanx.tfconfig.rule import Case, in_order, judge, place
from phalanx.tfconfig.rules import shape, syntax


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Parsed:
    """A text and what it says.

    `findings` are the complaints about syntax and shape, in the order of the text. `config` is what was meant, as far
    as that is plain, also where a finding says that TensorFlow would refuse the text; None where it cannot be
    understood. `case` is what `check` goes on from. An unset variable is a text of None and an empty config.
    """

    text: str | None
    path: str
    config: TfConfig | None
    findings: tuple[Finding, ...]
    case: Case

    @property
    def raw(self) -> Any:
        """The decoded JSON; None where it cannot be decoded."""
        return self.case.document.value

    def place(self, pointer: str, *, key: bool = False) -> Place:
        """Where the value of a JSON pointer (or its key) stands; the nearest one above it where there is none.

        The first question reads the text anew, O(length); later ones are cheap.
        """
        return place(self.case.document, pointer, key=key)


def parse(text: str | None, *, path: str = "") -> Parsed:
    """Read a TF_CONFIG; None is a variable that is not set. `path` is what findings call it. Never raises."""
    document = _UNSET if text is None else read(text)
    meaning = understand(document.value)
    case = Case(document=document, meaning=meaning)
    findings = judge(syntax.RULES, case, path)
    if document.readable:
        findings += judge(shape.RULES, case, path)
    config = meaning.config if document.readable and meaning.sound else None
    return Parsed(text=text, path=path, config=config, findings=in_order(findings), case=case)


_UNSET = Document(text="", value={}, readable=True, complaints=(), spans=Spans(text=""))
