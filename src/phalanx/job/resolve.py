"""Job → Outline: every default applied, every command an argv. Pure; the facts about this machine are given."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Mapping, Sequence

from phalanx.errors import InputError, PlaceError
from phalanx.job import command, keras
from phalanx.job.advise import count_of
from phalanx.job.model import Job, port_range
from phalanx.names import KNOWN_TYPES, TRAINING_TYPES
from phalanx.plan.gpus import GROWTH, gpu_shares
from phalanx.plan.host import Host
from phalanx.plan.outline import Failure, Interpreter, Outline, Role, Secret, Sharing, Strategy
from phalanx.plan.placement import place
from phalanx.plan.policies import Grace, Health, Policies, Preflight, Restart
from phalanx.plan.preview import held_ports, preview_hosts
from phalanx.plan.threads import BETWEEN, QUEUES, WITHIN

_PROXIES = ("http_proxy", "https_proxy", "grpc_proxy", "all_proxy")
#: Agents hold the ports of the next generation as well, so that a restart needs no luck.
_GENERATIONS = 2
_URL = re.compile(r"[a-z][a-z0-9+.-]*://", re.IGNORECASE)


def resolve(
    job: Job,
    *,
    cwd: str,
    interpreter: Interpreter | None,
    environ: Mapping[str, str],
    machine: str = "localhost",
    has: Host | None = None,
) -> Outline:
    """The outline of a job that `advise` has no objection to.

    `cwd` is absolute; `interpreter` is what bare Python commands run under, None where there is none; `environ` is read
    for proxies, HOME and thread settings only; `has` is what this machine, `machine`, has, None where nobody looked.
    Raises InputError where hosts, GPUs or ports cannot suffice.
    """
    strategy = _strategy(job)
    roles = _roles(job, strategy, interpreter)
    outline = Outline(
        name=job.name or command.default_name(job.command),
        roles=roles,
        strategy=strategy,
        strategy_declared=job.strategy != "auto",
        cwd=cwd,
        interpreter=interpreter,
        hosts=job.hosts or max((-(-role.count // role.per_host) for role in roles if role.per_host), default=1),
        checkpoint=absolute(job.checkpoint, cwd, environ) if job.checkpoint else None,
        ports=port_range(job.ports) if job.ports else None,
        network=job.network,
        runtime=job.runtime,
        keras=keras.meant(job),
        force_tf_config=job.force_tf_config,
        no_proxy=_no_proxy([environ, *(role.env for role in roles)]),
        secrets=tuple(
            Secret(
                name=one.name,
                env=one.env or "",
                source=f"env:{one.source.env}"
                if one.source.env
                else f"file:{absolute(one.source.file or '', cwd, environ)}",
            )
            for one in job.secrets
        ),
        outputs=tuple(job.outputs),
        policies=_policies(job),
        sharing=_sharing(job, environ),
    )
    _check_room(outline, machine, has)
    return outline


def absolute(path: str, cwd: str, environ: Mapping[str, str]) -> str:
    """The same place for every task, whatever each makes its working folder; gs:// and its like stay."""
    if _URL.match(path):
        return path
    if path.startswith("~/") and environ.get("HOME"):
        path = environ["HOME"] + path[1:]
    return posixpath.normpath(posixpath.join(cwd, path))


def _strategy(job: Job) -> Strategy:
    """Auto: a ps asks for ParameterServerStrategy, two who must know each other for MultiWorkerMirroredStrategy."""
    if job.strategy != "auto":
        return Strategy(job.strategy)
    if count_of(job, "ps"):
        return Strategy.PS
    training = sum(count_of(job, kind) for kind in TRAINING_TYPES)
    worker = job.roles.get("worker")
    if worker is not None and (worker.max or 0) > worker.count:
        training += worker.max or 0
    return Strategy.MWMS if training + count_of(job, "evaluator") > 1 or job.force_tf_config else Strategy.NONE


def _roles(job: Job, strategy: Strategy, interpreter: Interpreter | None) -> tuple[Role, ...]:
    kinds = [*KNOWN_TYPES, *(name for name in job.roles if name not in KNOWN_TYPES)]
    gpus = _gpus(job, kinds, strategy)
    made = []
    for kind in kinds:
        count = count_of(job, kind) if kind in KNOWN_TYPES else job.roles[kind].count
        if not count:
            continue
        said = job.roles.get(kind)
        words = (said.command if said else None) or job.command
        made.append(
            Role(
                type=kind,
                count=count,
                command=command.with_interpreter(words, interpreter.path) if interpreter else tuple(words),
                env={**keras.variables(job), **job.env, **(said.env if said else {})},
                min=said.min if said else None,
                max=said.max if said else None,
                per_host=said.per_host if said else None,
                cpus=said.cpus if said else None,
                gpus=gpus[kind],
                memory=said.memory if said else None,
                in_cluster=kind in KNOWN_TYPES or bool(said and said.in_cluster),
                port=bool(said and said.port),
                failure=Failure(said.failure) if said else Failure.ALONE,
            ),
        )
    return tuple(made)


def _gpus(job: Job, kinds: list[str], strategy: Strategy) -> dict[str, int | None]:
    """Once workers say how many, nobody keeps all: a chief that trains gets a worker's share, others none (R67)."""
    said = {kind: job.roles[kind].gpus if kind in job.roles else None for kind in kinds}
    share = said["chief"] if said["worker"] is None else said["worker"]
    if share is None:
        return said
    rest = {"worker": share, "chief": 0 if strategy is Strategy.PS else share}
    return {kind: rest.get(kind, 0) if count is None else count for kind, count in said.items()}


def _no_proxy(environs: Sequence[Mapping[str, str]]) -> str | None:
    """The user's own exceptions, where his environment or that of a role sets a proxy: one such task is enough."""
    if not any(one.get(name) or one.get(name.upper()) for one in environs for name in _PROXIES):
        return None
    return ",".join(text for one in environs if (text := one.get("no_proxy") or one.get("NO_PROXY")))


def _policies(job: Job) -> Policies:
    return Policies(
        health=Health(
            start=job.health.start,
            silence=job.health.silence,
            hang=job.health.hang,
            finish=job.health.finish,
            heartbeat=job.health.heartbeat,
            evaluator=job.health.evaluator,
        ),
        grace=Grace(stop=job.grace.stop, failure=job.grace.failure),
        restart=Restart(max=job.restart.max, within=job.restart.within, standbys=job.restart.standbys),
        preflight=Preflight(on=job.preflight.run, ignore=tuple(job.preflight.ignore)),
    )


def _sharing(job: Job, environ: Mapping[str, str]) -> Sharing:
    """What the user's environment says stays as it is; a role's own variables come later and win anyway."""
    said = job.placement
    return Sharing(
        pin=said.pin,
        threads=said.threads and WITHIN not in environ,
        between=BETWEEN not in environ,
        queues=said.threads and QUEUES not in environ,
        gpus=said.gpus,
        growth=False if said.gpu_growth is None and GROWTH in environ else said.gpu_growth,
    )


def _ports(outline: Outline) -> int:
    """All that are held at once; 0 where the hosts do not suffice, which is told by itself."""
    try:
        return _GENERATIONS * sum(held_ports(outline))
    except PlaceError:
        return 0


def _check_room(outline: Outline, machine: str, has: Host | None) -> None:
    """The lead would find out when all hosts have joined; the numbers are known now."""
    if outline.ports and (room := outline.ports[1] - outline.ports[0] + 1) < (wanted := _ports(outline)):
        low, high = outline.ports
        raise InputError(
            f"the ports {low}-{high} are {room}, and this job needs {wanted}: one a task now, and one a task for the "
            "restart of the group, held from the start so that nobody else takes them",
            hint=f"widen them to {low}-{low + wanted - 1}",
        )
    try:
        hosts = preview_hosts(outline, name=machine, machine=has)
    except PlaceError as wrong:
        raise InputError(
            str(wrong).replace("joined", "declared"), hint="raise --hosts or --workers-per-host"
        ) from wrong
    try:
        gpu_shares(outline, place(outline, hosts))
    except PlaceError as wrong:
        raise InputError(str(wrong), hint=wrong.hint) from wrong
