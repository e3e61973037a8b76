"""The hosts to be measured, as a person names them: `n[1-3]`, `n1=10.0.0.1,user@n2`."""

from __future__ import annotations

import dataclasses

from phalanx.errors import InputError
from phalanx.hostlist import expand

_WRITE = "write n1,n2 or n[1-4], with NAME=ADDRESS where the others reach it under another name"
#: Each takes three open files here, of the 1024 that a user usually has.
MOST = 256


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Target:
    """`name` goes into the command that reaches it; `address` is what the other hosts call."""

    name: str
    address: str


def targets(text: str) -> tuple[Target, ...]:
    """Raises InputError."""
    try:
        words = expand(text)
    except ValueError as wrong:
        raise InputError(f"--measure: {wrong}", hint=_WRITE) from wrong
    if len(words) > MOST:
        message = f"--measure: {len(words)} hosts are more than the {MOST} that are measured at a time"
        raise InputError(message, hint="some of them stand for all")
    found = []
    for word in words:
        name, said, address = word.partition("=")
        # The name becomes a word of a command line: none may pass for a flag of it.
        if not name or name.startswith("-") or (said and not address) or not word.isprintable() or " " in word:
            raise InputError(f"--measure {text}: {word!r} is no host", hint=_WRITE)
        found.append(Target(name=name, address=address or name.rpartition("@")[2]))
    for what in ("name", "address"):
        seen = [getattr(one, what) for one in found]
        if twice := next((one for one in seen if seen.count(one) > 1), None):
            raise InputError(f"--measure {text}: the {what} {twice} is there twice", hint=_WRITE)
    return tuple(found)
