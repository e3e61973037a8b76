"""Values that look like secrets. Says where, never what."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from phalanx.redact import redact
from phalanx.tfconfig.tolerant import escape


def credentials(value: Any) -> Iterator[str]:
    """JSON pointer of each text or number in `value` that looks like a secret, by its name or its shape. O(size).

    What counts is what `redact` would mask in a view.
    """
    waiting: list[tuple[str, str, Any]] = [("", "", value)]
    while waiting:
        pointer, name, item = waiting.pop()
        if isinstance(item, dict):
            waiting += [(f"{pointer}/{escape(key)}", key, inner) for key, inner in reversed(item.items())]
        elif isinstance(item, list):
            inside = [(f"{pointer}/{index}", name, inner) for index, inner in enumerate(item)]
            # Thousands of addresses cost one look, unless there is something among them.
            if not all(isinstance(inner, str) for inner in item) or _secret(name, " ".join(item)):
                waiting += reversed(inside)
        elif isinstance(item, str | int) and not isinstance(item, bool) and _secret(name, str(item)):
            yield pointer


def _secret(name: str, text: str) -> bool:
    line = f"{json.dumps(name, ensure_ascii=False)}: {json.dumps(text, ensure_ascii=False)}" if name else text
    return redact(line) != line or redact(text) != text  # JSON's escapes hide where a word begins
