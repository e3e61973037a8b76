"""What somebody meant by a key or task type that TensorFlow does not know."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import NamedTuple

from phalanx.names import KNOWN_TYPES


class Guess(NamedTuple):
    """A known word; `sure` where it can mean nothing else: another case, a plural, the word of a known dialect."""

    word: str
    sure: bool


#: Words of other programs and versions, without case and punctuation (R06, R08, R11).
TYPES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "chief": ("master", "chiefs", "masters", "chiefhosts", "masterhosts", "chiefworker"),
        "worker": ("workers", "workerhosts", "workerhost"),
        "ps": ("pss", "pshosts", "pshost", "parameterserver", "parameterservers", "paramserver"),
        "evaluator": ("eval", "evaluators", "evaluatorhosts"),
    }
)
TOP: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {"cluster": ("clusters", "clusterspec", "clusterdef"), "task": ("tasks", "taskinfo")}
)
TASK: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "type": ("types", "tasktype", "jobname", "role"),
        "index": ("indices", "taskindex", "taskid", "id", "idx"),
    }
)

#: How alike two words must be, as difflib counts.
_ALIKE = 0.74
_SHORT = 3


def guess(word: str, known: Mapping[str, Iterable[str]]) -> Guess | None:
    """The known word that `word` stands for; None where it is like none of them."""
    plain = "".join(c for c in word.casefold() if c.isalnum())
    for right, others in known.items():
        if plain == right or plain in others:
            return Guess(right, sure=True)
    for right in known:
        if len(right) > _SHORT and right in plain:
            return Guess(right, sure=False)
    import difflib  # noqa: PLC0415 - only a mistyped word needs it

    close = difflib.get_close_matches(plain, known, n=1, cutoff=_ALIKE)
    return Guess(close[0], sure=False) if close else None


def guess_type(word: str) -> Guess | None:
    """The task type that `word` stands for; None for a known type and for one like none."""
    return None if word in KNOWN_TYPES else guess(word, TYPES)
