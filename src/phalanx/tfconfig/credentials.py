"""Values that look like secrets. Says where and why, never what."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from phalanx.tfconfig.tolerant import escape

_NAMES = re.compile(
    r"passw(or)?d|passphrase|secret|token|credential|api[_-]?key|access[_-]?key|private[_-]?key|auth[_-]?key",
    re.IGNORECASE,
)
_VALUES = (
    (re.compile(r"\b(AKIA|ASIA)[0-9A-Z]{16}\b"), "an access key of a cloud"),
    (re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY"), "a private key"),
    (re.compile(r"\bgh[pousr]_[A-Za-z0-9]{20,}|\bgithub_pat_[A-Za-z0-9_]{20,}"), "a GitHub token"),
    (re.compile(r"\bhf_[A-Za-z0-9]{20,}"), "a Hugging Face token"),
    (re.compile(r"\bsk-[A-Za-z0-9_-]{20,}"), "an API key"),
    (re.compile(r"\bxox[abeoprs]-[A-Za-z0-9-]{10,}"), "a Slack token"),
    (re.compile(r"\bAIza[0-9A-Za-z_-]{35}"), "an API key"),
    (re.compile(r"\beyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\."), "a signed token"),
    (re.compile(r"[^\s/:@]+:[^\s/@]+@"), "a password before an @"),
)
#: One look that tells nearly every value apart from all of the above.
_HINT = re.compile(r"@|AKIA|ASIA|-----BEGIN|gh[pousr]_|github_pat_|hf_|sk-|xox|AIza|eyJ")


def credentials(value: Any) -> Iterator[tuple[str, str]]:
    """JSON pointer and reason of each text in `value` that looks like a secret, in no order. O(size)."""
    waiting: list[tuple[str, str, Any]] = [("", "", value)]
    while waiting:
        pointer, key, item = waiting.pop()
        if isinstance(item, dict):
            waiting += [(f"{pointer}/{escape(name)}", name, inner) for name, inner in item.items()]
        elif isinstance(item, list):
            waiting += [(f"{pointer}/{index}", key, inner) for index, inner in enumerate(item)]
        elif isinstance(item, str) and item and (why := _why(key, item)):
            yield pointer, why


def _why(key: str, item: str) -> str | None:
    if key and _NAMES.search(key):
        return f'"{key[:40]}" looks like the name of a secret'
    if _HINT.search(item):
        for pattern, name in _VALUES:
            if pattern.search(item):
                return f"this looks like {name}"
    return None
