"""From the words of a command line to an outline and a cluster: `declare` for Kubernetes.

The script lies in the image, so its absence here is no mistake; where it lies here as well it is read all the same.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from phalanx.errors import InputError
from phalanx.job import advise, clustered, command
from phalanx.job.advise import count_of
from phalanx.job.clustered import kinds
from phalanx.job.complaint import JobFileError
from phalanx.job.declare import job_file, must_listen, strategy_of_script
from phalanx.job.dump import to_yaml
from phalanx.job.flags import Flags, apply, named
from phalanx.job.model import Job
from phalanx.job.origin import Origin
from phalanx.job.reading import read_scripts
from phalanx.job.resolve import resolve
from phalanx.plan.cluster import Cluster
from phalanx.plan.outline import Interpreter, Outline, Secret
from phalanx.plan.own import found_here
from phalanx.plan.pods import one_task_a_host
from phalanx.script.imports import imports_of
from phalanx.tfconfig.finding import Finding

#: What a script runs under where nobody says: every image that has Python has it by this name.
_PYTHON = "python3"


class InCluster(NamedTuple):
    """An outline and where in a cluster it goes, the job.yaml that says the same, and what the user should know."""

    outline: Outline
    cluster: Cluster
    text: str
    notes: tuple[Finding, ...]
    #: By role: the imports that a script begins with, where it lies here as well.
    imports: Mapping[str, tuple[str, ...]]


def declare_in_cluster(tokens: tuple[str, ...], flags: Flags, *, cwd: Path) -> InCluster:
    """Read `job.yaml`, or `train.py args…`, lay the flags over it, and resolve it for pods.

    Asks no cluster and changes nothing. Raises InputError (JobFileError with every mistake at once, ScriptError for a
    script at hand that cannot work).
    """
    if not tokens:
        raise InputError("nothing to run", hint="name a job.yaml: phalanx run job.yaml --on kubernetes")
    file = job_file(tokens, cwd)
    here = (cwd / file.tree.path).parent if file else cwd
    job = apply(file.job if file else None, flags, () if file else tokens)
    origin = Origin(tree=file.tree if file else None, flags=named(flags))
    objections = (*advise.refusals(job, None), *advise.mistakes(job), *clustered.mistakes(job))
    if complaints := [origin.complaint(*said) for said in dict.fromkeys(objections)]:
        raise JobFileError(complaints)
    cluster = clustered.cluster_of(job)
    outline = _outline(job, cluster)
    found = [origin.finding(*said) for said in clustered.notes(job)]
    outline, said = _read(job, outline, here)
    imports = {role.type: imports_of(found_here(role.command), here) for role in outline.roles}
    return InCluster(outline=outline, cluster=cluster, text=to_yaml(job), notes=(*found, *said), imports=imports)


def _outline(job: Job, cluster: Cluster) -> Outline:
    """One task a pod, one pod a host; the environment is the image's, and known there only."""
    hosts = sum(count_of(job, kind) for kind in kinds(job))
    outline = resolve(
        job.model_copy(update={"hosts": hosts, "secrets": []}),
        cwd=cluster.folder or "",
        interpreter=Interpreter(path=job.python or _PYTHON, chosen_by="--python" if job.python else "the image"),
        environ={},
    )
    return dataclasses.replace(
        one_task_a_host(outline),
        secrets=tuple(
            Secret(name=one.name, env=one.env, source=f"secret:{one.secret}/{one.key}")
            for one in cluster.secrets
            if one.env
        ),
    )


def _read(job: Job, outline: Outline, here: Path) -> tuple[Outline, list[Finding]]:
    """What a script that lies here too says: of its strategy, and of what cannot work."""
    environ: Mapping[str, str] = {}
    start = command.start_of(job.command, cwd=here, environ=job.env)
    if start is None or not start.file.exists():
        return dataclasses.replace(outline, must_listen=must_listen(outline, None)), []
    local = dataclasses.replace(outline, cwd=str(here), interpreter=None)
    outline = dataclasses.replace(outline, must_listen=must_listen(outline, strategy_of_script(job, local, environ)))
    return outline, read_scripts(job, local, environ)
