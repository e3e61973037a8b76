"""What is measured again and again: how far a task is, and what two tasks have sent each other.

All counts are cumulative, so that a lost or thinned-out sample costs resolution and nothing else: a rate is the
difference of two samples of one attempt. Those of a task count from the start of its attempt and go back to zero with
the next one; compare only what has the same `generation` and `attempt`. `at` is the clock of the host that measured:
good for differences within one task, as good as the hosts' clocks between two.
"""

from __future__ import annotations

import dataclasses

from phalanx.names import TaskId


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class TaskSample:
    """What one task has done in this attempt up to a moment. None: not known, or not measured."""

    task: TaskId
    generation: int
    attempt: int
    #: Unix seconds.
    at: float
    #: Training steps done.
    steps: int
    #: The epoch it is in, from 1, and how many there will be: of `fit`, counted as the program counts them.
    epoch: int | None = None
    epochs: int | None = None
    #: Steps that make an epoch, and those done in this one.
    steps_per_epoch: int | None = None
    epoch_step: int | None = None
    #: The newest one known; it may be some steps old.
    loss: float | None = None
    #: Seconds inside collectives. Those that run side by side within one step count together, once.
    collective: float | None = None

    @property
    def about(self) -> tuple[TaskId, int, int]:
        """The attempt: what samples have in common that may be compared."""
        return self.task, self.generation, self.attempt


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class LinkSample:
    """What one task has sent to another. Measured from outside, at the sender or at the receiver."""

    source: TaskId
    target: TaskId
    #: Unix seconds.
    at: float
    #: Bytes since the connections between the two were made. Goes back where they are made anew.
    sent: int
    #: Seconds, the smoothed round trip as the kernel has it.
    rtt: float | None = None
    #: Seconds in which something was under way to the target, without those in which the target took nothing: what the
    #: link carries while it is asked to is `sent` by `busy`, however seldom it is asked (facts §11).
    busy: float | None = None

    @property
    def about(self) -> tuple[TaskId, TaskId]:
        """The link: what samples have in common that may be compared."""
        return self.source, self.target


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class LoadSample:
    """What one task has used, seen from outside: of every task, whether or not a runtime rides inside it."""

    task: TaskId
    generation: int
    attempt: int
    #: Unix seconds.
    at: float
    #: CPU seconds of its processes.
    cpu: float
    #: Bytes to and from the other tasks of its cluster.
    sent: int = 0
    received: int = 0
    #: Seconds for which the machine's CPUs were busy, all together, whoever kept them so; and how many there are. None:
    #: nobody told. What is beyond the tasks' own is other programs'.
    busy: float | None = None
    cpus: int = 0

    @property
    def about(self) -> tuple[TaskId, int, int]:
        """The attempt: what samples have in common that may be compared."""
        return self.task, self.generation, self.attempt
