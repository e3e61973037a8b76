"""A finding about a pod or a Job of a cluster: its cause, whose failure it is, in which words, and what to do."""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Mapping
from typing import Any

from phalanx.decide.exits import Kind
from phalanx.decide.podfields import text

#: Characters of the API's own words that a sentence takes.
_WORDS = 400


class Standing(enum.Enum):
    """What a finding means for the host that the pod is."""

    WAITS = "waits"  # it has not begun, and the reason is one that people should know
    AILS = "ails"  # it began, and may not be heard of again: it is being ended, or its node is silent
    GONE = "gone"  # its container has ended, or can never begin


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Seen:
    """One finding about one pod, or about a Job that has no pods."""

    #: Which one, in one word: `unschedulable`, `oom`, `image`, `evicted`; the same for the same reason.
    cause: str
    kind: Kind
    standing: Standing
    #: As said after the pod's name: `waits: 0/3 nodes are available: 3 Insufficient cpu`.
    says: str
    advice: str = ""


def found(cause: str, kind: Kind, standing: Standing, says: str, advice: str = "") -> Seen:
    """One finding."""
    return Seen(cause=cause, kind=kind, standing=standing, says=says, advice=advice)


def end_or_ails(status: Mapping[str, Any]) -> Standing:
    """A pod that is on its way out may still save; one whose phase is over has ended."""
    return Standing.GONE if status.get("phase") == "Failed" else Standing.AILS


def at_node(pod: Mapping[str, Any]) -> str:
    """Its node with a space before it; empty where it has none."""
    node = text((pod.get("spec") or {}).get("nodeName"))
    return f" {node}" if node else ""


def detail(message: str) -> str:
    """The API's own words with a colon before them; empty where there are none."""
    return f": {message}" if message else ""


def short(message: str) -> str:
    """In one line of some length."""
    line = " ".join(message.split())
    return line if len(line) <= _WORDS else f"{line[:_WORDS]}…"
