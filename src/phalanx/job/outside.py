"""Mistakes about roles of one's own, which stay outside the cluster, and about `command: server`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from phalanx.job.complaint import Loc
from phalanx.job.fields import SERVER
from phalanx.job.model import Job, Role
from phalanx.job.nearest import nearest
from phalanx.names import KNOWN_TYPES, an
from phalanx.plan.bind import PLACEHOLDERS
from phalanx.plan.lent import MOST, OWN

_OTHER_NAMES = {
    "master": "chief",
    "coordinator": "chief",
    "ps_hosts": "ps",
    "worker_hosts": "worker",
    "parameter_server": "ps",
    "eval": "evaluator",
}


def mistakes(job: Job, *, has_ps: bool) -> Iterator[tuple[Loc, str]]:
    """What cannot work, each at its place. `has_ps`: the job has a ps, defaults applied."""
    for name, role in job.roles.items():
        loc = ("roles", name)
        if name in KNOWN_TYPES:
            yield from _of_the_cluster(loc, role)
        else:
            yield from _of_ones_own(job, loc, role)
        if role.command == SERVER and (name not in ("worker", "ps") or not has_ps):
            what = "only a worker or a ps" if name not in ("worker", "ps") else f"a {name} beside a ps"
            yield (
                (*loc, "command"),
                f"`server` runs tf.distribute.Server, which {what} of ParameterServerStrategy needs; name a script",
            )
    if job.command == SERVER:
        words = "the chief needs a script: name it here, and give `command: server` to roles.worker and roles.ps"
        yield ("command",), words
    lent = sum(role.count for role in job.roles.values() if role.port)
    if lent > MOST:
        last = [name for name, role in job.roles.items() if role.port][-1]
        yield (
            ("roles", last, "port"),
            f"{lent:,} tasks with a port, and every task is told of each: {MOST:,} at most; leave port out",
        )
    yield from _unfilled(job)


def _of_the_cluster(loc: Loc, role: Role) -> Iterator[tuple[Loc, str]]:
    name = loc[-1]
    if role.port:
        yield (
            (*loc, "port"),
            f"TF_CONFIG tells the address of {an(str(name))}; port is for roles of your own: leave it out",
        )
    if "failure" in role.model_fields_set:
        words = "follows from the strategy; failure is for roles of your own: leave it out"
        yield (*loc, "failure"), f"what the failure of {an(str(name))} means {words}"


def _of_ones_own(job: Job, loc: Loc, role: Role) -> Iterator[tuple[Loc, str]]:
    name = str(loc[-1])
    meant = _OTHER_NAMES.get(name) or nearest(name.removesuffix("s"), KNOWN_TYPES)
    if meant:
        yield (
            loc,
            f"`{name}` is no task type of TensorFlow; did you mean `{meant}`? (name a role of your own unlike it)",
        )
        return
    if role.command is None:
        yield (
            loc,
            f"`{name}` needs a command of its own: TensorFlow knows no such type, so the job's would train alone",
        )
    if role.in_cluster and job.strategy in ("auto", "mwms", "ps"):
        yield (*loc, "in_cluster"), f"TensorFlow refuses a cluster with a task type `{name}`; leave in_cluster out"
    elif role.in_cluster and role.port:
        yield (*loc, "port"), "a role in the cluster has an address there; leave out port or in_cluster"
    if role.port and name in (*PLACEHOLDERS, *OWN):
        yield loc, f"{{{name}}} means something else in commands already; give the role another name"


def _unfilled(job: Job) -> Iterator[tuple[Loc, str]]:
    """An address that is named and will not be there: the text would stay as it is."""
    without = [name for name, role in job.roles.items() if not role.port and name not in KNOWN_TYPES]
    for loc, text, own in _texts(job):
        for name in without:
            if "{" + name + "}" in text:
                yield loc, f"{{{name}}} stands for addresses, and {name} has none; say `port: on` in roles.{name}"
        if own is not None and not job.roles[own].port:
            for word in OWN:
                if "{" + word + "}" in text:
                    yield loc, f"{{{word}}} stands for an address, and {own} has none; say `port: on` in roles.{own}"


def _texts(job: Job) -> Iterator[tuple[Loc, str, str | None]]:
    """Every word of a command and every variable, with the role of one's own that it is said of."""
    yield from ((("command", number), word, None) for number, word in enumerate(job.command))
    yield from _variables(("env",), job.env, None)
    for name, role in job.roles.items():
        own = None if name in KNOWN_TYPES else name
        yield from ((("roles", name, "command", number), word, own) for number, word in enumerate(role.command or ()))
        yield from _variables(("roles", name, "env"), role.env, own)


def _variables(loc: Loc, env: Mapping[str, str], own: str | None) -> Iterator[tuple[Loc, str, str | None]]:
    yield from (((*loc, name), value, own) for name, value in env.items())
