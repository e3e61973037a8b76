"""Which cores of its host each task may use: whole cores, near each other, and no two tasks where one would do."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Mapping, Sequence

from phalanx.names import TaskId, many
from phalanx.plan.host import Core, Host
from phalanx.plan.outline import Outline
from phalanx.plan.placement import fellows

#: By so much may the fullest set of cores be fuller than the emptiest: the tasks on it hold up their group.
_SKEW = 1.1


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Want:
    """One task of a host: the CPUs it has been promised, None for an even share, and the NUMA nodes of its GPUs."""

    task: TaskId
    cpus: int | None = None
    near: tuple[int, ...] = ()


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Split:
    """The CPUs of each task; none where pinning would slow them down, and then why."""

    cpus: Mapping[TaskId, tuple[int, ...]] = dataclasses.field(default_factory=dict)
    why: str = ""


@dataclasses.dataclass(slots=True)
class _Seat:
    """So many cores, for one task or for several that take turns."""

    size: int
    tasks: list[TaskId]
    near: tuple[int, ...]
    #: Whether it takes a part of what is left over: one that was promised a number gets that and no more.
    open: bool
    nodes: set[int] = dataclasses.field(default_factory=set)
    cores: list[Core] = dataclasses.field(default_factory=list)


def core_shares(
    outline: Outline, placed: Mapping[TaskId, Host], gpus: Mapping[TaskId, Iterable[int]]
) -> tuple[Mapping[TaskId, tuple[int, ...]], Mapping[int, str]]:
    """The CPUs that each task is pinned to, left out where it may use all; and by host why its tasks are not pinned.

    `gpus`: the places of each task's GPUs among those of its host.
    """
    if not outline.sharing.pin:
        return {}, {}
    cpus: dict[TaskId, tuple[int, ...]] = {}
    unpinned: dict[int, str] = {}
    for tasks in fellows(outline.tasks(), placed).values():
        host = placed[tasks[0]]
        wants = [
            Want(
                task=task,
                cpus=outline.role(task.type).cpus,
                near=tuple(dict.fromkeys(node for gpu in gpus.get(task, ()) for node in host.gpu_nodes[gpu : gpu + 1])),
            )
            for task in tasks
        ]
        found = split(host.nodes, wants) if host.nodes else Split(why=host.unpinned)
        cpus.update({task: mine for task, mine in found.cpus.items() if len(mine) < host.cpus})
        if found.why and len(tasks) > 1:
            unpinned[host.id] = found.why
    return cpus, unpinned


def split(nodes: Sequence[Sequence[Core]], wants: Sequence[Want]) -> Split:
    """Whole cores for each, within one NUMA node where it fits and near its GPUs. Pure, deterministic.

    What divides unevenly is shared by all that were promised nothing: a task with a core less would hold up its
    group. Where there are more tasks than cores, equal numbers of them share equal sets of cores; where that cannot be
    done, nobody is pinned.
    """
    total = sum(map(len, nodes))
    width = min((len(core) for node in nodes for core in node), default=1)
    seats = [
        _Seat(size=-(-want.cpus // width), tasks=[want.task], near=want.near, open=False)
        for want in wants
        if want.cpus is not None
    ]
    claimed = sum(seat.size for seat in seats)
    rest, others = total - claimed, [want for want in wants if want.cpus is None]
    if rest < 0 or (others and not rest):
        return Split(why=f"the cpus of its tasks are {many(claimed, 'core')} of {total}, which leaves some task none")
    sets = _sets(len(others), rest)
    if sets == 1 < len(others):
        return Split(why=f"{len(others)} tasks on {many(rest, 'core')} go fastest when none is pinned")
    for first in range(sets):
        group = others[first::sets]
        near = tuple(dict.fromkeys(node for want in group for node in want.near))
        seats.append(_Seat(size=rest // sets, tasks=[want.task for want in group], near=near, open=True))
    _seat(seats, [list(node) for node in nodes])
    return Split(cpus={task: _cpus(seat.cores) for seat in seats for task in seat.tasks})


def _sets(tasks: int, cores: int) -> int:
    """Into how many equal sets the cores are cut: one for each task, or for equal numbers of tasks."""
    if tasks <= cores or -(-tasks // cores) <= _SKEW * (tasks // cores):
        return min(tasks, cores)
    return math.gcd(tasks, cores)


def _seat(seats: Sequence[_Seat], free: list[list[Core]]) -> None:
    """Take the cores out of `free`: first those who must be near something, then the large ones."""
    for seat in sorted(seats, key=lambda seat: (not seat.near, -seat.size)):
        _take(seat, free)
    left = [seat for seat in seats if seat.open]
    if not left:
        return
    # A node's own are best left to its own tasks; but only where that leaves nobody behind.
    local = all(len(seat.nodes) == 1 for seat in left)
    sharers = [sum(node in seat.nodes for seat in left) for node in range(len(free))]
    even = len({(len(cores), count) for cores, count in zip(free, sharers, strict=True) if cores or count}) == 1
    for seat in left:
        for node, cores in enumerate(free):
            if not (local and even) or node in seat.nodes:
                seat.cores += cores


def _take(seat: _Seat, free: list[list[Core]]) -> None:
    """All from one node where one has room: a near one, then, for an even share, the first, else the emptiest."""
    order = sorted(range(len(free)), key=lambda node: (node not in seat.near, 0 if seat.open else -len(free[node])))
    whole = next((node for node in order if len(free[node]) >= seat.size), None)
    for node in order if whole is None else [whole]:
        taken = free[node][: seat.size - len(seat.cores)]
        del free[node][: len(taken)]
        seat.cores += taken
        seat.nodes |= {node} if taken else set()


def _cpus(cores: Iterable[Core]) -> tuple[int, ...]:
    return tuple(sorted(cpu for core in cores for cpu in core))
