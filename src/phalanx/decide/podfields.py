"""Reading the API's JSON: what is not there, or is something else than it should be, is nothing."""

from __future__ import annotations

import calendar
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from phalanx.plan.marks import CONTAINER, INDEX, ROLE


def text(value: Any) -> str:
    """The string, or nothing."""
    return value if isinstance(value, str) else ""


def entries(where: Mapping[str, Any], name: str) -> list[Mapping[str, Any]]:
    """The objects in that list."""
    found = where.get(name)
    return [one for one in found if isinstance(one, Mapping)] if isinstance(found, list) else []


def name_of(about: Mapping[str, Any]) -> str:
    """What the object is called."""
    return str((about.get("metadata") or {}).get("name") or "")


def uid_of(about: Mapping[str, Any]) -> str:
    """What no other object ever has."""
    return str((about.get("metadata") or {}).get("uid") or "")


def labels_of(about: Mapping[str, Any]) -> Mapping[str, Any]:
    """Its labels."""
    found: Mapping[str, Any] = (about.get("metadata") or {}).get("labels") or {}
    return found


def created_at(about: Mapping[str, Any]) -> float | None:
    """When it was made, in Unix seconds; None where nobody says."""
    made = str((about.get("metadata") or {}).get("creationTimestamp") or "")
    try:
        return float(calendar.timegm(time.strptime(made, "%Y-%m-%dT%H:%M:%SZ")))
    except ValueError:
        return None


def own_status(pod: Mapping[str, Any]) -> Mapping[str, Any]:
    """The status of the container in which the agent is; empty where there is none yet."""
    told = entries(pod.get("status") or {}, "containerStatuses")
    return next((one for one in told if one.get("name") == CONTAINER), {})


def host_number(pod: Mapping[str, Any], roles: Iterable[Sequence[Any]]) -> int | None:
    """The number of the host that the pod is; None for a pod that is none.

    `roles`: as in `pod.json`, each with the number of its first host.
    """
    labels = labels_of(pod)
    index = str(labels.get(INDEX, ""))
    first = next((int(first) for role, first, *_ in roles if role == labels.get(ROLE)), None)
    return first + int(index) if first is not None and index.isdecimal() else None


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
