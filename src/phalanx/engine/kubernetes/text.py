"""Manifests as YAML: the same bytes for the same manifests, and read alike by YAML 1.1 and 1.2."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

#: Text that every reader takes as text without quotes; words and numbers of either YAML are left out below.
_PLAIN = re.compile(r"[A-Za-z_/.][A-Za-z0-9_./@+()-]*\Z", re.ASCII)
_WORDS = frozenset({"true", "false", "yes", "no", "on", "off", "null", "y", "n", ".", ".nan", ".inf"})
_ASTRAL = 0x10000
_NUMBER = re.compile(r"[-+.]?[0-9]", re.ASCII)


def document(value: Mapping[str, Any]) -> str:
    """One manifest, with a newline at its end."""
    return "".join(f"{line}\n" for line in _mapping(value, ""))


def _mapping(value: Mapping[str, Any], indent: str) -> list[str]:
    lines: list[str] = []
    for key, item in value.items():
        lines += _entry(f"{indent}{_scalar(key)}:", item, indent)
    return lines


def _entry(head: str, item: Any, indent: str) -> list[str]:
    if isinstance(item, Mapping) and item:
        return [head, *_mapping(item, f"{indent}  ")]
    if isinstance(item, list) and item:
        return [head, *_list(item, indent)]
    if _is_block(item):
        chomp = "" if item.endswith("\n") else "-"
        body = item.removesuffix("\n").split("\n")
        return [f"{head} |{chomp}", *(f"{indent}  {line}" if line else "" for line in body)]
    return [f"{head} {_scalar(item)}"]


def _list(items: list[Any], indent: str) -> list[str]:
    lines: list[str] = []
    for item in items:
        if isinstance(item, Mapping) and item:
            first, *rest = _mapping(item, f"{indent}  ")
            lines += [f"{indent}- {first[len(indent) + 2 :]}", *rest]
        elif isinstance(item, list) and item:
            first, *rest = _list(item, f"{indent}  ")
            lines += [f"{indent}- {first[len(indent) + 2 :]}", *rest]
        elif _is_block(item):
            lines += _entry(f"{indent}-", item, indent)
        else:
            lines.append(f"{indent}- {_scalar(item)}")
    return lines


def _is_block(item: object) -> bool:
    """Text of several lines that a block shows as it is: no line that looks indented first, nothing unprintable."""
    return (
        isinstance(item, str)
        and "\n" in item.strip("\n")
        and not item.startswith((" ", "\n"))
        and not item.endswith("\n\n")
        and all(line.isprintable() and line == line.rstrip() for line in item.split("\n"))
    )


def _scalar(value: Any) -> str:
    if isinstance(value, str) and _PLAIN.match(value) and value.lower() not in _WORDS and not _NUMBER.match(value):
        return value
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return _quoted(value) if isinstance(value, str) else json.dumps(value)


def _quoted(text: str) -> str:
    """As JSON has it, but for characters above U+FFFF: JSON writes them in halves, which YAML does not join."""
    quoted = json.dumps(text, ensure_ascii=False)
    return "".join(
        c if c.isprintable() else f"\\u{ord(c):04x}" if ord(c) < _ASTRAL else f"\\U{ord(c):08x}" for c in quoted
    )
