"""From a cluster to each task's TF_CONFIG, and from hosts and counts to a cluster."""

from __future__ import annotations

import collections
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from phalanx.errors import InputError
from phalanx.names import TaskId, join_host_port
from phalanx.tfconfig.address import read
from phalanx.tfconfig.bodies import Bodies
from phalanx.tfconfig.model import Cluster
from phalanx.tfconfig.quote import brief, shown

_SHOWN = 8
_MAX_PORT = 65535


def generate(cluster: Cluster, task: TaskId, *, strategy: str = "mwms", extra: Mapping[str, Any] | None = None) -> str:
    """One task's TF_CONFIG. Raises InputError where the cluster has no such task; see Bodies for `strategy`."""
    return Bodies(cluster, strategy=strategy, extra=extra).of(task).text


def generate_all(
    cluster: Cluster, *, strategy: str = "mwms", extra: Mapping[str, Any] | None = None
) -> Iterator[tuple[TaskId, str]]:
    """Each task with its TF_CONFIG, one at a time: the cluster is written once, only one text is held in memory.

    For all of them at once take `Bodies`, whose beginning is shared: O(N) memory for N tasks.
    """
    for task, body in Bodies(cluster, strategy=strategy, extra=extra):
        yield task, body.text


def task_for_host(cluster: Cluster, host: str) -> TaskId:
    """The task whose address is on `host` (R29): by the full name, else by the name up to the first dot.

    Raises InputError where none or several are.
    """
    wanted = _bare(host)
    hosts: dict[str, list[TaskId]] = collections.defaultdict(list)
    for task in cluster.tasks():
        hosts[_bare(cluster.jobs[task.type][task.index])].append(task)
    found = hosts.get(wanted) or [
        task for name, tasks in hosts.items() if _short(name) == _short(wanted) for task in tasks
    ]
    if len(found) == 1:
        return found[0]
    if found:
        told = _several([str(task) for task in found])
        raise InputError(f"{brief(host)} has {len(found)} tasks: {told}", hint="say which one with --task TYPE:INDEX")
    raise InputError(
        f"no task is on {brief(host)}; the cluster is on {_several(list(hosts))}",
        hint="is it another name of the host?",
    )


def cluster_from_hosts(
    hosts: Sequence[str],
    *,
    workers: int,
    chief: bool = False,
    ps: int = 0,
    evaluator: bool = False,
    port: int = 2222,
) -> Cluster:
    """Spread chief, workers, ps and evaluator over `hosts` in that order, one a host, then from the first host again.

    The tasks of one host get the ports `port`, `port + 1`, …; a host written as `name:port` counts from its own.
    Raises InputError for hosts and counts that make no cluster.
    """
    places = [_place(host, port) for host in hosts]
    twice = [name for name, count in collections.Counter(name for name, _ in places).items() if count > 1]
    if not places or twice:
        raise InputError(f"{twice[0]} is named twice" if twice else "no host is given", hint="--hosts n1,n2,n3")
    if min(workers, ps) < 0 or not (workers or chief):
        raise InputError(f"{workers} workers and {ps} ps make no cluster", hint="--workers N with N from 1 on")
    wanted = {"chief": int(chief), "worker": workers, "ps": ps, "evaluator": int(evaluator)}
    jobs: dict[str, list[str]] = {}
    number = 0
    for kind, count in wanted.items():
        for _ in range(count):
            turn, at = divmod(number, len(places))
            name, first = places[at]
            if first + turn > _MAX_PORT:
                raise InputError(
                    f"{name} runs out of ports: {first + turn} is above {_MAX_PORT}", hint="a lower --port"
                )
            jobs.setdefault(kind, []).append(join_host_port(name, first + turn))
            number += 1
    return Cluster.dense(jobs)


def _place(host: str, port: int) -> tuple[str, int]:
    """Host without brackets, and its first port."""
    written = host.strip()
    bare = written.count(":") > 1 and not written.startswith("[")
    ported = not bare and written.rpartition("]")[2].count(":") == 1
    text = written if ported else join_host_port(written, port) if bare else f"{written}:{port}"
    address = read(text)
    wrong = [fault for fault in address.faults if fault.id not in {"address-ipv6", "address-underscore"}]
    if wrong or address.port is None:
        why = wrong[0].message if wrong else "it has no port"
        raise InputError(f"{shown(host)} is no host: {why}", hint="write a name, an IP address, or name:port")
    return address.host, address.port


def _bare(name: str) -> str:
    """The host of a name or address, in the form that compares."""
    address = read(name)
    return address.canonical if address.host else name.strip().casefold()


def _short(name: str) -> str:
    """The name up to the first dot; an IP address whole."""
    return name if ":" in name or name.replace(".", "").isdigit() else name.partition(".")[0]


def _several(names: Sequence[str]) -> str:
    return ", ".join(brief(name) for name in names[:_SHOWN]) + (
        f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    )
