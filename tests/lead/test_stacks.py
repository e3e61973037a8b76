"""Stacks on request and before a stuck group is ended: through the real lead, in virtual time."""

from __future__ import annotations

import json

import pytest

from phalanx import events as ev
from phalanx.names import TaskId
from phalanx.protocol.messages import Order
from phalanx.states import RunPhase
from simulated import World, outline, virtual_clock

pytestmark = pytest.mark.looptime


async def ask(world: World, body: object, token: str) -> tuple[int, str]:
    text = json.dumps(body).encode()
    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": "POST",
        "path": "/v1/stacks",
        "raw_path": b"/v1/stacks",
        "query_string": b"",
        "scheme": "http",
        "headers": [(b"host", b"lead:1"), (b"authorization", f"Bearer {token}".encode())],
    }
    sent: list[dict] = []

    async def receive() -> dict[str, object]:
        return {"type": "http.request", "body": text, "more_body": False}

    async def send(message: dict) -> None:
        sent.append(message)

    await world.asgi(scope, receive, send)
    return sent[0]["status"], b"".join(message.get("body", b"") for message in sent[1:]).decode()


def ordered(world: World) -> list[Order]:
    return [order for agent in world.agents for order in agent.orders if order.kind == "stacks"]


async def test_people_may_ask_for_the_stacks_of_any_task():
    world = World(outline(workers=2, hosts=2))
    running = world.start()
    await world.until(lambda state: all(task.listening for task in state.tasks.values()) and bool(state.tasks))
    token = world.key.people_token()
    status, text = await ask(world, {"tasks": ["worker:1"], "by": "me"}, token)
    assert (status, json.loads(text)["tasks"]) == (200, ["worker:1"])
    assert (await ask(world, {"tasks": ["worker:7"]}, token))[0] == 400
    assert (await ask(world, {}, "wrong"))[0] == 401
    status, text = await ask(world, {}, token)
    assert json.loads(text)["tasks"] == ["worker:0", "worker:1"]
    assert [event.by for event in world.said(ev.StacksOrdered)] == ["me", "somebody"]
    world.exit("worker:0")
    world.exit("worker:1")
    assert (await running).phase is RunPhase.SUCCEEDED
    assert sorted(order.ids for order in ordered(world)) == [(TaskId("worker", index),) for index in (0, 1, 1)]


async def test_a_frozen_task_ends_its_group_after_the_stacks_were_asked_for():
    """Facts §3: and what does not come is waited for two seconds."""
    world = World(outline(workers=2, hosts=2))
    running = world.start()
    await world.until(lambda state: all(task.listening for task in state.tasks.values()) and bool(state.tasks))
    agent = world.agent_of(TaskId("worker", 1))
    about = {"task": TaskId("worker", 1), "host": agent.number, "generation": 1}
    agent.link.say(ev.TaskFroze(time=virtual_clock(), **about, since=virtual_clock() - 0.5))
    state = await running
    assert state.phase is RunPhase.FAILED
    assert state.culprit is not None
    assert state.culprit.task == TaskId("worker", 1)
    [asked], [named] = world.said(ev.StacksOrdered), world.said(ev.CulpritNamed)
    [stopped] = world.said(ev.StopOrdered)
    assert named.time <= asked.time
    assert 1.9 <= stopped.time - asked.time <= 2.1
    assert len(ordered(world)) == 2
