"""`phalanx generate`."""

from __future__ import annotations

import json
import os
import socket
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Group, Parameter

from phalanx.cli import findings, sources
from phalanx.cli.values import file_or_stdout, whole
from phalanx.errors import InputError
from phalanx.hostlist import expand
from phalanx.names import TaskId, many
from phalanx.tfconfig import Bodies, Cluster, Severity, TfConfig, check, cluster_from_hosts, parse, task_for_host
from phalanx.tfconfig.quote import brief

_SIZE = Group("The cluster", sort_key=1)
_WHOSE = Group("Whose TF_CONFIG", sort_key=2)


def generate(
    cluster: Annotated[
        str | None,
        Parameter(
            help='A JSON file (or `-`) with a cluster: {"worker": ["n1:2222", ...]}, or any TF_CONFIG of it.',
            allow_leading_hyphen=True,
        ),
    ] = None,
    /,
    *,
    workers: Annotated[int | None, Parameter(help="How many workers.", group=_SIZE, converter=whole)] = None,
    ps: Annotated[
        int, Parameter(help="How many parameter servers; implies one chief.", group=_SIZE, converter=whole)
    ] = 0,
    chief: Annotated[bool | None, Parameter(help="One chief beside the workers, or none.", group=_SIZE)] = None,
    evaluator: Annotated[bool, Parameter(help="One evaluator.", negative=(), group=_SIZE)] = False,
    hosts: Annotated[
        str | None,
        Parameter(help="Where they run: n1,n2 or n[01-04] (localhost). NAME:PORT sets a port.", group=_SIZE),
    ] = None,
    port: Annotated[
        int,
        Parameter(help="The first port of each host; its next task takes the next.", group=_SIZE, converter=whole),
    ] = 2222,
    task: Annotated[str | None, Parameter(help="This task's, such as worker:1.", group=_WHOSE)] = None,
    host: Annotated[
        str | None, Parameter(help="That of the task on this host; `.` is this machine.", group=_WHOSE)
    ] = None,
    all_: Annotated[
        bool, Parameter(name="--all", help="Everybody's: a line each, task, tab, JSON.", negative=(), group=_WHOSE)
    ] = False,
    out: Annotated[
        Path | None,
        Parameter(
            help="Everybody's: a file each in this folder.",
            group=_WHOSE,
            converter=file_or_stdout,
            allow_leading_hyphen=True,
        ),
    ] = None,
    strategy: findings.Strategy = "auto",
) -> int:
    """Write the TF_CONFIG of one task or of all.

    The cluster comes from counts and hosts, or from a file. It is checked
    first: what `phalanx check` calls an error is not written. Existing
    files are never overwritten.

    For example:
      phalanx generate --workers 4 --hosts n1,n2,n3,n4 --task worker:1
      phalanx generate --workers 2 --ps 1 --hosts n[1-2] --out nodes/
      export TF_CONFIG="$(phalanx generate cluster.json --host $(hostname))"
      phalanx generate cluster.json --all | phalanx agree -
    """
    if sum(given not in (None, False) for given in (task, host, all_, out)) > 1:
        raise InputError("--task, --host, --all and --out exclude each other")
    if cluster is not None and (workers is not None or ps or chief is not None or evaluator or hosts is not None):
        raise InputError(f"the cluster is in {cluster} already; counts and hosts are for a cluster made from them")
    extra: Mapping[str, Any] = {}
    if cluster is not None:
        made, extra = _read(cluster)
    elif workers is not None:
        named = _named("localhost" if hosts is None else hosts)
        wanted = ps > 0 if chief is None else chief
        made = cluster_from_hosts(named, workers=workers, chief=wanted, ps=ps, evaluator=evaluator, port=port)
    else:
        raise InputError("how large?", hint="--workers 4 --hosts n1,n2,n3,n4, or a JSON file with a cluster")
    meant = strategy
    if strategy == "auto":
        meant = "ps" if made.jobs.get("ps") else "mwms"
    bodies = Bodies(made, strategy=meant, extra=extra)
    _prove(made, bodies, meant)
    if all_:
        for one, body in bodies:
            sys.stdout.writelines((str(one), "\t", body.head, body.tail, "\n"))
    elif out is not None:
        written = _files(bodies, out)
        sys.stderr.write(f"{many(written, 'file')} written into {out}\n")
    else:
        findings.write(bodies.of(_whose(made, task, host)).text + "\n")
    return 0


def _whose(cluster: Cluster, task: str | None, host: str | None) -> TaskId:
    if host is not None:
        return task_for_host(cluster, socket.gethostname() if host == "." else host)
    if task is not None:
        try:
            return TaskId.parse(task)
        except ValueError as error:
            raise InputError(str(error)) from None
    tasks = list(cluster.tasks())
    if len(tasks) > 1:
        raise InputError(f"whose of {len(tasks)}?", hint="--task worker:0, --host NAME, --all, or --out FOLDER")
    return tasks[0]


def _read(name: str) -> tuple[Cluster, Mapping[str, Any]]:
    """The cluster of a TF_CONFIG and the keys beside it, or a file that holds the value of `cluster` alone."""
    (source, *more) = sources.read([name])
    if more:
        raise InputError(f"{name} holds {len(more) + 1} TF_CONFIGs; generate takes one cluster")
    parsed = parse(source.text, path=source.path)
    if isinstance(parsed.raw, dict) and parsed.raw and not {"cluster", "task"} & parsed.raw.keys():
        parsed = parse(json.dumps({"cluster": parsed.raw}), path=source.path)
    wrong = [finding for finding in parsed.findings if finding.severity is Severity.ERROR]
    if wrong or parsed.config is None or parsed.config.cluster is None:
        raise InputError(
            f"{name} holds no cluster: {wrong[0].message if wrong else 'it is empty'}",
            hint='write {"cluster": {"worker": ["n1:2222", "n2:2222"]}}',
        )
    return parsed.config.cluster, parsed.config.extra


def _prove(cluster: Cluster, bodies: Bodies, strategy: str) -> None:
    """Refuse what `check` calls an error, in what was given (also types that are left out) and in what is written."""
    firsts: dict[str, TaskId] = {}
    for task, _ in bodies:
        firsts.setdefault(task.type, task)
    if not firsts:
        raise InputError("the cluster has no task of TensorFlow's", hint="it knows chief, worker, ps and evaluator")
    given = TfConfig(cluster=cluster.without("evaluator"), task=next(iter(firsts.values())))
    texts = [json.dumps(given.to_json()), *(bodies.of(task).text for task in firsts.values())]
    for text in texts:
        for finding in check(text, strategy=strategy):
            if finding.severity is Severity.ERROR:
                raise InputError(f"TensorFlow would not accept it: {finding.message}", hint=finding.fix or None)


def _files(bodies: Bodies, folder: Path) -> int:
    """`worker_0.json` and so on; how many. Raises InputError before anything is written where one is there already."""
    if str(folder) == "-":
        raise InputError("--out wants a folder", hint="--all prints everybody's, a line each")
    paths = {task: folder / f"{task.folder}.json" for task, _ in bodies}
    there = next((path for path in paths.values() if os.path.lexists(path)), None)
    if there is not None:
        raise InputError(f"{brief(str(there))} exists already; nothing was written", hint="choose an empty folder")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for task, body in bodies:
            with paths[task].open("x", encoding="utf-8") as file:
                file.writelines((body.head, body.tail, "\n"))
    except OSError as error:
        raise InputError(
            f"cannot write into {brief(str(folder))}: {error.strerror}",
            hint="name a folder that can be made or written to",
        ) from error
    return len(paths)


def _named(hosts: str) -> list[str]:
    """Host names by comma, and Slurm's way of writing many; `[fd00::1]` is an address and no list."""
    if any(":" in part.partition("]")[0] for part in hosts.split("[")[1:]) or not hosts.strip(", "):
        return [name for name in hosts.split(",") if name.strip()]
    try:
        return list(expand(hosts.strip(", ")))
    except ValueError as wrong:
        raise InputError(f"--hosts: {wrong}", hint="write n1,n2 or n[01-04]") from wrong
