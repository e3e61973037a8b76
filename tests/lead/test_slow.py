"""What agents measure comes together at the lead: ends of connections, verdicts in the records, and little traffic."""

from __future__ import annotations

import asyncio
import json
import random

import pytest

from phalanx.events import SlowEnded, SlowFound
from phalanx.lead.ends import Ends
from phalanx.names import TaskId
from phalanx.protocol.messages import End, Load, Measured
from phalanx.sample import LinkSample, TaskSample
from phalanx.states import RunPhase
from simulated import AppTransport, World, outline, virtual_clock

W = [TaskId("worker", i) for i in range(4)]


def end(task: TaskId, peer: TaskId | None, port: int, sent: int, busy: float = 0.1) -> End:
    return End(task=task, peer=peer, port=port, sent=sent, busy=busy)


def test_two_ends_of_a_connection_become_what_each_has_sent_the_other():
    ends = Ends()
    assert ends.take(Measured(at=1.0, ends=(end(W[1], None, 40_001, 900_000),))) == ()
    assert ends.take(Measured(at=2.0, ends=(end(W[0], W[1], 40_001, 500),))) == (
        LinkSample(source=W[0], target=W[1], at=2.0, sent=500, busy=0.1),
    )
    (link,) = ends.take(Measured(at=3.0, ends=(end(W[1], None, 40_001, 950_000),)))
    assert (link.source, link.target, link.sent) == (W[1], W[0], 950_000)


def test_of_several_connections_between_two_the_one_that_carries_most_is_the_link():
    ends = Ends()
    both = (end(W[0], W[1], 40_001, 500, busy=9.0), end(W[0], W[1], 40_002, 500_000, busy=1.0))
    (link,) = ends.take(Measured(at=1.0, ends=both))
    assert (link.sent, link.busy) == (500_000, 1.0)
    assert ends.take(Measured(at=2.0, ends=both[:1])) == (), "the small one in its place would seem to go back"


def test_a_port_that_two_hosts_call_from_tells_nothing():
    ends = Ends()
    ends.take(Measured(at=1.0, ends=(end(W[0], W[2], 40_001, 500),)))
    ends.take(Measured(at=1.0, ends=(end(W[1], W[2], 40_001, 500),)))
    assert ends.take(Measured(at=2.0, ends=(end(W[2], None, 40_001, 900_000),))) == ()


class Training:
    """Every agent measures its tasks: in a ring, at ten steps a second; `slow` takes so much longer than the others."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.slow: TaskId | None = None
        self.own: dict[TaskId, float] = {}
        self.last = 0.0
        for agent in world.agents:
            agent.link.measured = lambda agent=agent: self.measure(agent)

    def measure(self, agent: object) -> Measured | None:
        loads, ends = [], []
        now = asyncio.get_running_loop().time()
        for task, (generation, attempt) in agent.tasks.items():
            count = len(self.world.lead.state.tasks)
            caller, called = TaskId("worker", (task.index + 1) % count), TaskId("worker", (task.index - 1) % count)
            loads.append(Load(task=task, generation=generation, attempt=attempt, cpu=now, sent=int(now * 1e7)))
            ends += [end(task, called, 40_000 + task.index, 100, now * 0.01)]
            ends += [end(task, None, 40_000 + caller.index, int(now * 1e7), now * 0.1)]
        return Measured(at=virtual_clock(), loads=tuple(loads), ends=tuple(ends))

    def step(self) -> None:
        """What the runtimes count, as the lead takes it."""
        now = asyncio.get_running_loop().time()
        step, noise = 0.1, random.Random(int(now))  # noqa: S311 - noise
        for task in self.world.lead.state.tasks:
            share = 0.5 if task == self.slow else 0.2 * noise.uniform(0.9, 1.1)
            self.own[task] = self.own.get(task, 0.0) + (now - self.last) * (1 - share)
            sample = TaskSample(
                task=task,
                generation=1,
                attempt=1,
                at=virtual_clock(),
                steps=int(now / step),
                collective=self.own[task],
            )
            self.world.lead.slow.stepped([sample], 1)
        self.last = now

    async def go_on(self, seconds: int) -> None:
        for _ in range(seconds // 5):
            await asyncio.sleep(5.0)
            self.step()


async def training(**more: int) -> tuple[World, Training]:
    world = World(outline(**more))
    made = Training(world)
    world.start()
    await world.until(lambda state: state.phase is RunPhase.RUNNING)
    return world, made


@pytest.mark.looptime
async def test_who_becomes_slow_is_told_and_taken_back_and_equal_workers_never():
    world, all_ = await training(workers=4, hosts=4)
    await all_.go_on(60)
    told = [record.event for record in world.records.records if isinstance(record.event, SlowFound | SlowEnded)]
    assert told == []
    all_.slow = W[1]
    await all_.go_on(60)
    (found,) = (record.event for record in world.records.records if isinstance(record.event, SlowFound))
    assert (found.task, found.cause, found.generation) == (W[1], "task", 1)
    assert found.factor == pytest.approx(2.5, rel=0.2)
    assert [one.found.task for one in world.lead.state.slow] == [W[1]]
    all_.slow = None
    await all_.go_on(60)
    (ended,) = (record.event for record in world.records.records if isinstance(record.event, SlowEnded))
    assert ended.about == found.about
    assert world.lead.state.slow[0].ended == ended.time


@pytest.mark.looptime
async def test_who_asks_is_told_the_links_with_what_they_carry():
    world, all_ = await training(workers=4, hosts=4)
    await all_.go_on(30)
    transport = AppTransport(world.asgi)
    answer = await transport.call("GET", "/v1/slow", {"authorization": f"Bearer {world.key.people_token()}"}, b"")
    look = json.loads(answer.body)["look"]
    links = {(one["source"], one["target"]): one for one in look["paces"]["links"]}
    ring = {(f"worker:{i}", f"worker:{(i + 1) % 4}") for i in range(4)}
    assert ring <= links.keys()
    assert all(links[pair]["carries"] == pytest.approx(1e8, rel=0.01) for pair in ring)
