"""Job → the text of a job.yaml that says the same: what a run keeps of its declaration."""

from __future__ import annotations

import json
import re
from typing import Any

from phalanx.job.model import Job

#: Text that every YAML reader takes as text without quotes.
_PLAIN = re.compile(r"[A-Za-z_/][A-Za-z0-9_./@+-]*\Z", re.ASCII)
_WORDS = frozenset({"true", "false", "yes", "no", "on", "off", "null", "y", "n"})


def to_yaml(job: Job) -> str:
    """Everything that was said, defaults left out. `parse(to_yaml(job)).job == job`."""
    data = job.model_dump(exclude_unset=True, by_alias=True, exclude_none=True)
    return "".join(f"{line}\n" for line in _mapping(data, ""))


def _mapping(data: dict[str, Any], indent: str) -> list[str]:
    lines: list[str] = []
    for key, value in data.items():
        if isinstance(value, dict) and value:
            lines += [f"{indent}{_scalar(key)}:", *_mapping(value, indent + "  ")]
        else:
            lines.append(f"{indent}{_scalar(key)}: {flow(value)}")
    return lines


def flow(value: Any) -> str:
    """One value in one line."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_scalar(key)}: {flow(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(flow(item) for item in value) + "]"
    return _scalar(value)


def _scalar(value: Any) -> str:
    if isinstance(value, str) and _PLAIN.match(value) and value.lower() not in _WORDS:
        return value
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return json.dumps(value, ensure_ascii=True)
