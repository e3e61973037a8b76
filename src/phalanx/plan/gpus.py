"""Which GPUs of its host each task may see (R67): as roles say, else dealt out among those that train."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Mapping

from phalanx.errors import PlaceError
from phalanx.names import TRAINING_TYPES, TaskId, many
from phalanx.plan.host import Host
from phalanx.plan.outline import Outline, Role, Strategy

VISIBLE, GROWTH = "CUDA_VISIBLE_DEVICES", "TF_FORCE_GPU_ALLOW_GROWTH"

_NO_GPU = "leave --gpus-per-worker out, and it trains on the CPU"
_FEWER = "lower --gpus-per-worker or the number of workers a host"


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class GpuShares:
    """By task: the places of its GPUs among those of its host. A task that is left out sees what its user does."""

    places: Mapping[TaskId, tuple[int, ...]]
    #: Tasks that see GPUs which others see as well: the first of them would take all of the memory.
    shared: frozenset[TaskId] = frozenset()

    def env(self, outline: Outline, task: TaskId, host: Host) -> dict[str, str]:
        """The variables that say so."""
        env = {}
        mine = self.places.get(task)
        if mine is not None:
            env[VISIBLE] = ",".join(host.devices[at] if host.devices else str(at) for at in mine) or "-1"
        growth = outline.sharing.growth
        if growth or (growth is None and task in self.shared):
            env[GROWTH] = "true"
        return env


def gpu_shares(outline: Outline, placed: Mapping[TaskId, Host]) -> GpuShares:
    """Raises PlaceError where a host has fewer than its roles ask for."""
    taken: Counter[int] = Counter()
    places: dict[TaskId, tuple[int, ...]] = {}
    for role in outline.roles:
        for task in role.tasks() if role.gpus is not None else ():
            places[task] = _some(role.gpus or 0, task, placed[task], taken)
    unsaid = [role for role in outline.roles if role.gpus is None and VISIBLE not in role.env]
    if not outline.sharing.gpus or not any(host.gpus for host in placed.values()):
        return GpuShares(places=places)
    training = [task for role in unsaid if _trains(outline, role) for task in role.tasks()]
    places |= {task: () for role in unsaid if not _trains(outline, role) for task in role.tasks()}
    dealt = _deal(outline, {task: placed[task] for task in training}, taken)
    if dealt is None:
        return GpuShares(places=places, shared=frozenset(training if len(training) > 1 else ()))
    return GpuShares(places=places | dealt)


def _some(count: int, task: TaskId, host: Host, taken: Counter[int]) -> tuple[int, ...]:
    first = taken[host.id]
    if first + count > host.gpus:
        has = f"{host.gpus or 'none'}" + (f", and {first} of them taken" if first else "")
        message = f"{task} wants {many(count, 'GPU')}; {host.name} has {has}"
        raise PlaceError(message, hint=_FEWER if host.gpus else _NO_GPU)
    taken[host.id] = first + count
    return tuple(range(first, first + count))


def _trains(outline: Outline, role: Role) -> bool:
    return role.type in TRAINING_TYPES and not (role.type == "chief" and outline.strategy is Strategy.PS)


def _deal(
    outline: Outline, training: Mapping[TaskId, Host], taken: Counter[int]
) -> dict[TaskId, tuple[int, ...]] | None:
    """As many for each on a host, and for each of a group that reduces together (R62); None where they do not go round.

    Who would get all that a host has keeps the variable as it is.
    """
    fellows = Counter(host.id for host in training.values())
    share = {host.id: (host.gpus - taken[host.id]) // fellows[host.id] for host in training.values()}
    if not all(share.values()):
        return None
    least = min(share.values(), default=0)
    if outline.strategy is Strategy.MWMS:
        share = dict.fromkeys(share, least)
    return {
        task: _some(share[host.id], task, host, taken)
        for task, host in training.items()
        if share[host.id] < host.gpus or host.devices
    }
