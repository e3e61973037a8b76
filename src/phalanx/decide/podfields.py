"""Reading the API's JSON: what is not there, or is something else than it should be, is nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any


def text(value: Any) -> str:
    """The string, or nothing."""
    return value if isinstance(value, str) else ""


def entries(where: Mapping[str, Any], name: str) -> list[Mapping[str, Any]]:
    """The objects in that list."""
    found = where.get(name)
    return [one for one in found if isinstance(one, Mapping)] if isinstance(found, list) else []


def conditions(status: Mapping[str, Any], kind: str) -> list[Mapping[str, Any]]:
    """The conditions of that type."""
    return [one for one in entries(status, "conditions") if one.get("type") == kind]


def true_condition(status: Mapping[str, Any], kind: str) -> Mapping[str, Any] | None:
    """The condition of that type, where it holds."""
    return next((one for one in conditions(status, kind) if one.get("status") == "True"), None)


def event_message(events: Sequence[Mapping[str, Any]], reason: str, about: Mapping[str, Any]) -> str:
    """What the newest event of that reason says about this object; empty where there is none."""
    uid = (about.get("metadata") or {}).get("uid")
    found = [
        one
        for one in events
        if one.get("reason") == reason and (not uid or (one.get("involvedObject") or {}).get("uid") == uid)
    ]
    newest = max(found, key=_when, default=None)
    return text(newest.get("message")) if newest is not None else ""


def _when(event: Mapping[str, Any]) -> str:
    """Times of the API are of one form and in UTC, so they are in order as text."""
    series = event.get("series") or {}
    return (
        text(series.get("lastObservedTime"))
        or text(event.get("lastTimestamp"))
        or text(event.get("eventTime"))
        or text((event.get("metadata") or {}).get("creationTimestamp"))
    )
