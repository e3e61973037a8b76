"""Which faults come when, from a seed. Pure: the same question has the same answer on every machine."""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Sequence

from phalanx.chaos.fault import Fault, Moment
from phalanx.chaos.kinds import KINDS, Aim
from phalanx.errors import InputError
from phalanx.names import TaskId


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Cast:
    """Who there is to be hit."""

    tasks: tuple[TaskId, ...]
    hosts: int


def draw(seed: int, *, count: int, every: float, kinds: Sequence[str], cast: Cast) -> tuple[Fault, ...]:
    """`count` faults, each half to one and a half times `every` seconds after the one before is over.

    Kinds come in shuffled rounds, so that each has its turn before one comes again. Raises InputError where a kind has
    nobody to hit: a pair in a job of one task.
    """
    dice = random.Random(seed)  # noqa: S311 - reproducible is the point
    found: list[Fault] = []
    round_: list[str] = []
    while len(found) < count:
        if not round_:
            round_ = list(kinds)
            dice.shuffle(round_)
        kind = round_.pop()
        target = _target(dice, kind, cast)
        found.append(Fault(kind=kind, target=target, when=Moment(gap=round(every * dice.uniform(0.5, 1.5), 2))))
    return tuple(found)


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
