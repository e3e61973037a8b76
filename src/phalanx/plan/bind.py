"""Outline + living hosts + generation → Plan. Pure; the only place that makes a TF_CONFIG."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from phalanx.errors import PlaceError
from phalanx.names import TaskId, join_host_port
from phalanx.plan.cores import core_shares
from phalanx.plan.gpus import gpu_shares
from phalanx.plan.host import Host
from phalanx.plan.lent import addresses_variable, lent_addresses, own_words
from phalanx.plan.outline import Outline, Role, Strategy
from phalanx.plan.placement import place
from phalanx.plan.plan import Plan, PlannedTask
from phalanx.plan.threads import QUEUES, thread_settings
from phalanx.tfconfig.bodies import Bodies, Body
from phalanx.tfconfig.model import Cluster


def bind(outline: Outline, hosts: Sequence[Host], *, run: str, generation: int) -> Plan:
    """Number the tasks 0..n-1 over the living hosts and give each its host, address and TF_CONFIG.

    Hosts are taken by id, whatever order they joined in. Raises PlaceError where hosts, GPUs or held ports do not
    suffice.
    """
    hosts = tuple(sorted(hosts, key=lambda host: host.id))
    placed = place(outline, hosts)
    addresses = _addresses(outline, placed)
    cluster = _cluster(outline, addresses)
    bodies = Bodies(cluster, strategy=outline.strategy.value) if cluster else None
    gpus = gpu_shares(outline, placed)
    cpus, unpinned = core_shares(outline, placed, gpus.places)
    threads = thread_settings(outline, placed, cpus)
    lent = lent_addresses(outline, addresses)
    told = {kind: ",".join(places) for kind, places in lent.items()}
    extra = _proxy_exception(outline, hosts) | addresses_variable(lent)
    tasks = []
    for task in outline.tasks():
        role, host = outline.role(task.type), placed[task]
        folder = f"{host.folder}/tasks/{task.folder}"
        words = {"run": run, "task_dir": folder, "generation": str(generation), "checkpoint": outline.checkpoint or ""}
        words |= told | own_words(addresses[task] if role.port else None)
        body = bodies.of(task) if bodies and role.in_cluster else None
        tasks.append(
            PlannedTask(
                id=task,
                host=host.id,
                argv=tuple(fill(word, words) for word in role.command),
                env=extra
                | _heartbeat(outline, body)
                | _served(outline, addresses.get(task))
                | threads[task]
                | gpus.env(outline, task, host)
                | {
                    "PYTHONUNBUFFERED": "1",  # a pipe is block-buffered, and kill -9 would lose the last lines
                    "PHALANX_RUN": run,
                    "PHALANX_TASK": str(task),
                    "PHALANX_TASK_DIR": folder,
                    "PHALANX_GENERATION": str(generation),
                    "PHALANX_ATTEMPT": "1",
                }
                | {name: fill(value, words) for name, value in role.env.items()},
                address=addresses.get(task),
                rank=cluster.rank(task) if cluster else None,
                tail=body.tail if body else None,
                head=body.head if body and bodies and body.head != bodies.head else None,
                cpus=cpus.get(task, ()),
            ),
        )
    return Plan(
        run=run,
        generation=generation,
        outline=outline,
        hosts=hosts,
        tasks=tuple(tasks),
        cluster=cluster,
        head=bodies.head if bodies else "",
        unpinned=unpinned,
    )


def fill(word: str, words: Mapping[str, str]) -> str:
    """Replace `{run}` and its like; any other brace is the user's own and stays."""
    for name, value in words.items():
        word = word.replace("{" + name + "}", value)
    return word


def serves(outline: Outline, role: Role) -> bool:
    """Whether the role's tasks have an address: in the cluster, where the evaluator runs no server (R02), or lent."""
    in_cluster = role.in_cluster and role.type != "evaluator" and outline.strategy is not Strategy.NONE
    return in_cluster or role.port


def _addresses(outline: Outline, placed: Mapping[TaskId, Host]) -> dict[TaskId, str]:
    used: dict[int, int] = {}
    addresses: dict[TaskId, str] = {}
    for task in outline.tasks():
        if not serves(outline, outline.role(task.type)):
            continue
        host = placed[task]
        number = used.get(host.id, 0)
        if number >= len(host.ports):
            message = f"{host.name} holds {len(host.ports)} ports, and {task} needs one more"
            raise PlaceError(message, hint="widen --ports A-B, or put fewer tasks on a host")
        used[host.id] = number + 1
        addresses[task] = join_host_port(host.address, host.ports[number])
    return addresses


def _cluster(outline: Outline, addresses: Mapping[TaskId, str]) -> Cluster | None:
    """One cluster for all; none for a job of a single task, whose TF_CONFIG would only change how it behaves (R26)."""
    jobs: dict[str, list[str]] = {}
    for task, address in addresses.items():
        if outline.role(task.type).in_cluster:
            jobs.setdefault(task.type, []).append(address)
    if not jobs or (outline.is_alone() and not outline.force_tf_config):
        return None
    return Cluster.dense(jobs)


def _served(outline: Outline, address: str | None) -> dict[str, str]:
    if not address:
        return {}
    # The agent holds the port; TensorFlow may share it only when told so (facts §13).
    return {"TF_GRPC_REUSE_PORT": "1"} | ({QUEUES: "1"} if outline.sharing.queues else {})


def _heartbeat(outline: Outline, body: Body | None) -> dict[str, str]:
    """For the runtime, which hands it to TensorFlow: in milliseconds."""
    limit = outline.policies.health.heartbeat
    if body is None or not limit or not outline.runtime or outline.strategy is not Strategy.MWMS:
        return {}
    return {"PHALANX_HEARTBEAT": f"{1000 * limit:.0f}"}


def _proxy_exception(outline: Outline, hosts: Sequence[Host]) -> dict[str, str]:
    """What gRPC needs: it sends even loopback traffic to a proxy, and then hangs in silence (facts §9, R46)."""
    if outline.no_proxy is None:
        return {}
    names = [part for part in outline.no_proxy.split(",") if part]
    names += [name for host in hosts for name in (host.address, host.name)]
    text = ",".join(dict.fromkeys([*names, "localhost", "127.0.0.1"]))
    return {"no_proxy": text, "NO_PROXY": text}


#: What a command or a role's environment may contain; `fill` knows no other.
PLACEHOLDERS = ("run", "task_dir", "generation", "checkpoint")
