"""How a user's words stand in a message: without secrets and control characters, cut when long."""

from __future__ import annotations

import re

from phalanx.redact import MASK, redact

#: Characters of one word or address that a message repeats.
SHOWN = 80
#: Characters of a whole message.
_LONGEST = 2000
#: How much of a word is looked at: more than is shown, so that a cut never uncovers half a secret.
_LOOKED_AT = 10_000

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]{0,30}:/+")
_ESCAPE = re.compile(r"\\[bfnrt]")
#: What a word is made of. Tried from its start only and never given back, or a long word costs its length squared.
_WORD = r"[^\s\"'/@,\[\]{}]"
#: `user:password@` and `user@` in a sentence.
_USER = re.compile(rf"(?<!{_WORD}){_WORD}++@")
#: `user:password@` in a line of a file, where a lone `user@` may be anything.
_PASSWORD = re.compile(rf"(?<!{_WORD})(:?)(?:(?!:){_WORD})++:{_WORD}++@")


def printable(text: str) -> str:
    """`text` in one line without control characters, each replaced by `?` so that columns stay; tabs by a space."""
    return text if text.isprintable() else "".join(c if c.isprintable() else " " if c in "\t\n" else "?" for c in text)


def brief(text: str, limit: int = SHOWN) -> str:
    """A word of the user's: what looks like a secret and everybody's user name masked, then cut to `limit`."""
    user, at, rest = text.rpartition("@")
    if at:
        scheme = _SCHEME.match(user)
        text = f"{scheme[0] if scheme else ''}{MASK}@{rest}"
    text = printable(redact(text[:_LOOKED_AT]))
    return text if len(text) <= limit else text[: limit - 1] + "…"


def shown(text: str, limit: int = SHOWN) -> str:
    """The same in quotes."""
    return f'"{brief(text, limit)}"'


def sentence(text: str) -> str:
    """A whole message, whatever words of the user's it repeats."""
    if len(text) > 10 * _LONGEST:
        text = text[: 10 * _LONGEST]
    text = printable(redact(_USER.sub(f"{MASK}@", text)))
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"


def line(text: str) -> str:
    """A line of the file, of its own length where nothing is masked; control characters stay."""
    masked = _PASSWORD.sub(rf"\1{MASK}@", redact(text))
    if "\\" in text:  # the letter of an escape hides where a word begins
        spaced = _PASSWORD.sub(rf"\1{MASK}@", redact(_ESCAPE.sub("  ", text)))
        return spaced if spaced.count(MASK) > masked.count(MASK) else masked
    return masked
