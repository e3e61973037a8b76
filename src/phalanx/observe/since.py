"""Points in time as people write them: `5m` ago, or a date."""

from __future__ import annotations

import datetime as dt
import re

from phalanx.errors import InputError

_AGO = re.compile(r"(?P<number>[0-9]+(?:\.[0-9]+)?)(?P<unit>[smhd])\Z")
_SECONDS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_NS = 1_000_000_000


def parse_since(text: str, now: float) -> int:
    """Unix nanoseconds of `90s`, `5m`, `2h`, `1d` before `now`, or of an ISO 8601 date, local where it has no offset.

    Raises InputError.
    """
    if found := _AGO.match(text):
        return int((now - float(found["number"]) * _SECONDS[found["unit"]]) * _NS)
    try:
        return int(dt.datetime.fromisoformat(text).astimezone().timestamp() * _NS)
    except (ValueError, OverflowError) as wrong:
        raise InputError(f"{text!r} is no point in time", hint="write 90s, 5m, 2h, 1d or 2026-11-30T07:33") from wrong
