"""Following objects of a Kubernetes API: what there is, then each change, whatever breaks in between.

Knows no client: the lead brings one of the standard library, the command line another. A list that is asked for anew
says of everything that is there again that it is there; what has gone in the meantime is told as gone.
"""

from __future__ import annotations

import dataclasses
import json
import random
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Protocol

#: Seconds before a second try, doubled up to the longest.
FIRST, LONGEST = 0.5, 8.0

#: Seconds after which the server ends a watch by itself, and for how long it may say nothing: bookmarks come once a
#: minute, so that a connection whose other end is gone is found out.
WATCH, QUIET = 240, 100.0

#: Objects in one piece of a list.
_PIECE = 500

GONE, TOO_MANY, TIME_OUT = 410, 429, 504
#: What may be otherwise in a moment: too many requests, a server that starts, ends, or waits for another.
PASSING = frozenset({408, TOO_MANY, 500, 502, 503, TIME_OUT})


class ApiRefusedError(Exception):
    """The API's answer is none of success. `status` 0: there was no answer."""

    def __init__(self, status: int, message: str, *, retry_after: float = 0.0) -> None:
        """`retry_after`: seconds for which the server wants to be left alone."""
        super().__init__(message)
        self.status, self.retry_after = status, retry_after

    @property
    def passing(self) -> bool:
        """Whether the same request may well succeed later."""
        return self.status == 0 or self.status in PASSING


class Api(Protocol):
    """What a watch needs of a client. Both raise ApiRefusedError."""

    def get(self, path: str, query: Mapping[str, str]) -> dict[str, Any]:
        """One object or list."""
        ...

    def lines(self, path: str, query: Mapping[str, str], *, quiet: float) -> Iterator[bytes]:
        """The lines of an answer as they come; ends with the answer, or raises where nothing came for `quiet` s."""
        ...


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Change:
    """One thing to know: an object as it is, or was when it went; a list that is complete; or trouble."""

    object: Mapping[str, Any] | None = None
    gone: bool = False
    #: Everything that there is has been told.
    listed: bool = False
    #: Why nothing is heard for now; it is tried again.
    trouble: ApiRefusedError | None = None


def changes(
    api: Api,
    path: str,
    query: Mapping[str, str],
    *,
    wait: Callable[[float], bool],
    draw: Callable[[], float] = random.random,
) -> Iterator[Change]:
    """Never ends by itself, and never raises but for what cannot pass: 401, 403, 404.

    `wait(seconds)` sleeps, and says whether to stop. `draw` gives numbers in [0, 1) that keep many clients apart.
    """
    known: dict[str, Mapping[str, Any]] = {}
    since, failed = "", 0
    while not wait(0.0):
        try:
            if not since:
                found, since = _list(api, path, query)
                yield from _compared(known, found)
            for change, version in _watch(api, path, query, since, known):
                since, failed = version, 0
                if change is not None:
                    yield change
            failed = 0
        except ApiRefusedError as wrong:
            if wrong.status == GONE:
                since = ""
            elif not wrong.passing:
                raise
            failed += 1
            if wrong.status == GONE and failed == 1:
                continue  # anew at once; a server that says so again and again is left alone for longer
            yield Change(trouble=wrong)
            if wait(max(wrong.retry_after, min(FIRST * 2.0 ** (failed - 1), LONGEST) * (1 + draw() / 4))):
                return


def _list(api: Api, path: str, query: Mapping[str, str]) -> tuple[dict[str, Mapping[str, Any]], str]:
    found: dict[str, Mapping[str, Any]] = {}
    more = ""
    while True:
        answer = api.get(path, {**query, "limit": str(_PIECE), **({"continue": more} if more else {})})
        for item in answer.get("items") or []:
            found[_uid(item)] = item
        meta = answer.get("metadata") or {}
        more = str(meta.get("continue") or "")
        if not more:
            return found, str(meta.get("resourceVersion") or "0")


def _compared(known: dict[str, Mapping[str, Any]], found: dict[str, Mapping[str, Any]]) -> Iterator[Change]:
    for uid in known.keys() - found.keys():
        yield Change(object=known.pop(uid), gone=True)
    for uid, item in found.items():
        known[uid] = item
        yield Change(object=item)
    yield Change(listed=True)


def _watch(
    api: Api, path: str, query: Mapping[str, str], since: str, known: dict[str, Mapping[str, Any]]
) -> Iterator[tuple[Change | None, str]]:
    """Each change with the version up to which all is known."""
    asked = {"watch": "true", "allowWatchBookmarks": "true", "timeoutSeconds": str(WATCH), "resourceVersion": since}
    for line in api.lines(path, {**query, **asked}, quiet=QUIET):
        if not line.strip():
            continue
        try:
            told = json.loads(line)
        except ValueError as wrong:  # the connection was cut within a line
            raise ApiRefusedError(0, f"half an answer: {line[:80]!r}") from wrong
        item = told.get("object") or {}
        if told.get("type") == "ERROR":
            raise ApiRefusedError(int(item.get("code") or 0), str(item.get("message") or "the watch has failed"))
        version = str((item.get("metadata") or {}).get("resourceVersion") or since)
        if told.get("type") == "BOOKMARK":
            yield None, version
        elif told.get("type") == "DELETED":
            known.pop(_uid(item), None)
            yield Change(object=item, gone=True), version
        else:
            known[_uid(item)] = item
            yield Change(object=item), version
        since = version


def _uid(item: Mapping[str, Any]) -> str:
    meta = item.get("metadata") or {}
    return str(meta.get("uid") or meta.get("name"))
