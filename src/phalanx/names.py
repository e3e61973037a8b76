"""What a task and an address are called, the same in every log, label, file name and message."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Sequence

#: The task types TensorFlow trains with, in training order (multi_worker_util.py puts the chief first).
TRAINING_TYPES = ("chief", "worker")
#: Every type that `tf.distribute` knows; others are extra roles, launched but kept out of `cluster` (R96).
KNOWN_TYPES = ("chief", "worker", "ps", "evaluator")

_TASK = re.compile(r"(?P<type>[a-z][a-z0-9_-]*):(?P<index>0|[1-9][0-9]*)\Z")


@dataclasses.dataclass(frozen=True, slots=True, order=True)
class TaskId:
    """One member of a cluster: a task type and its index in that type's address list. Prints `worker:3`."""

    type: str
    index: int

    @classmethod
    def parse(cls, text: str) -> TaskId:
        """Read `worker:3`. Raises ValueError with the form it wants."""
        found = _TASK.match(text)
        if found is None:
            message = f"{text!r} is no task; write TYPE:INDEX, such as worker:0"
            raise ValueError(message)
        return cls(found["type"], int(found["index"]))

    @property
    def folder(self) -> str:
        """The name of its folder under `logs/`: `worker_3`."""
        return f"{self.type}_{self.index}"

    def __str__(self) -> str:
        return f"{self.type}:{self.index}"


def training_order(task: TaskId) -> tuple[int, str, int]:
    """Sort key: chief, worker, ps, evaluator, then extra roles by name; each by index."""
    place = KNOWN_TYPES.index(task.type) if task.type in KNOWN_TYPES else len(KNOWN_TYPES)
    return (place, task.type, task.index)


def an(name: str) -> str:
    """`a worker`, `an evaluator`: a role in a sentence."""
    return f"{'an' if name[:1] in 'aeio' else 'a'} {name}"


def many(number: int, noun: str) -> str:
    """`1 worker`, `4 workers`: so many in a sentence."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def some(names: Sequence[str], most: int) -> str:
    """`a, b, c and 4 more`: of many the first ones."""
    more = len(names) - most
    return ", ".join(names) if more <= 0 else f"{', '.join(names[:most])} and {more} more"


def join_host_port(host: str, port: int) -> str:
    """`n7:2222`, and `[fd00::1]:2222` for IPv6."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
