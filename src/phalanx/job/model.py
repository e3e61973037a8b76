"""job.yaml as a pydantic model: every field, its unit, its default and why.

Values are strict: `count: "4"` is a mistake, not a number, and a `true` never becomes text. A key with nothing after
it counts as not written. What several fields say together is judged in `advise`.
"""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

from pydantic import Field, WithJsonSchema, field_serializer, field_validator, model_validator

from phalanx.job.fields import (
    ROLE_COMMAND_SCHEMA,
    SERVER,
    Duration,
    RoleName,
    Size,
    SomeTime,
    Switch,
    Text,
    Topology,
    VariableName,
    Word,
    command_words,
    role_command_words,
)
from phalanx.job.kubernetes import Kubernetes
from phalanx.job.part import Part

_PORTS = re.compile(r"(\d{1,5})\s*-\s*(\d{1,5})\Z", re.ASCII)
_LOWEST_PORT, _HIGHEST_PORT = 1024, 65535


class Role(Part):
    """Tasks of one type that run one command."""

    count: int = Field(default=1, ge=0, le=20_000, description="How many tasks of this type. Default 1.")
    min: int | None = Field(
        default=None,
        ge=1,
        description="Workers only: the fewest to go on with when a host is lost. Default: count.",
    )
    max: int | None = Field(
        default=None,
        ge=1,
        le=20_000,
        description="Workers only: the most to grow to, with further hosts or by `phalanx scale`. Default: count.",
    )
    cpus: int | None = Field(
        default=None,
        ge=1,
        description="CPUs a task asks its engine for, and is pinned to. Default: no claim, an even share of a host.",
    )
    gpus: int | None = Field(
        default=None,
        ge=0,
        description="GPUs a task may see; 0 hides them all. Default: CUDA_VISIBLE_DEVICES stays as it is. "
        "Set it where several tasks share a host, or each takes the memory of every GPU.",
    )
    memory: Size | None = Field(
        default=None, description="Memory a task asks its engine for, in bytes or as 32Gi, 512MB. Default: no claim."
    )
    per_host: int | None = Field(
        default=None, ge=1, description="At most this many on one host. Default: spread evenly over the hosts."
    )
    command: Annotated[list[Word], WithJsonSchema(ROLE_COMMAND_SCHEMA)] | None = Field(
        default=None,
        min_length=1,
        description="What this role runs instead; `server`, for the worker and ps of ParameterServerStrategy: "
        "tf.distribute.Server, with no script. Default: the job's command.",
    )
    env: dict[VariableName, Word] = Field(
        default_factory=dict,
        description="Variables added to those of the job. Default: none. Values are text: quote numbers.",
    )
    in_cluster: bool | None = Field(
        default=None,
        description="Whether TF_CONFIG names it. Default: yes for chief, worker, ps and evaluator; no for other roles, "
        "since TensorFlow refuses task types it does not know.",
    )
    port: Switch = Field(
        default=False,
        description="on or off, for a role of your own: each task gets an address, held until it listens there; "
        "{port} and {address} are its own, {NAME OF THE ROLE} those of all its tasks with commas between, in every "
        "command and env of the job; PHALANX_ADDRESSES tells them too. Default off.",
    )
    failure: Literal["alone", "group", "ignore"] = Field(
        default="alone",
        description="For a role of your own, what it means that one of its tasks has failed. alone: it starts again at "
        "its address, and the job fails once no restart is left; group: everybody starts again; ignore: it starts "
        "again, and the job goes on without it once no restart is left. Default alone.",
    )

    _list = field_validator("command", mode="before")(role_command_words)

    @field_serializer("command")
    def _as_written(self, words: list[str] | None) -> list[str] | str | None:
        return "server" if words == SERVER else words


class Restart(Part):
    """How often a failed group, or a task that may come back alone, is started again."""

    max: int = Field(
        default=3,
        ge=0,
        description="Restarts after failures of one kind. Default 3; 0: the first failure ends the job.",
    )
    within: Duration = Field(
        default=3600.0,
        description="The time those restarts are counted over, in seconds or as 1h; a newer checkpoint makes them "
        "whole again. Default 1h.",
    )
    standbys: int | None = Field(
        default=None,
        ge=0,
        description="Interpreters that each host keeps ready for the next generation, with the script's imports done "
        "(about 190 MB each with TensorFlow). Default: one a task while a fifth of the host's memory stays free; "
        "none where nothing is restarted.",
    )


class Health(Part):
    """Deadlines, since TensorFlow's own are an hour or none."""

    start: SomeTime = Field(
        default=300.0,
        description="From the start of a generation until every task listens, in seconds or as 5m; not 0. Default 5m: "
        "importing TensorFlow takes up to a minute on a cold disk; MultiWorkerMirroredStrategy itself waits an hour.",
    )
    silence: Duration | None = Field(
        default=None,
        description="A task without any sign of life for this long is stuck, in seconds or as 2m; 0: never. Signs are "
        "output, CPU time, bytes on its connections, an answer of its server. Default 2m for a task that has come to "
        "listen or to step; said here, it holds for every task.",
    )
    hang: Duration = Field(
        default=600.0,
        description="Without a step for this long, while others wait, a task hangs, in seconds or as 10m; 0: never. At "
        "least ten times the longest gap between two steps before; tracing, validation and saving do not count. "
        "Default 10m.",
    )
    heartbeat: Duration = Field(
        default=5.0,
        description="How long TensorFlow's own heartbeats may stay away before MultiWorkerMirroredStrategy gives a "
        "peer up, in seconds or as 5s; 0 leaves its ten seconds. Default 5s.",
    )
    finish: Duration = Field(
        default=600.0,
        description="Once one task has ended well, how long the others may go on, in seconds or as 10m. Default 10m.",
    )
    evaluator: Duration = Field(
        default=60.0,
        description="After success, how long an evaluator may score the last checkpoint, in seconds or as 1m. "
        "Default 1m.",
    )


class Grace(Part):
    """Between TERM and KILL."""

    stop: Duration = Field(
        default=10.0,
        description="After a stop somebody asked for, in seconds or as 10s. Default 10s: time to save a checkpoint.",
    )
    failure: Duration = Field(
        default=0.5,
        description="After another task has failed, in seconds. Default 0.5: the group cannot go on, and "
        "MultiWorkerMirroredStrategy ignores TERM.",
    )


class Preflight(Part):
    """What is looked at before TensorFlow starts."""

    run: Switch = Field(
        default=True, description="on or off: whether hosts, versions, folders and limits are looked at. Default on."
    )
    ignore: list[Text] = Field(
        default_factory=list,
        description="Checks, and rules on the script, by id, that stop nothing: docs/reference/preflight.md and "
        "docs/reference/check-script.md list them. Default: none.",
    )


class SecretSource(Part):
    """Where a secret's value is when the job starts: a variable, a file, or a Secret of Kubernetes."""

    env: VariableName | None = Field(default=None, description="A variable of your own environment.")
    file: Text | None = Field(default=None, description="A file; a newline at its end is not part of the value.")
    secret: Text | None = Field(default=None, description="Kubernetes: a Secret of the run's namespace.")
    key: Text | None = Field(default=None, description="Kubernetes: which key of that Secret.")

    @model_validator(mode="after")
    def _one(self) -> SecretSource:
        said = [self.env is not None, self.file is not None, self.secret is not None]
        if sum(said) != 1 or (self.key is None) != (self.secret is None):
            message = "name one source: {env: NAME}, {file: PATH}, or on Kubernetes {secret: NAME, key: KEY}"
            raise ValueError(message)
        return self


class Secret(Part):
    """A reference to a value; the value itself never stands in the file."""

    name: Text = Field(description="What logs and reports call it.")
    env: VariableName | None = Field(default=None, description="The variable the task finds it in; this or path.")
    path: Text | None = Field(
        default=None, description="The file the task finds it in, from / on: for a Secret of Kubernetes; this or env."
    )
    source: SecretSource = Field(
        alias="from",
        description="Where its value comes from: {env: NAME}, {file: PATH}, or on Kubernetes {secret: NAME, key: KEY}.",
    )

    @model_validator(mode="after")
    def _one_place(self) -> Secret:
        if (self.env is None) == (self.path is None):
            message = "say where the task finds it: env: NAME, or path: /FILE for a Secret of Kubernetes"
            raise ValueError(message)
        if self.path is not None and (self.source.secret is None or not self.path.startswith("/")):
            message = "path is a file from / on, and for a Secret of Kubernetes only; elsewhere say env: NAME"
            raise ValueError(message)
        return self


class Placement(Part):
    """Which hosts, and how the tasks of one share its cores and GPUs."""

    pin: Switch = Field(
        default=True,
        description="on or off: whether the tasks of a host get cores of their own. Default on, where that makes none "
        "of them slower; a task with cpus gets so many.",
    )
    threads: Switch = Field(
        default=True,
        description="on or off: whether TF_GRPC_WORKER_CACHE_QUEUES is set, and TF_NUM_INTRAOP_THREADS where tasks "
        "share a host or its CPU time is limited. Default on; what you set yourself stays.",
    )
    gpus: Switch = Field(
        default=True,
        description="on or off: whether a host's GPUs are dealt out among tasks that train, where no role says how "
        "many. Default on; off leaves CUDA_VISIBLE_DEVICES as it is.",
    )
    gpu_growth: Switch | None = Field(
        default=None,
        description="on or off: TF_FORCE_GPU_ALLOW_GROWTH, memory as it is needed in place of all at once. Default: on "
        "where tasks share a GPU.",
    )
    together: Topology | None = Field(
        default=None,
        description="Keep the tasks inside one zone, rack, switch or host, or one value of a label of nodes. "
        "Default: anywhere.",
    )
    spread: Topology | None = Field(
        default=None,
        description="Spread the tasks over zones, racks, hosts or the values of a label of nodes. Default: as the "
        "engine places them.",
    )


class On(Part):
    """Per engine; only the one in use is read."""

    local: dict[str, Any] = Field(default_factory=dict, description="This machine.")
    ssh: dict[str, Any] = Field(default_factory=dict, description="Hosts reached by ssh.")
    slurm: dict[str, Any] = Field(default_factory=dict, description="Slurm: partition, time and its like.")
    kubernetes: Kubernetes = Field(
        default_factory=Kubernetes, description="Kubernetes: namespace, queue, what is laid over its pods."
    )


class Job(Part):
    """What to train, with how many, and how patiently."""

    name: str | None = Field(
        default=None,
        pattern=r"^[a-z]([a-z0-9-]{0,38}[a-z0-9])?$",
        description="What the run is called: lower-case letters, digits and dashes, at most 40, as every engine "
        "accepts it. Default: the script's name.",
    )
    command: list[Word] = Field(
        min_length=1,
        description="What each task runs, one word an item; `train.py` and a bare `python` run under the interpreter "
        "that `phalanx plan` shows. {checkpoint}, {run}, {task_dir} and {generation} are filled in. Required.",
    )
    folder: Text | None = Field(
        default=None,
        description="Where commands start, and where relative paths of this file begin (scripts, checkpoint, python, "
        "outputs, secrets). Default: the folder of the file; without a file, where you are.",
    )
    strategy: Literal["auto", "mwms", "ps", "estimator", "none"] = Field(
        default="auto",
        description="Which tf.distribute strategy the script builds; it decides what a failure means. Default auto: ps "
        "where there is a ps role, mwms where two or more tasks train, else none.",
    )
    roles: dict[RoleName, Role] = Field(
        default_factory=dict,
        description="How many of each: chief, worker, ps, evaluator, or a role of your own. Default: one worker; a ps "
        "implies one chief (chief: {count: 0} for none).",
    )
    env: dict[VariableName, Word] = Field(
        default_factory=dict,
        description="Variables for every task, beside your own environment; text, so quote numbers. Default: none.",
    )
    checkpoint: Text | None = Field(
        default=None,
        description="The folder of checkpoints, one for all tasks, also {checkpoint} in commands. Default: none.",
    )
    restart: Restart = Field(
        default_factory=Restart, description="How often a failed group is started again. Default: never."
    )
    health: Health = Field(default_factory=Health, description="Deadlines: start, silence, hang, finish, evaluator.")
    grace: Grace = Field(default_factory=Grace, description="Between TERM and KILL: stop, failure.")
    preflight: Preflight = Field(
        default_factory=Preflight, description="Checks before TensorFlow starts: run, ignore. Default: all of them."
    )
    communication: Literal["auto", "ring", "nccl"] = Field(
        default="auto",
        description="What carries the collectives. Default auto: what the script says, else TensorFlow's choice.",
    )
    secrets: list[Secret] = Field(
        default_factory=list,
        description="Values that reach the tasks and no record: references, never the value. Default: none.",
    )
    placement: Placement = Field(
        default_factory=Placement,
        description="Which hosts, and how the tasks of one share its cores and GPUs. Default: as the engine gives "
        "hosts; cores and GPUs dealt out.",
    )
    network: Text = Field(
        default="auto",
        description="Which address tasks meet at: auto, an interface or a CIDR. Default auto: what reaches the lead.",
    )
    ports: str | None = Field(
        default=None,
        description="A-B: take ports from this range only, for firewalls. Default: phalanx's own pool, outside the "
        "ephemeral range.",
        json_schema_extra={"pattern": r"^\s*[0-9]{1,5}\s*-\s*[0-9]{1,5}\s*$"},
    )
    hosts: int | None = Field(
        default=None,
        ge=1,
        description="How many hosts to start on, simulated on one machine. Default: as many as per_host needs, else 1.",
    )
    image: Text | None = Field(
        default=None, description="The container image, best by digest; Kubernetes needs one. Default: none."
    )
    python: Text | None = Field(
        default=None,
        description="The interpreter for Python scripts. Default: the first with TensorFlow of $VIRTUAL_ENV, python, "
        "python3 on PATH, phalanx's own.",
    )
    keras: Literal["auto", "legacy", "off"] = Field(
        default="auto",
        description="auto, legacy or off: what makes Keras 3's fit work with several workers. Default auto: it is "
        "mended in memory where it fails; legacy trains with tf_keras (TF_USE_LEGACY_KERAS=1); off leaves Keras as it "
        "is.",
    )
    runtime: Switch = Field(
        default=True,
        description="on or off: whether phalanx may start the interpreter early and ride inside it. Default on; off "
        "runs the command exactly as written.",
    )
    force_tf_config: bool = Field(
        default=False,
        description="Give a job of one task a TF_CONFIG too. Default false: it only changes how a lone task behaves.",
    )
    outputs: list[Text] = Field(
        default_factory=list,
        description="Files the job should leave behind, also * and **, {checkpoint} and its like; the report says "
        "which are there, as the leader's host sees them at the end. Default: none.",
    )
    on: On = Field(default_factory=On, description="Settings per engine; only the one in use is read.")

    _list = field_validator("command", mode="before")(command_words)

    @field_validator("ports")
    @classmethod
    def _range(cls, value: str | None) -> str | None:
        if value is not None:
            port_range(value)
        return value


def port_range(text: str) -> tuple[int, int]:
    """`22000-22099` → its two ends. Raises ValueError saying what it wants."""
    found = _PORTS.match(text.strip())
    low, high = (int(found[1]), int(found[2])) if found else (0, 0)
    if not _LOWEST_PORT <= low <= high <= _HIGHEST_PORT:
        bounds = f"{_LOWEST_PORT} <= A <= B <= {_HIGHEST_PORT}"
        message = f"{text!r} is no range of ports; write A-B with {bounds}, such as 22000-22099"
        raise ValueError(message)
    return low, high
