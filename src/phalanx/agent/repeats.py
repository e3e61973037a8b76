"""What of an order is new: a lead that has taken over does not know what its predecessor had ordered."""

from __future__ import annotations

import dataclasses

from phalanx.names import TaskId
from phalanx.protocol.messages import Order

#: A generation, and an attempt in it.
Start = tuple[int, int]


class Repeats:
    """Remembers which attempts were prepared and started, so that saying it again starts nothing twice."""

    def __init__(self) -> None:
        """Nothing was ordered yet."""
        self._prepared: dict[TaskId, Start] = {}
        self._gone: dict[TaskId, Start] = {}

    def new_of(self, order: Order) -> Order | None:
        """The order without what was carried out already; None where nothing is left of it."""
        match order.kind:
            case "prepare":
                return self._prepare(order)
            case "go":
                return self._go(order)
        return order

    def _prepare(self, order: Order) -> Order | None:
        new = [task for task in order.tasks if (order.generation, task.attempt) > self._prepared.get(task.id, (0, 0))]
        self._prepared |= {task.id: (order.generation, task.attempt) for task in new}
        if len(new) == len(order.tasks):
            return order
        return dataclasses.replace(order, tasks=tuple(new)) if new else None

    def _go(self, order: Order) -> Order | None:
        mine = order.ids or [task for task, (generation, _) in self._prepared.items() if generation == order.generation]
        new = {task: self._prepared[task] for task in mine if task in self._prepared}
        new = {task: start for task, start in new.items() if start > self._gone.get(task, (0, 0))}
        self._gone |= new
        if len(new) == len(mine):
            return order
        return dataclasses.replace(order, ids=tuple(new)) if new else None
