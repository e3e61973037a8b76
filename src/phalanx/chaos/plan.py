"""Which faults come when, from a seed. Pure: the same question has the same answer on every machine."""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Sequence

from phalanx.chaos.fault import Fault, Moment
from phalanx.chaos.kinds import KINDS, Aim
from phalanx.decide.elastic import workers
from phalanx.errors import InputError
from phalanx.names import TaskId

#: Seconds after which a host that was hit at random is joined again, where the job cannot do without it.
BACK = 2.0


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Cast:
    """Who there is to be hit."""

    tasks: tuple[TaskId, ...]
    hosts: int
    #: The fewest and the most workers, where their number may change.
    sizes: tuple[int, int] | None = None


def draw(seed: int, *, count: int, every: float, kinds: Sequence[str], cast: Cast) -> tuple[Fault, ...]:
    """`count` faults, each half to one and a half times `every` seconds after the one before is over.

    Kinds come in shuffled rounds, so that each has its turn before one comes again. A lost host comes back after some
    seconds, but where the size may change: there the others go on. Raises InputError where a kind has nobody to hit: a
    pair in a job of one task, a size where there is but one.
    """
    dice = random.Random(seed)  # noqa: S311 - reproducible is the point
    found: list[Fault] = []
    round_: list[str] = []
    here = cast
    while len(found) < count:
        if not round_:
            round_ = list(kinds)
            dice.shuffle(round_)
        kind = round_.pop()
        target = _target(dice, kind, here)
        value: float | None = None
        if kind == "scale":
            size = _size(dice, here)
            value, here = float(size), _scaled(cast, size)
        elif kind == "agent" and cast.sizes is None:
            value = BACK
        gap = Moment(gap=round(every * dice.uniform(0.5, 1.5), 2))
        found.append(Fault(kind=kind, target=target, value=value, when=gap))
    return tuple(found)


def _size(dice: random.Random, here: Cast) -> int:
    now = workers(here.tasks)
    least, most = here.sizes or (now, now)
    others = [size for size in range(least, most + 1) if size != now]
    if not others:
        raise InputError("--kinds scale: this job has one size", hint="--min-workers 1")
    return dice.choice(others)


def _scaled(cast: Cast, size: int) -> Cast:
    others = tuple(task for task in cast.tasks if task.type != "worker")
    return dataclasses.replace(cast, tasks=(*others, *(TaskId("worker", index) for index in range(size))))


def _target(dice: random.Random, kind: str, cast: Cast) -> str:
    match KINDS[kind].aim:
        case Aim.TASK:
            return str(dice.choice(cast.tasks))
        case Aim.PAIR:
            if len(cast.tasks) < 2:  # noqa: PLR2004 - a pair
                raise InputError(f"--kinds {kind}: one task has no connection to cut", hint="--workers 2")
            return "-".join(map(str, dice.sample(cast.tasks, 2)))
        case Aim.HOST:
            return str(dice.randrange(cast.hosts))
    return ""
