"""`phalanx plan`: what `run` would start, before anything has."""

from __future__ import annotations

import collections
import dataclasses
import json as json_text
import os
import socket
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import cyclopts

from phalanx.cli import which
from phalanx.cli.jobflags import JobFlags
from phalanx.cli.where import Namespace

if TYPE_CHECKING:
    from phalanx.remote import Where

_OUTPUT = cyclopts.Group("Output", sort_key=5)
_AS_RUN = "Taken so that `run` and `plan` may be swapped; changes nothing here."


def plan(
    *command: str,
    flags: Annotated[JobFlags, cyclopts.Parameter(name="*")] = JobFlags(),  # noqa: B008 - frozen
    there: Annotated[Namespace, cyclopts.Parameter(name="*")] = Namespace(),  # noqa: B008 - frozen
    runs: Annotated[Path | None, cyclopts.Parameter(group=_OUTPUT)] = None,
    json: Annotated[bool, cyclopts.Parameter(negative=(), group=_OUTPUT)] = False,
    detach: Annotated[bool, cyclopts.Parameter(negative=(), group=_OUTPUT, help=_AS_RUN)] = False,
    quiet: Annotated[bool, cyclopts.Parameter(negative=(), group=_OUTPUT, help=_AS_RUN)] = False,
) -> int:
    """Show what `run` would start: cluster, tasks, addresses, interpreter, environment, command.

    Starts nothing and writes nothing. Ports are examples: the real ones are held when the run starts. Takes the flags
    of `run`; everything after the script belongs to the script.

    Examples:
      phalanx plan --workers 4 --ps 2 train.py
      phalanx plan job.yaml --json
      phalanx plan job.yaml --on kubernetes

    Parameters
    ----------
    command
        The script (or any command) and its arguments, or a job.yaml.
    runs
        Where run folders would be made (PHALANX_RUNS, else ./runs).
    json
        Print the whole plan as JSON, every task's TF_CONFIG included.
    """
    from phalanx.agent import facts  # noqa: PLC0415 - not for --help
    from phalanx.cli.findings import encodable  # noqa: PLC0415 - as above
    from phalanx.job.declare import declare  # noqa: PLC0415 - pydantic and YAML, not for --help
    from phalanx.job.show import as_json, as_lines  # noqa: PLC0415 - as above
    from phalanx.plan.bind import bind  # noqa: PLC0415 - as above
    from phalanx.plan.preview import preview_hosts  # noqa: PLC0415 - as above

    del detach, quiet
    if (where := there.where(flags.on)) is not None:
        return _in_cluster(command, flags, where, json=json)
    declared = declare(command, flags.flags(), cwd=Path.cwd(), environ=os.environ)
    run = f"{declared.outline.name}-<time>"
    folder = which.runs_folder(runs) / run
    hosts = preview_hosts(
        declared.outline,
        name=socket.gethostname().partition(".")[0] or "localhost",
        folder=str(folder),
        machine=facts.this_machine(os.environ),
    )
    bound = bind(declared.outline, hosts, run=run, generation=1)
    if json:
        print(json_text.dumps(as_json(declared, bound), indent=2))
    else:
        sys.stdout.write(encodable("".join(f"{line}\n" for line in as_lines(declared, bound))))
    return 0


def _in_cluster(command: tuple[str, ...], flags: JobFlags, where: Where, *, json: bool) -> int:
    """The same for a cluster, which is not asked: its pods, and the objects that `run` would make."""
    from phalanx.cli.findings import encodable  # noqa: PLC0415 - not for --help
    from phalanx.engine.bundle import agent_zip  # noqa: PLC0415 - as above
    from phalanx.engine.kubernetes.names import Names  # noqa: PLC0415 - as above
    from phalanx.engine.kubernetes.objects import objects  # noqa: PLC0415 - as above
    from phalanx.job.incluster import declare_in_cluster  # noqa: PLC0415 - pydantic and YAML, not for --help
    from phalanx.job.show import as_json, as_lines  # noqa: PLC0415 - as above
    from phalanx.plan.bind import bind  # noqa: PLC0415 - as above
    from phalanx.plan.pods import pod_hosts  # noqa: PLC0415 - as above
    from phalanx.records.folder import slug  # noqa: PLC0415 - as above

    declared = declare_in_cluster(command, flags.flags(), cwd=Path.cwd())
    namespace = where.namespace or declared.cluster.namespace
    run = f"{slug(declared.outline.name)}-mmdd-hhmmss"
    names = Names(run=run, jobset=declared.cluster.jobset)
    cluster = dataclasses.replace(declared.cluster, namespace=namespace or "default")
    made = objects(declared.outline, cluster, run=run, agent=agent_zip(), imports=declared.imports, key="0" * 64)
    bound = bind(declared.outline, pod_hosts(declared.outline, names.address), run=run, generation=1)
    count = collections.Counter(str(one["kind"]) for one in made)
    more = [
        ("image", declared.cluster.image),
        ("namespace", namespace or "that of the kubeconfig's context"),
        ("objects", ", ".join(f"{number} {kind}" if number > 1 else kind for kind, number in count.items())),
    ]
    if json:
        page = {**as_json(declared, bound), "objects": [f"{one['kind']}/{one['metadata']['name']}" for one in made]}
        print(json_text.dumps(page, indent=2))
    else:
        lines = as_lines(declared, bound, place="pods, each with one task", more=more)
        sys.stdout.write(encodable("".join(f"{line}\n" for line in lines)))
    return 0
