"""`phalanx kubernetes rbac`: what a client may ask of the cluster, as a Role to be given by whoever may."""

from __future__ import annotations

import sys
from typing import Annotated, Literal

import cyclopts

from phalanx.cli.values import choice


def kubernetes(
    what: Annotated[Literal["rbac"], cyclopts.Parameter(converter=choice)],
    /,
    *,
    namespace: str | None = None,
    name: str = "phalanx-client",
    no_role: Annotated[bool, cyclopts.Parameter(negative=())] = False,
    jobset: Annotated[bool, cyclopts.Parameter(negative=())] = False,
    gang: Annotated[Literal["volcano", "coscheduling"] | None, cyclopts.Parameter(converter=choice)] = None,
) -> int:
    """Print the Role that a person needs for `phalanx run --on kubernetes`. Applies nothing, and asks no cluster.

    Examples:
      phalanx kubernetes rbac --namespace ml > role.yaml
      phalanx kubernetes rbac --no-role

    Parameters
    ----------
    what
        `rbac`.
    namespace
        The namespace of the Role (where it is applied).
    name
        What the Role is called.
    no_role
        For jobs with `rbac: none`: then no Role is made for the lead, and none has to be given.
    jobset
        For jobs with `jobset: on` as well.
    gang
        For jobs with this `gang` as well.
    """
    from phalanx.engine.kubernetes.access import client_rules, role  # noqa: PLC0415 - not for --help
    from phalanx.engine.kubernetes.text import document  # noqa: PLC0415 - as above

    del what
    made = role(client_rules(role=not no_role, jobset=jobset, gang=gang))
    metadata = {"name": name} | ({"namespace": namespace} if namespace else {})
    manifest = {"apiVersion": made["apiVersion"], "kind": made["kind"], "metadata": metadata, "rules": made["rules"]}
    where = f" --namespace {namespace}" if namespace else ""
    sys.stdout.write(f"# kubectl create rolebinding {name} --role {name} --user NAME{where}\n{document(manifest)}")
    return 0
