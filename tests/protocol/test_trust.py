"""Who may speak to a lead, and whom an agent believes."""

from __future__ import annotations

import dataclasses

import pytest

from phalanx.events import RunEnded
from phalanx.lead.deposed import DeposedError
from phalanx.protocol.client import LeadClient
from phalanx.protocol.messages import Poll, encode
from phalanx.protocol.signing import SIGNATURE, TOLERANCE, Gate, RefusedError, RunKey, sign_answer, sign_request
from phalanx.protocol.steady import SteadyClock
from phalanx.protocol.transport import Answer, LeadSilentError
from simulated import AppTransport, World, outline, virtual_clock

pytestmark = pytest.mark.looptime

POLL = Poll(instance="i0", host=0, after=0, wait=0.1)


def signed(key: RunKey, *, path="/v1/orders", body=b"{}", epoch=1, now=None) -> dict[str, str]:
    return sign_request(
        key, method="POST", path=path, body=body, epoch=epoch, now=virtual_clock() if now is None else now
    )


async def test_a_message_signed_with_another_key_is_refused():
    world = World(outline())
    answer = await AppTransport(world.asgi).call("POST", "/v1/orders", signed(RunKey.new()), b"{}")
    assert (answer.status, answer.body) == (403, b"wrong signature\n")


async def test_an_agent_whose_clock_is_hours_off_is_told_the_time_and_goes_on():
    world = World(outline())
    client = LeadClient(AppTransport(world.asgi), world.key, clock=lambda: virtual_clock() - 3 * 3600)
    join = world.agents[0].link._join
    assert (await client.join(join)).epoch == 1
    before = client._transport.requests
    await client.orders(dataclasses.replace(POLL, instance=join.instance))
    assert client._transport.requests == before + 1


@pytest.mark.parametrize("jump", [-5 * 3600.0, 5 * 3600.0])
def test_a_steady_clock_goes_on_though_somebody_sets_the_time(jump):
    wall, passed = [1e9], [50.0]
    clock = SteadyClock(wall=lambda: wall[0], passed=lambda: passed[0])
    assert clock() == 1e9
    wall[0], passed[0] = 1e9 + jump, 60.0
    assert clock() == 1e9 + 10
    later = SteadyClock(not_before=2e9, wall=lambda: wall[0], passed=lambda: passed[0])
    assert later() == 2e9


async def test_an_unsigned_message_is_refused():
    world = World(outline())
    answer = await AppTransport(world.asgi).call("POST", "/v1/join", {}, b"{}")
    assert answer.status == 403


@pytest.mark.parametrize("change", ["path", "body", "nonce", "time", "epoch"])
async def test_every_signed_part_counts(change):
    key = RunKey.new()
    headers = signed(key)
    path, body = "/v1/orders", b"{}"
    if change == "path":
        path = "/v1/events"
    elif change == "body":
        body = b"[]"
    else:
        headers[f"x-phalanx-{change}"] = {"nonce": "00", "time": "1.0", "epoch": "2"}[change]
    with pytest.raises(RefusedError, match="wrong signature"):
        Gate(key).check(headers, method="POST", path=path, body=body, now=virtual_clock())


async def test_a_replayed_message_is_refused():
    world = World(outline())
    headers, transport = signed(world.key), AppTransport(world.asgi)
    first = await transport.call("POST", "/v1/orders", headers, b"{}")
    again = await transport.call("POST", "/v1/orders", headers, b"{}")
    assert first.status == 400  # signed well, though it says nothing
    assert (again.status, b"replayed" in again.body) == (403, True)


async def test_a_stale_message_is_refused_and_says_that_clocks_differ():
    key = RunKey.new()
    headers = signed(key, now=virtual_clock() - TOLERANCE - 5)
    with pytest.raises(RefusedError, match=r"stale: sent \+125 s") as caught:
        Gate(key).check(headers, method="POST", path="/v1/orders", body=b"{}", now=virtual_clock())
    assert "clocks" in caught.value.hint


async def test_a_nonce_is_remembered_for_as_long_as_its_time_would_pass():
    key, gate = RunKey.new(), None
    gate = Gate(key)
    now = virtual_clock()
    headers = signed(key, now=now)
    gate.check(headers, method="POST", path="/v1/orders", body=b"{}", now=now)
    for later in range(1, 100):
        fresh = signed(key, now=now + later)
        gate.check(fresh, method="POST", path="/v1/orders", body=b"{}", now=now + later)
    with pytest.raises(RefusedError):
        gate.check(headers, method="POST", path="/v1/orders", body=b"{}", now=now + 100)


async def test_a_lead_of_a_lower_epoch_gives_no_orders():
    key = RunKey.new()

    class OldLead:
        async def call(self, method, path, headers, body):
            nonce = headers["x-phalanx-nonce"]
            text = b'{"orders": []}'
            return Answer(status=200, headers=sign_answer(key, nonce=nonce, status=200, body=text, epoch=1), body=text)

    client = LeadClient(OldLead(), key, clock=virtual_clock)
    client.epoch = 2
    with pytest.raises(LeadSilentError, match="epoch 1 answered; epoch 2 rules"):
        await client.orders(POLL)


async def test_a_lead_learns_from_an_agent_that_its_epoch_is_over():
    world = World(outline())
    answer = await AppTransport(world.asgi).call("POST", "/v1/orders", signed(world.key, epoch=2), b"{}")
    assert (answer.status, b"2 rules" in answer.body) == (410, True)
    with pytest.raises(DeposedError):
        await world.lead.run_until_ended()
    assert world.said(RunEnded) == []


async def test_an_answer_that_the_lead_did_not_sign_is_not_believed():
    key = RunKey.new()

    class Impostor:
        async def call(self, method, path, headers, body):
            text = b'{"orders": []}'
            return Answer(status=200, headers={SIGNATURE: "0" * 64, "x-phalanx-epoch": "1"}, body=text)

    with pytest.raises(RefusedError, match="another program listens"):
        await LeadClient(Impostor(), key, clock=virtual_clock).orders(POLL)


async def test_an_answer_to_another_request_is_not_believed():
    key = RunKey.new()

    class Replayer:
        async def call(self, method, path, headers, body):
            text = b'{"orders": []}'
            return Answer(status=200, headers=sign_answer(key, nonce="old", status=200, body=text, epoch=1), body=text)

    with pytest.raises(RefusedError):
        await LeadClient(Replayer(), key, clock=virtual_clock).orders(POLL)


@pytest.mark.parametrize("host", ["evil.example:80", "lead:2", ""])
async def test_a_foreign_host_header_is_refused(host):
    world = World(outline())
    body = encode(POLL)
    answer = await AppTransport(world.asgi, host=host).call("POST", "/v1/orders", signed(world.key, body=body), body)
    assert (answer.status, b"foreign Host" in answer.body) == (403, True)


async def test_people_come_in_by_token_only():
    world = World(outline())
    transport = AppTransport(world.asgi)
    assert (await transport.call("GET", "/v1/run", {}, b"")).status == 401
    assert (await transport.call("GET", "/v1/run", {"authorization": "Bearer no"}, b"")).status == 401
    token = {"authorization": f"Bearer {world.key.people_token()}"}
    assert (await transport.call("GET", "/v1/run", token, b"")).status == 200
    assert (await transport.call("GET", "/healthz", {}, b"")).status == 200


async def test_a_persons_token_does_not_sign_for_agents():
    world = World(outline())
    fake = RunKey(bytes.fromhex(world.key.people_token()))
    answer = await AppTransport(world.asgi).call("POST", "/v1/orders", signed(fake), b"{}")
    assert answer.status == 403


def test_the_key_does_not_show_in_its_repr():
    key = RunKey.new()
    assert key.hex() not in repr(key)
