"""Everything about a job but the addresses: known on the user's machine before any host has answered."""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Mapping

from phalanx.names import TRAINING_TYPES, TaskId, training_order
from phalanx.plan.policies import Policies


class Strategy(enum.Enum):
    """Which tf.distribute strategy the script builds; it decides what a failure means."""

    MWMS = "mwms"
    PS = "ps"
    ESTIMATOR = "estimator"
    #: Tasks that do not talk to each other through TensorFlow.
    NONE = "none"


class Failure(enum.Enum):
    """What it means that a task of a role of one's own has failed."""

    #: It starts again alone, at its address; the job fails once no restart is left.
    ALONE = "alone"
    #: Everybody starts again.
    GROUP = "group"
    #: It starts again alone; once no restart is left the job goes on without it.
    IGNORE = "ignore"


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Interpreter:
    """The Python that runs the script, and what its metadata says is installed (never imported to find out)."""

    path: str
    version: str = ""
    tensorflow: str = ""
    keras: str = ""
    tf_keras: str = ""
    #: Why this one: `--python`, `$VIRTUAL_ENV`, `PATH`, `phalanx's own`.
    chosen_by: str = ""


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Secret:
    """A value that reaches the task and nothing else. Only its name travels in plans and records."""

    name: str
    env: str
    #: Where the value comes from on the user's machine: `env:NAME` or `file:PATH`.
    source: str


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Role:
    """`count` tasks of one type that run one command."""

    type: str
    count: int
    #: The exact argv. `{checkpoint} {run} {task_dir} {generation}` are filled in by `bind`.
    command: tuple[str, ...]
    env: Mapping[str, str] = dataclasses.field(default_factory=dict)
    #: The fewest and the most to go on with, for workers of an elastic job; None: `count`.
    min: int | None = None
    max: int | None = None
    #: At most this many on one host; None spreads them evenly.
    per_host: int | None = None
    cpus: int | None = None
    #: None leaves CUDA_VISIBLE_DEVICES alone; 0 hides every GPU.
    gpus: int | None = None
    #: Bytes; None is no claim.
    memory: int | None = None
    #: False keeps the role out of TensorFlow's `cluster` (R96).
    in_cluster: bool = True
    #: Of a role outside the cluster: whether each task gets an address that all others are told.
    port: bool = False
    #: Of a role outside the cluster: what the failure of one of its tasks means.
    failure: Failure = Failure.ALONE

    def tasks(self) -> tuple[TaskId, ...]:
        """Its tasks, by index."""
        return tuple(TaskId(self.type, i) for i in range(self.count))


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Sharing:
    """How tasks of one host share what it has. What the user's environment says already, nobody overrides."""

    #: Each has cores of its own (facts §6).
    pin: bool = True
    #: TF_NUM_INTRAOP_THREADS: what an even share of the host, or a limit of CPU time, is good for.
    threads: bool = True
    #: TF_NUM_INTEROP_THREADS=2 where a task has one CPU: with one thread a worker beside a ps hangs (facts §4).
    between: bool = True
    #: TF_GRPC_WORKER_CACHE_QUEUES=1: a third of the threads, at the same speed (facts §6).
    queues: bool = True
    #: GPUs are dealt out where roles say nothing (R67).
    gpus: bool = True
    #: TF_FORCE_GPU_ALLOW_GROWTH; None: where tasks share a GPU.
    growth: bool | None = None


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Outline:
    """A job, resolved: roles and counts, commands, policies. What `bind` turns into a Plan."""

    name: str
    roles: tuple[Role, ...]
    strategy: Strategy
    #: True where the user named the strategy, False where it follows from the roles.
    strategy_declared: bool = False
    #: True where every task of the cluster must come to listen: the strategy was declared, or the script names it.
    must_listen: bool = False
    #: Where the tasks' commands start.
    cwd: str
    interpreter: Interpreter | None = None
    #: How many hosts the job waits for.
    hosts: int = 1
    checkpoint: str | None = None
    #: `A-B` for firewalls, or None for phalanx's own pool.
    ports: tuple[int, int] | None = None
    #: `auto`, an interface or a CIDR.
    network: str = "auto"
    #: False runs the command exactly as written: nothing of ours inside the process.
    runtime: bool = True
    #: `auto` mends Keras 3 in memory where it fails, `legacy` takes tf_keras, `off` leaves it; off without runtime.
    keras: str = "auto"
    #: Gives a one-task job a TF_CONFIG too (R26, R27).
    force_tf_config: bool = False
    #: The user's own `no_proxy`, where a proxy is set; None where there is none (R46).
    no_proxy: str | None = None
    secrets: tuple[Secret, ...] = ()
    #: Files the job should leave behind; the report says which exist.
    outputs: tuple[str, ...] = ()
    policies: Policies = dataclasses.field(default_factory=Policies)
    sharing: Sharing = dataclasses.field(default_factory=Sharing)

    def tasks(self) -> tuple[TaskId, ...]:
        """Every task: chief, workers, ps, evaluator, others."""
        return tuple(sorted((task for role in self.roles for task in role.tasks()), key=training_order))

    def role(self, kind: str) -> Role:
        """The role of that type. Raises KeyError."""
        for role in self.roles:
            if role.type == kind:
                return role
        raise KeyError(kind)

    def is_alone(self) -> bool:
        """Whether it is a job of a single task, and stays one: TF_CONFIG would only change how it behaves (R26)."""
        return len(self.tasks()) == 1 and all((role.max or role.count) == role.count for role in self.roles)

    @property
    def leader(self) -> TaskId | None:
        """The task whose exit 0 is success: chief, else worker 0; None where nobody trains."""
        kinds = {role.type for role in self.roles if role.count}
        return next((TaskId(kind, 0) for kind in TRAINING_TYPES if kind in kinds), None)
