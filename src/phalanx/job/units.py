"""Durations and sizes as people write them, and back."""

from __future__ import annotations

import re

_DURATION = re.compile(
    r"(?:(?P<d>\d+(?:\.\d+)?)d)?(?:(?P<h>\d+(?:\.\d+)?)h)?(?:(?P<m>\d+(?:\.\d+)?)m)?(?:(?P<s>\d+(?:\.\d+)?)s)?(?:(?P<ms>\d+)ms)?\Z",
    re.ASCII,
)
_CLOCK = re.compile(r"(?:(?P<h>\d+):)(?P<m>[0-5]\d):(?P<s>[0-5]\d)\Z", re.ASCII)
_NUMBER = re.compile(r"\d+(?:\.\d+)?\Z", re.ASCII)
_SIZE = re.compile(r"(?P<number>\d+(?:\.\d+)?)\s*(?P<unit>[KMGTP]?i?)B?\Z", re.ASCII | re.IGNORECASE)

_SECONDS = {"d": 86400.0, "h": 3600.0, "m": 60.0, "s": 1.0, "ms": 0.001}
_POWERS = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4, "p": 5}

#: No deadline of a job is longer; guards against units mixed up.
LONGEST = 366 * 86400.0

#: Bytes; no address is larger.
_LARGEST = 1 << 63

_ONE = "[0-9]+(\\.[0-9]+)?"
#: The same for JSON Schema, whose regular expressions know no flags.
DURATION_PATTERN = (
    rf"^\s*({_ONE}|(?=[0-9])({_ONE}[dD])?({_ONE}[hH])?({_ONE}[mM])?({_ONE}[sS])?([0-9]+[mM][sS])?"
    r"|[0-9]+:[0-5][0-9]:[0-5][0-9])\s*$"
)
SIZE_PATTERN = rf"^\s*{_ONE}\s*[KMGTPkmgtp]?[iI]?[bB]?\s*$"

DURATIONS = "90 (seconds), 30s, 5m, 1h30m or 12:30:00"
SIZES = "32Gi, 512MB or a number of bytes"


def seconds(value: object) -> float:
    """`90`, `0.5`, `30s`, `5m`, `1h30m`, `500ms`, `12:30:00` → seconds. Raises ValueError saying what it wants."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return _in_range(float(value), value)
    text = value.strip() if isinstance(value, str) else ""
    if _NUMBER.match(text):
        return _in_range(float(text), value)
    if clock := _CLOCK.match(text):
        return _in_range(sum(int(clock[unit]) * _SECONDS[unit] for unit in ("h", "m", "s")), value)
    found = _DURATION.match(text.lower()) if text else None
    if found is None:
        message = f"{_shown(value)} is no duration; write {DURATIONS}"
        raise ValueError(message)
    return _in_range(sum(float(found[unit] or 0) * of for unit, of in _SECONDS.items()), value)


def some_seconds(value: object) -> float:
    """`seconds`, and more than none: for what cannot do without a limit."""
    found = seconds(value)
    if not found:
        message = f"{_shown(value)} leaves no time, and there is no start without a limit; write {DURATIONS}"
        raise ValueError(message)
    return found


def size(value: object) -> int:
    """`32Gi` (1024s), `512MB` or `512M` (1000s), or bytes → bytes. Raises ValueError saying what it wants."""
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return value
    found = _SIZE.match(value.strip()) if isinstance(value, str) else None
    if found is None:
        message = f"{_shown(value)} is no size; write {SIZES}"
        raise ValueError(message)
    unit = found["unit"].lower()
    base = 1024 if unit.endswith("i") else 1000
    number = float(found["number"]) * base ** _POWERS[unit.rstrip("i")]
    if number >= _LARGEST:
        message = f"{_shown(value)} is no size below 8192Pi; write {SIZES}"
        raise ValueError(message)
    return int(number)


def in_words(duration: float) -> str:
    """Seconds as short as they can be written: `5m`, `1h30m`, `0.5s`."""
    whole, rest = divmod(round(duration * 1000), 1000)
    if rest:
        return f"{duration:.3f}".rstrip("0") + "s"
    parts = []
    for unit in ("d", "h", "m", "s"):
        number, whole = divmod(whole, int(_SECONDS[unit]))
        parts += [f"{number}{unit}"] if number else []
    return "".join(parts) or "0s"


def bytes_in_words(number: int) -> str:
    """Bytes in the largest binary unit that divides them: `32Gi`; else the number."""
    for unit, power in (("Ti", 4), ("Gi", 3), ("Mi", 2), ("Ki", 1)):
        if number and number % 1024**power == 0:
            return f"{number // 1024**power}{unit}"
    return str(number)


def _in_range(duration: float, value: object) -> float:
    if 0 <= duration <= LONGEST:
        return duration
    message = f"{_shown(value)} is no duration between 0 and a year; write {DURATIONS}"
    raise ValueError(message)


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 40 else text[:37] + "…"  # noqa: PLR2004 - a line's worth
