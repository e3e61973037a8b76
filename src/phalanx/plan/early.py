"""Which tasks of a host may have their interpreters started before any port is known, and with what."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from phalanx.plan.lent import names_addresses
from phalanx.plan.outline import Outline
from phalanx.plan.plan import PlannedTask


def early(outline: Outline, tasks: Iterable[PlannedTask]) -> list[dict[str, Any]]:
    """As an agent's configuration has them: none whose command names addresses, none where nothing of ours may ride."""
    return [
        {"id": str(task.id), "argv": list(task.argv), "env": dict(task.env)}
        for task in tasks
        if outline.runtime and not names_addresses(outline.roles, outline.role(task.id.type))
    ]
