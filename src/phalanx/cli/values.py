"""How the value of an option is read: whole numbers, choices, durations, in the same words for every verb."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar, get_args

from cyclopts import Token

from phalanx.errors import InputError
from phalanx.job.nearest import nearest

_T = TypeVar("_T", int, float)

#: Nothing else that Python calls a number: `2_0`, `0x4`, `2.0`, `010` would each surprise somebody.
_WHOLE = re.compile(r"-?(?:0|[1-9][0-9]{0,17})", re.ASCII)
#: Characters of a wrong value that are repeated.
_SHOWN = 40


def whole(hint: Any, tokens: Sequence[Token]) -> int:
    """A plain decimal whole number; what is too small or too large is the verb's to say. Raises InputError."""
    del hint
    [token] = tokens
    if not _WHOLE.fullmatch(token.value):
        raise InputError(f"{_flag(token)}must be a whole number, not {_shown(token.value)}")
    return int(token.value)


def choice(hint: Any, tokens: Sequence[Token]) -> Any:
    """One of the words of a Literal. Raises InputError naming them all, and the nearest."""
    [token] = tokens
    words = get_args(hint)
    if token.value in words:
        return token.value
    near = nearest(token.value, words)
    raise InputError(
        f"{_flag(token)}`{_shown(token.value)}` is none of {', '.join(words)}",
        hint=f"did you mean {near}?" if near else None,
    )


def file_or_stdout(hint: Any, tokens: Sequence[Token]) -> Path:
    """A file to write, or `-`; use with `allow_leading_hyphen`. Raises InputError where an option stands instead."""
    del hint
    [token] = tokens
    if token.value.startswith("-") and token.value != "-":
        raise InputError(f"{_flag(token)}wants a file, not {token.value}", hint=f"a file of that name: ./{token.value}")
    if not token.value:
        raise InputError(f"{_flag(token)}wants a file, not an empty text", hint="- prints it instead")
    return Path(token.value)


def read(reader: Callable[[object], _T], flag: str, text: str) -> _T:
    """The value of a flag. Raises InputError in the reader's words."""
    try:
        return reader(text)
    except ValueError as wrong:
        raise InputError(f"{flag}: {wrong}") from wrong


def _flag(token: Token) -> str:
    return f"{token.keyword}: " if token.keyword else ""


def _shown(value: str) -> str:
    text = value if value.isprintable() and value else repr(value)
    return text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"
