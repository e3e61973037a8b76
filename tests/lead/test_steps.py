"""How far the tasks are when a person asks: new to the second, and one request of each agent at most."""

from __future__ import annotations

import asyncio
import json

import pytest

from phalanx.lead.steps import FRESH, RATE, steps_now
from phalanx.names import TaskId
from phalanx.sample import TaskSample
from phalanx.states import RunPhase
from simulated import AppTransport, World, outline, virtual_clock

pytestmark = pytest.mark.looptime


class Counting:
    """Every task of an agent does ten steps a second."""

    def __init__(self, world: World) -> None:
        self.world = world
        for agent in world.agents:
            agent.link.samples = lambda agent=agent: tuple(
                TaskSample(task=task, generation=generation, attempt=attempt, at=virtual_clock(), steps=self.step)
                for task, (generation, attempt) in agent.tasks.items()
            )

    @property
    def step(self) -> int:
        return int(asyncio.get_running_loop().time() * 10)

    @property
    def requests(self) -> int:
        return sum(agent.transport.requests for agent in self.world.agents)


async def ask(world: World) -> list[dict[str, object]]:
    """As `phalanx ps --json` does."""
    transport = AppTransport(world.asgi)
    token = world.key.people_token()
    refused = await transport.call("GET", "/v1/steps", {"x-phalanx-token": token[::-1]}, b"")
    own = await transport.call("GET", "/v1/steps", {"authorization": "Bearer proxy", "x-phalanx-token": token}, b"")
    answer = await transport.call("GET", "/v1/steps", {"authorization": f"Bearer {token}"}, b"")
    assert [refused.status, own.status, answer.status] == [401, 200, 200]
    return json.loads(answer.body)["steps"]


async def running(**more: int) -> tuple[World, Counting]:
    world = World(outline(**more))
    counting = Counting(world)
    world.start()
    await world.until(lambda state: state.phase is RunPhase.RUNNING)
    await asyncio.sleep(60.0)
    return world, counting


async def test_who_asks_is_told_the_steps_of_this_second_with_their_attempt():
    world, counting = await running(workers=4, hosts=2)
    found = await ask(world)
    assert {str(one["task"]) for one in found} == {f"worker:{number}" for number in range(4)}
    assert all((one["generation"], one["attempt"]) == (1, 1) for one in found)
    assert all(counting.step - one["steps"] <= 10 * FRESH for one in found)
    assert all(one["age"] <= FRESH for one in found)


async def test_an_agent_says_so_in_polls_that_come_anyway_and_once_more_for_who_asks():
    world, counting = await running(workers=4, hosts=2)
    before = counting.requests
    for _ in range(20):
        await ask(world)
    assert counting.requests - before <= len(world.agents)
    await asyncio.sleep(30.0)
    silent = counting.requests - before
    world, counting = await running(workers=4, hosts=2)
    before = counting.requests
    await asyncio.sleep(30.0)
    assert silent - (counting.requests - before) <= len(world.agents)


async def test_a_thousand_hosts_are_asked_once_in_seconds_however_often_somebody_asks():
    world, counting = await running(workers=1000, hosts=1000)
    before, seconds = counting.requests, 20
    polls = seconds / 3 * len(world.agents)
    for _ in range(seconds * 2):
        assert len(await ask(world)) == len(world.agents)
        await asyncio.sleep(0.5)
    assert counting.requests - before <= polls + seconds * RATE


async def test_an_agent_that_does_not_come_is_told_of_as_it_was_and_nobody_waits_long():
    world, _ = await running(workers=2, hosts=2)
    world.agents[1].transport.break_off()
    began = virtual_clock()
    found = await steps_now(world.lead.living().values(), virtual_clock)
    assert virtual_clock() - began <= 2 * FRESH
    assert {str(one["task"]) for one in found} >= {str(TaskId("worker", 0))}


async def test_samples_are_kept_apart_from_what_happened():
    world, _ = await running(workers=2, hosts=2)
    before = len(world.records.records)
    await ask(world)
    world.records.samples.clear()
    await asyncio.sleep(30.0)
    assert len(world.records.records) == before
    assert {one.task for one in world.records.samples} == {TaskId("worker", 0), TaskId("worker", 1)}  # they lie apart
