"""`phalanx render`: a job as manifests of Kubernetes, for Git and `kubectl apply`."""

from __future__ import annotations

import dataclasses
import sys
from pathlib import Path
from typing import Annotated

import cyclopts

from phalanx.cli.jobflags import JobFlags

_OUTPUT = cyclopts.Group("Output", sort_key=5)


def render(
    *command: str,
    flags: Annotated[JobFlags, cyclopts.Parameter(name="*")] = JobFlags(),  # noqa: B008 - frozen
    output: Annotated[Path, cyclopts.Parameter(name=("--output", "-o"), group=_OUTPUT)] = Path("k8s"),
    namespace: Annotated[str | None, cyclopts.Parameter(group=_OUTPUT)] = None,
    static: Annotated[bool, cyclopts.Parameter(negative=(), group=_OUTPUT)] = False,
    own_key: Annotated[bool, cyclopts.Parameter(negative=(), group=_OUTPUT)] = False,
) -> int:
    """Write a job as manifests of Kubernetes: `kubectl apply -f` starts it, with nothing to install and no client.

    The run is called as the job. Equal jobs give equal bytes, and no file holds a secret value. Nothing of the script
    is run, and no cluster is asked.

    Examples:
      phalanx render job.yaml -o k8s/
      phalanx render job.yaml -o k8s/ --namespace ml --workers 8
      phalanx render job.yaml -o plain/ --static

    Parameters
    ----------
    command
        A job.yaml, or the script in the image and its arguments.
    output
        The folder to write (k8s). Files of an earlier rendering are written anew; others stay.
    namespace
        The namespace (on.kubernetes.namespace).
    static
        Plain pods with TF_CONFIG and no agent: for images with an older Python. Says what is lost.
    own_key
        Leave the Secret with the run's key to you, in place of one that Kubernetes fills.
    """
    from phalanx.engine.bundle import agent_zip  # noqa: PLC0415 - not for --help
    from phalanx.engine.kubernetes.names import Names  # noqa: PLC0415 - as above
    from phalanx.engine.kubernetes.objects import objects  # noqa: PLC0415 - as above
    from phalanx.engine.kubernetes.render import files, write  # noqa: PLC0415 - as above
    from phalanx.engine.kubernetes.static import LOST, static_objects  # noqa: PLC0415 - as above
    from phalanx.job.incluster import declare_in_cluster  # noqa: PLC0415 - pydantic and YAML, not for --help
    from phalanx.job.show import note_line  # noqa: PLC0415 - as above

    declared = declare_in_cluster(command, flags.flags(), cwd=Path.cwd())
    run = declared.outline.name
    cluster = dataclasses.replace(declared.cluster, namespace=namespace or declared.cluster.namespace)
    if static:
        texts = files(static_objects(declared.outline, cluster, run=run), remarks=LOST)
    else:
        made = objects(declared.outline, cluster, run=run, agent=agent_zip(), imports=declared.imports, own_key=own_key)
        texts = files(made)
    write(output, texts)
    for note in declared.notes:
        sys.stderr.write(f"phalanx: {note_line(note)}\n")
    if static:
        sys.stderr.write("phalanx: without phalanx in the pods\n" + "".join(f"  - {line}\n" for line in LOST))
    elif own_key:
        name = Names(run=run).key
        make = f"kubectl create secret generic {name} --from-literal=key=$(openssl rand -hex 32)"
        sys.stderr.write(f"phalanx: the pods wait for the Secret {name}: {make}\n")
    sys.stdout.write(f"{len(texts)} files in {output}; kubectl apply -f {output} starts the run {run}\n")
    return 0
