"""Addresses of roles outside the cluster: who is told of them, and how a command names them. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from phalanx.names import TaskId
from phalanx.plan.outline import Outline, Role

#: The variable in which every task of the job finds them: `{"dispatcher": ["n1:22101"]}`.
VARIABLE = "PHALANX_ADDRESSES"

#: Tasks with a lent address that one job may have: the variable has to stay well below what exec takes (facts §8).
MOST = 1000

#: What a command says of its own task's address; of others it names the role.
OWN = ("port", "address")


def lent_addresses(outline: Outline, addresses: Mapping[TaskId, str]) -> dict[str, list[str]]:
    """By role, for the roles that get a port of their own: `host:port` of each task, by index."""
    found: dict[str, list[str]] = {role.type: [] for role in outline.roles if role.port}
    for task, address in addresses.items():
        if task.type in found:
            found[task.type].append(address)
    return found


def addresses_variable(lent: Mapping[str, Sequence[str]]) -> dict[str, str]:
    """The variable for every task; empty where no role has such addresses."""
    return {VARIABLE: json.dumps(lent)} if lent else {}


def own_words(address: str | None) -> dict[str, str]:
    """What `{address}` and `{port}` are filled with; nothing for a task without a lent address."""
    return {"address": address, "port": address.rpartition(":")[2]} if address else {}


def names_addresses(roles: Sequence[Role], role: Role) -> bool:
    """Whether the role's command or environment holds an address, and so is another one in each generation."""
    words = [*(kind.type for kind in roles if kind.port), *(OWN if role.port else ())]
    return any("{" + word + "}" in text for text in (*role.command, *role.env.values()) for word in words)
