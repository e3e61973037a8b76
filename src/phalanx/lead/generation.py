"""A plan as orders: what each agent is told to prepare, and when to go. Pure."""

from __future__ import annotations

import dataclasses
import functools
import hashlib
from collections.abc import Iterable, Mapping

from phalanx.decide.hang import stacks_due
from phalanx.decide.health import patience
from phalanx.events import Event, GenerationBound, LeaderSucceeded, Noted, OutputsAsked, TaskPlace
from phalanx.names import TaskId
from phalanx.plan.checklist import Checklist, checklists
from phalanx.plan.lent import names_addresses
from phalanx.plan.outline import Outline, Role, Strategy
from phalanx.plan.plan import Plan, PlannedTask
from phalanx.protocol.messages import Order, StartTask, pack
from phalanx.states import RunState

#: How many seconds after the leader other hosts start their tasks. A worker that is up before the leader backs off
#: for a second; with the leader 0.3–0.4 s ahead none does (facts §6).
HEAD_START = 0.3

#: No other generation follows: standbys may go.
LAST = Order(seq=0, epoch=0, kind="last")


def bound_events(plan: Plan, now: float) -> tuple[Event, ...]:
    """What the records say of a plan; with the first generation also why some tasks have no standby, or no cores."""
    places = tuple(TaskPlace(task=t.id, host=t.host, address=t.address, rank=t.rank, cpus=t.cpus) for t in plan.tasks)
    digest = hashlib.sha256(plan.head.encode()).hexdigest() if plan.head else ""
    bound = GenerationBound(time=now, generation=plan.generation, places=places, cluster=digest)
    notes = (_standby_note(plan), _unpinned_note(plan))
    return (bound, *(Noted(time=now, message=note) for note in notes if note))


class Briefs:
    """What the hosts of one plan are told, made once for all of them."""

    def __init__(self, plan: Plan) -> None:
        """Nothing is made before it is asked for."""
        self.plan = plan

    @functools.cached_property
    def orders(self) -> Mapping[int, Order]:
        """By host: its tasks, the cluster text once, what to look at before they start."""
        return _prepare_orders(self.plan, checklists(self.plan) if self.plan.outline.policies.preflight.on else {})

    def again(self, host: int, state: RunState, now: float) -> list[Order]:
        """For an agent that an earlier lead has briefed: the same, and what its tasks have not done of their orders.

        That no generation follows, where that is so; to end, one order for each grace; and to write the stacks that
        are still waited for.
        """
        order = self.orders.get(host)
        if order is None:
            return []
        told: dict[float, list[TaskId]] = {}
        for task in (state.tasks[start.id] for start in order.tasks):
            if task.stop_ordered is not None and not task.phase.over:
                told.setdefault(task.stop_grace, []).append(task.id)
        stops = [
            Order(seq=0, epoch=0, kind="stop", generation=state.generation, ids=tuple(ids), grace=grace)
            for grace, ids in told.items()
        ]
        asked = state.stacks.tasks if state.stacks is not None and stacks_due(state, now) is not None else ()
        stacks = task_orders(state, "stacks", asked)
        last = [LAST] if state.succeeded is not None else []
        return [order, *last, *stops, *([stacks[host]] if host in stacks else [])]


def _prepare_orders(plan: Plan, checks: Mapping[int, Checklist]) -> dict[int, Order]:
    head = pack(plan.head) if plan.head else ""
    return {
        host: Order(
            seq=0,
            epoch=0,
            kind="prepare",
            generation=plan.generation,
            tasks=tuple(_start(plan, task) for task in tasks),
            head=head,
            cwd=plan.outline.cwd,
            check=checks.get(host),
            patience=patience(plan.outline.policies.health),
        )
        for host, tasks in _by_host(plan).items()
    }


def attempt_orders(plan: Plan, attempts: Mapping[TaskId, int]) -> tuple[tuple[int, Order], ...]:
    """Each with its host: prepare these tasks once more, with the number of their attempt, and start them."""
    again = [plan.task(task).again(attempt) for task, attempt in attempts.items()]
    prepared = _prepare_orders(dataclasses.replace(plan, tasks=tuple(again)), {})
    started = {
        host: Order(seq=0, epoch=0, kind="go", generation=plan.generation, ids=tuple(t.id for t in order.tasks))
        for host, order in prepared.items()
    }
    return tuple((host, order) for host in prepared for order in (prepared[host], started[host]))


def go_orders(plan: Plan) -> dict[int, Order]:
    """By host: start now, or after the leader's head start where the leader is elsewhere."""
    leader = plan.outline.leader
    leads = plan.task(leader).host if leader and plan.outline.strategy is Strategy.MWMS else None
    return {
        host: Order(
            seq=0,
            epoch=0,
            kind="go",
            generation=plan.generation,
            grace=0.0 if leads in (None, host) else HEAD_START,
        )
        for host in _by_host(plan)
    }


def orders_with(event: Event, hosts: Iterable[int]) -> dict[int, Order]:
    """What goes out to these hosts together with an event; to most events nothing."""
    match event:
        case LeaderSucceeded():
            return dict.fromkeys(hosts, LAST)
        case OutputsAsked():
            return {event.host: Order(seq=0, epoch=0, kind="outputs", outputs=event.patterns)}
    return {}


def task_orders(state: RunState, kind: str, tasks: Iterable[TaskId], grace: float = 0.0) -> dict[int, Order]:
    """By host: `stop` or `stacks` for those of these tasks that it has."""
    found: dict[int, list[TaskId]] = {}
    for name in tasks:
        if (host := state.tasks[name].host) is not None:
            found.setdefault(host, []).append(name)
    return {
        host: Order(seq=0, epoch=0, kind=kind, generation=state.generation, ids=tuple(ids), grace=grace)
        for host, ids in found.items()
    }


def _unpinned_note(plan: Plan) -> str:
    """One for all hosts, in the first generation."""
    if plan.generation > 1 or not plan.unpinned:
        return ""
    (first, why), *others = plan.unpinned.items()
    name = next(host.name for host in plan.hosts if host.id == first)
    more = f" and {len(others)} other hosts" if others else ""
    return f"tasks of {name}{more} are not pinned to cores: {why}"


def _standby_note(plan: Plan) -> str:
    if plan.generation > 1 or plan.outline.policies.restart.standby_limit == 0:
        return ""
    roles = plan.outline.roles
    for what, held in (("{generation}", _names_generation), ("an address", lambda role: names_addresses(roles, role))):
        if kinds := ", ".join(role.type for role in roles if held(role)):
            return f"no standbys for {kinds}: the command or environment holds {what}"
    return ""


def _comes_again(outline: Outline, role: Role) -> bool:
    """Whether its tasks have the same command in each generation."""
    return not names_addresses(outline.roles, role) and not _names_generation(role)


def _names_generation(role: Role) -> bool:
    return any("{generation}" in word for word in (*role.command, *role.env.values()))


def _by_host(plan: Plan) -> dict[int, list[PlannedTask]]:
    found: dict[int, list[PlannedTask]] = {}
    for task in plan.tasks:
        found.setdefault(task.host, []).append(task)
    return found


def _start(plan: Plan, task: PlannedTask) -> StartTask:
    role = plan.outline.role(task.id.type)
    first = task.id == plan.outline.leader and plan.outline.strategy is Strategy.MWMS and task.address is not None
    return StartTask(
        id=task.id,
        argv=task.argv,
        env=task.env,
        port=task.port,
        lent=role.port,
        attempt=task.attempt,
        tail=task.tail,
        head=pack(task.head) if task.head is not None else None,
        cpus=task.cpus,
        first=first,
        again=_comes_again(plan.outline, role),
    )
