"""What a job may not say yet, what cannot work, and what deserves a second thought: three tables over the whole job."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator
from typing import Any

from phalanx.decide.preflight import ROWS
from phalanx.job import command, outside
from phalanx.job.complaint import Loc
from phalanx.job.model import Job
from phalanx.job.nearest import nearest
from phalanx.names import KNOWN_TYPES, TRAINING_TYPES, an
from phalanx.redact import redact
from phalanx.script.check import RULES
from phalanx.tfconfig.finding import Severity


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class NotYet:
    """A field this version cannot keep yet. `*` stands for any role; `kept` are the values that change nothing."""

    at: Loc
    kept: tuple[object, ...]
    why: str
    instead: str


#: The one place for them: a promise that cannot be kept is refused, never ignored.
NOT_YET = (
    NotYet(
        at=("communication",),
        kept=("auto",),
        why="choosing the collectives from outside comes in a later release",
        instead="say it in the script, by tf.distribute.experimental.CommunicationOptions",
    ),
    NotYet(
        at=("network",),
        kept=("auto",),
        why="tasks of one machine meet at 127.0.0.1, and pods at their names; networks come with ssh",
        instead="leave it at auto",
    ),
    NotYet(at=("on", "local"), kept=({},), why="this machine has no settings yet", instead="leave on.local out"),
)

#: What one declaration says for other engines: kept in the file, and without a meaning here.
_ELSEWHERE: dict[Loc, str] = {
    ("image",): "on this machine tasks run under the interpreter that `phalanx plan` shows",
    ("placement", "together"): "on one machine all tasks are together",
    ("placement", "spread"): "this is one machine",
}

#: Where a job may run one day; each is refused until then.
ENGINES = ("local", "ssh", "slurm", "kubernetes")

#: What the preflight may be told to ignore: its own checks, and the rules on the script.
CHECKS = (*(row.id for row in ROWS), *(rule.id for rule in RULES))

#: Written by phalanx itself; a job that sets them would lie to its tasks.
_OURS = re.compile(r"TF_CONFIG\Z|TF_GRPC_REUSE_PORT\Z|PHALANX_")
_POINTER = re.compile(r"(?:/|\./|~/)\S*\Z")


def refusals(job: Job, engine: str | None) -> Iterator[tuple[Loc, str]]:
    """What this version cannot keep, each with where to go instead."""
    for row in NOT_YET:
        for loc, value in _values(job, row.at):
            if value not in row.kept:
                yield loc, f"{row.why}; {row.instead}"
    if engine is not None and engine != "local":
        yield ("--on",), _engine(engine)


def mistakes(job: Job) -> Iterator[tuple[Loc, str]]:
    """What TensorFlow would refuse, or worse, hang on."""
    for name, role in job.roles.items():
        loc = ("roles", name)
        if name in KNOWN_TYPES and role.in_cluster is False:
            yield (
                (*loc, "in_cluster"),
                f"{an(name)} that TF_CONFIG does not name would train alone; leave in_cluster out",
            )
        if name in ("chief", "evaluator") and role.count > 1:
            yield (*loc, "count"), f"TensorFlow takes at most one {name}, not {role.count}"
    yield from outside.mistakes(job, has_ps=bool(count_of(job, "ps")))
    yield from _elastic(job)
    yield from _who_trains(job)
    yield from _environment(job)
    yield from _commands(job)
    for number, check in enumerate(job.preflight.ignore):
        if check not in CHECKS:
            near = nearest(check, CHECKS)
            meant = f"did you mean {near}?" if near else f"there are {', '.join(CHECKS)}"
            yield ("preflight", "ignore", number), f"no check {check!r}; {meant}"


def warnings(job: Job, engine: str | None) -> Iterator[tuple[Loc, str, Severity, str, str]]:
    """Place, rule, severity, message and what to do: nothing here stops a job."""
    for loc, env in environments(job):
        for name, value in env.items():
            if looks_secret(name, value):
                entry = f"{{name: {name.lower()}, env: {name}, from: {{env: {name}}}}}"
                fix = f"secrets: [{entry}] keeps the value out of every record"
                yield (
                    (*loc, name),
                    "job-secret-in-env",
                    Severity.WARNING,
                    f"the value of {name} looks like a secret",
                    fix,
                )
    if count_of(job, "ps") and not count_of(job, "chief"):
        message = "no chief: ParameterServerStrategy V2 is driven by one, so nothing will use the ps"
        yield ("roles", "chief", "count"), "job-ps-without-chief", Severity.WARNING, message, "leave out --no-chief"
    yield from _unread(job, engine or "local")


def _unread(job: Job, engine: str) -> Iterator[tuple[Loc, str, Severity, str, str]]:
    """What one declaration says for other engines."""
    for name in ENGINES:
        if name != engine and name in job.on.model_fields_set:
            message = f"on.{name} is not read: this runs on {'this machine' if engine == 'local' else engine}"
            yield ("on", name), "job-engine-not-in-use", Severity.INFO, message, ""
    for at, meant in _ELSEWHERE.items():
        for loc, value in _values(job, at):
            if value is not None:
                yield loc, "job-not-here", Severity.INFO, f"{loc[-1]} is not read: {meant}", ""
    for field in ("memory",) if job.placement.pin else ("cpus", "memory"):
        for loc, value in _values(job, ("roles", "*", field)):
            if value is not None:
                message = f"{field} is a claim for engines that schedule; this machine does not enforce it"
                yield loc, "job-claim-not-enforced", Severity.INFO, message, ""


def looks_secret(name: str, value: str) -> bool:
    """Whether a variable seems to hold a credential: by its name or its shape; a path is none."""
    written = f"{name}={value}"
    return redact(written) != written and not _POINTER.match(value)


def count_of(job: Job, kind: str) -> int:
    """How many tasks of the role there will be, defaults applied.

    A ps implies one chief; without a chief of its own or beside a ps there is one worker.
    """
    if kind in job.roles:
        return job.roles[kind].count
    has_ps = "ps" in job.roles and job.roles["ps"].count > 0
    if kind == "chief":
        return int(has_ps)
    if kind == "worker":
        return int(has_ps or not ("chief" in job.roles and job.roles["chief"].count))
    return 0


def _engine(engine: str) -> str:
    if engine.partition(":")[0] in ENGINES:
        return f"{engine.partition(':')[0]} comes in a later release; leave --on out to run on this machine"
    near = nearest(engine, ENGINES)
    return f"no engine {engine!r}; " + (f"did you mean {near}?" if near else f"known are {', '.join(ENGINES)}")


def _elastic(job: Job) -> Iterator[tuple[Loc, str]]:
    """A range of workers: TensorFlow has one strategy that resumes in another size."""
    for name, role in job.roles.items():
        for key, wrong in (("min", (role.min or 0) > role.count), ("max", (role.max or role.count) < role.count)):
            value = getattr(role, key)
            if value is None:
                continue
            loc = ("roles", name, key)
            if name != "worker":
                yield loc, f"only workers can be more or fewer; leave {key} out of {name}"
            elif job.strategy in ("ps", "none", "estimator") or count_of(job, "ps"):
                yield loc, f"only MultiWorkerMirroredStrategy goes on in another size; leave {key} out"
            elif wrong:
                yield loc, f"{key} is {value}, and the run begins with {role.count} workers: min <= workers <= max"


def _who_trains(job: Job) -> Iterator[tuple[Loc, str]]:
    counts = {kind: count_of(job, kind) for kind in KNOWN_TYPES}
    where: Loc = ("roles", "worker", "count") if "worker" in job.roles else ("roles",)
    if not any(counts[kind] for kind in TRAINING_TYPES):
        yield where, "no chief and no worker: nobody would train; ask for at least one: --workers 1, or --chief"
    elif counts["ps"] and not counts["worker"]:
        yield where, "a ps serves workers, and there is none"
    if job.strategy == "mwms" and counts["ps"]:
        yield (
            ("strategy",),
            "mwms with a ps hangs: its leader would be ps:0, which never answers; leave out the ps, or say ps",
        )
    if job.strategy == "none" and counts["ps"]:
        yield ("strategy",), "none gives nobody a TF_CONFIG, so nobody would find the ps; say ps, or leave the ps out"
    if job.strategy == "none" and job.force_tf_config:
        yield ("force_tf_config",), "strategy none gives nobody a TF_CONFIG; say mwms, or leave force_tf_config out"
    if job.strategy == "ps" and not counts["ps"]:
        yield ("strategy",), "ps needs at least one parameter server: --ps 1, or roles: {ps: {count: 1}}"
    if job.strategy == "estimator" and counts["ps"] and not counts["chief"]:
        yield ("strategy",), "an Estimator with a ps needs a chief"


def _environment(job: Job) -> Iterator[tuple[Loc, str]]:
    for loc, env in environments(job):
        for name in env:
            if _OURS.match(name):
                yield (*loc, name), f"{name} is written by phalanx; leave it out"
    for name, role in job.roles.items():
        if role.gpus is not None and "CUDA_VISIBLE_DEVICES" in {**job.env, **role.env}:
            where: Loc = ("roles", name, "env") if "CUDA_VISIBLE_DEVICES" in role.env else ("env",)
            yield (
                (*where, "CUDA_VISIBLE_DEVICES"),
                f"roles.{name}.gpus writes CUDA_VISIBLE_DEVICES; say it in one place",
            )
    taken: dict[str, str] = dict.fromkeys(job.env, "env")
    for number, secret in enumerate(job.secrets):
        if secret.env is None:
            continue
        if secret.env in taken:
            yield ("secrets", number, "env"), f"{secret.env} is set by {taken[secret.env]} already"
        elif _OURS.match(secret.env):
            yield ("secrets", number, "env"), f"{secret.env} is written by phalanx; choose another variable"
        taken.setdefault(secret.env, f"the secret {secret.name}")


def _commands(job: Job) -> Iterator[tuple[Loc, str]]:
    if job.checkpoint is not None:
        if used := command.placeholders([job.checkpoint]):
            yield ("checkpoint",), f"{{{min(used)}}} is filled in in commands only; name one folder for every run"
        return
    commands: list[tuple[Loc, list[str]]] = [(("command",), job.command), (("outputs",), job.outputs)]
    commands += [(("roles", name, "command"), role.command) for name, role in job.roles.items() if role.command]
    for loc, words in commands:
        for number, word in enumerate(words):
            if "checkpoint" in command.placeholders([word]):
                yield (*loc, number), "{checkpoint} is used and not set: --checkpoint DIR, or checkpoint: DIR"


def environments(job: Job) -> Iterator[tuple[Loc, dict[str, str]]]:
    """The variables of the job and of each role, with where they are said."""
    yield ("env",), job.env
    for name, role in job.roles.items():
        yield ("roles", name, "env"), role.env


def _values(job: Job, at: Loc) -> Iterator[tuple[Loc, Any]]:
    found: list[tuple[Loc, Any]] = [((), job)]
    for part in at:
        if part == "*":
            found = [((*loc, key), item) for loc, value in found for key, item in value.items()]
        else:
            found = [((*loc, part), getattr(value, str(part))) for loc, value in found]
    yield from found
